-- columns: made_vector
-- A synthetic vector that is distributed like those of texts: it leans to one of 50 subjects and to six of 500 words,
-- few of which are frequent. 2,000 of them have a mean cosine of 0.15 and an intrinsic dimension of about 13; vectors by
-- MiniLM of turns of BEAM and QMSum have 0.10 and 0.20, and 12 and 13.
SELECT l2_normalize(sum(d.direction)) AS embedding
FROM (
    SELECT CASE k WHEN 0 THEN floor(50 * drawn) ELSE 50 + floor(500 * power(drawn, 4)) END::int AS place
    FROM generate_series(0, 6) AS k
    CROSS JOIN LATERAL (SELECT abs(mod(hashint8extended(n, k), 1000000)) / 1e6::float8 AS drawn) AS by_chance
) AS leaning
JOIN bench_directions d USING (place)

-- name: make_pool
-- Make a pool for measurements.
INSERT INTO pools (name) VALUES (%(name)s) RETURNING id::text

-- name: fill_pool
-- Rows with a realistic distribution, without a keyword index: kinds, priorities, a few large projects, a tiny one and
-- none, one in four superseded, one in twenty expired, used at any time in the last two months. Each is a sentence with
-- a number after it, which takes three more tokens.
INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, project, source_ids,
                      tokens, terms, parts, said_at, valid_until, last_used_at, superseded_by, superseded_at, outdated_at,
                      reflection_id, expired, created_at)
SELECT %(pool)s::uuid, 'mem_' || lpad(n::text, 9, '0'), kind, priority, 'fact', 'user',
       content || ' ' || lpad(n::text, 9, '0'), sha256(convert_to(content || n, 'UTF8')), 'bench', project,
       CASE kind WHEN 'reflection' THEN ARRAY ['mem_source'] ELSE '{}' END,
       tokens + 3, 20, 1, used_at, CASE WHEN expired THEN used_at END, used_at,
       CASE WHEN replaced THEN 'mem_other' END, CASE WHEN replaced THEN used_at END, CASE WHEN replaced THEN used_at END,
       CASE kind WHEN 'reflection' THEN 'ref_bench' END, expired, used_at
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
CROSS JOIN LATERAL (
    SELECT CASE WHEN mod(n, 4) = 0 THEN 'reflection' ELSE 'note' END AS kind,
           (ARRAY ['high', 'medium', 'medium', 'medium', 'low', 'low'])[1 + mod(n * 7919, 6)] AS priority,
           CASE WHEN mod(n, 5) = 0 THEN NULL WHEN mod(n, 5000) = 1 THEN 'tiny' ELSE 'project-' || mod(n, 7) END AS project,
           mod(n, 4) = 1 AS replaced, mod(n, 20) = 2 AS expired,
           %(now)s::timestamptz - mod(n * 31, 5184000) * interval '1 second' - n * interval '1 microsecond' AS used_at
) AS drawn
JOIN jsonb_to_recordset(%(sentences)s::jsonb) AS s (place bigint, content text, tokens int)
  ON s.place = mod(n, jsonb_array_length(%(sentences)s::jsonb))

-- name: seed
-- Make random values reproducible.
SELECT setseed(0.5)

-- name: create_directions
-- Make a table of directions, of which synthetic vectors are composed.
CREATE TABLE bench_directions (place int PRIMARY KEY, direction halfvec(384) STORAGE PLAIN NOT NULL)

-- name: draw_directions
-- Directions of 50 subjects and of 500 words; subjects weigh twice as much.
INSERT INTO bench_directions (place, direction)
SELECT place, array_agg(random_normal(0, CASE WHEN place < 50 THEN 2 ELSE 1 END))::halfvec
FROM generate_series(0, 549) AS place CROSS JOIN generate_series(1, 384) GROUP BY place

-- name: fill_vectors
-- Vectors for rows of a pool, as a worker would have stored them.
INSERT INTO {vectors} (pool_id, tier, number, part, content_hash, embedding, created_at)
SELECT m.pool_id, 'm', m.number, 0, m.content_hash, made.embedding, %(now)s
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n
JOIN memories m ON m.pool_id = %(pool)s::uuid AND m.id = 'mem_' || lpad(n::text, 9, '0')
CROSS JOIN LATERAL ({made_vector}) AS made

-- name: made_vectors
-- Vectors of the same distribution, which are not stored, used as queries.
SELECT made.embedding::text
FROM generate_series(%(first)s::bigint, %(last)s::bigint) AS n CROSS JOIN LATERAL ({made_vector}) AS made

-- name: bare_nearest
-- The floor of vector search: read the nearest vectors of a pool. The pool is a constant, as in a partial index.
SELECT number FROM {vectors}
WHERE pool_id = {pool} AND tier = 'm' ORDER BY embedding <=> %(vector)s::halfvec LIMIT %(limit)s

-- name: add_session
-- Add a session, for which a pack is made.
INSERT INTO sessions (pool_id, id, client, external_id, project, timezone, effective_context, created_at, begun_at)
VALUES (%(pool)s::uuid, %(id)s, 'bench', %(id)s, %(project)s, 'UTC', 200000, %(now)s, %(now)s)

-- name: analyze
-- Update the planner's statistics, as autovacuum would a little later.
VACUUM ANALYZE

-- name: create_bare_table
-- Make a table of texts without any index but its key.
CREATE TABLE IF NOT EXISTS bench_texts (id text PRIMARY KEY, content text NOT NULL)

-- name: bare_insert
-- The floor of storing rows: one INSERT into a table without further indexes.
INSERT INTO bench_texts (id, content)
SELECT id, content FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (id text, content text)

-- name: bare_read
-- The floor of showing rows: reading them by their keys.
SELECT id, content FROM memories WHERE pool_id = %(pool)s::uuid AND id = ANY (%(ids)s)

-- name: some_rows
-- Some live rows of a pool, used as queries.
SELECT id, content FROM memories WHERE pool_id = %(pool)s::uuid AND superseded_at IS NULL ORDER BY id LIMIT %(limit)s

-- name: count_rows
-- How many rows one pool has, and all pools.
SELECT count(*) FILTER (WHERE pool_id = %(pool)s::uuid), count(*) FROM memories

-- name: postgres_version
-- The version of the measured Postgres.
SELECT current_setting('server_version')
