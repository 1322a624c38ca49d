-- columns: weights
size AS (
    -- A word that stands in all of three texts is still rare in the world.
    SELECT greatest(coalesce(sum(parts), 0), 100)::float8 AS parts,
           greatest(coalesce(sum(terms)::float8 / nullif(sum(parts), 0), 1), 1) AS mean_terms
    FROM tier_sizes WHERE tier = %(tier)s
), counted AS (
    SELECT asked.term, asked.word, asked.place, held.parts
    FROM unnest(%(terms)s::text[], %(words)s::int[]) WITH ORDINALITY AS asked (term, word, place)
    CROSS JOIN LATERAL (
        SELECT count(*)::float8 AS parts FROM postings WHERE tier = %(tier)s AND term = asked.term OFFSET 0
    ) AS held
), weighed AS MATERIALIZED (
    SELECT term, word, place, counted.parts > 0 AS there, size.mean_terms,
           ln(1 + (greatest(size.parts - counted.parts, 0) + 0.5) / (counted.parts + 0.5)) AS weight,
           rarer < %(enough)s OR rarer + counted.parts <= %(most)s AS is_read
    FROM (SELECT *, sum(parts) OVER (ORDER BY parts, place) - parts AS rarer FROM counted) AS counted
    CROSS JOIN size
), ideal AS (
    SELECT greatest(sum(weight) * 2.2, 1e-9) AS score
    FROM (
        -- Of the forms of a word those count that are there.
        SELECT coalesce(max(weight) FILTER (WHERE there), max(weight)) AS weight
        FROM weighed GROUP BY word ORDER BY 1 DESC LIMIT %(telling)s
    ) AS words
), asked AS MATERIALIZED (
    SELECT coalesce(array_agg(weight ORDER BY place), '{}') AS weights, (SELECT mean_terms FROM size) AS mean_terms,
           (SELECT score FROM ideal) AS ideal, bool_and(is_read) AS is_whole
    FROM weighed
)
-- columns: score
sum((1e7::float8 * weight * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * (length / mean_terms))))::int)
-- columns: memory_filter
visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s, %(as_of)s,
                 %(moment)s, %(with_superseded)s)
-- columns: passage_filter
visible_passages(%(session)s, %(project)s, %(since)s, %(until)s, %(as_of)s)

-- name: size_memory
-- How many memories a pool has, and how many of them are in a session or a project, counted up to a number from which on
-- it makes no difference.
SELECT (SELECT coalesce(sum(parts), 0)::bigint FROM tier_sizes WHERE tier = %(tier)s) AS in_tier, CASE
    WHEN %(session)s::text IS NOT NULL THEN (
        SELECT count(*) FROM (SELECT FROM memories WHERE session_id = %(session)s LIMIT %(most)s) AS counted)
    WHEN %(project)s::text IS NOT NULL THEN (
        SELECT count(*) FROM (SELECT FROM memories WHERE project = %(project)s LIMIT %(most)s) AS counted)
END AS in_scope

-- name: size_passage
-- The same among passages.
SELECT (SELECT coalesce(sum(parts), 0)::bigint FROM tier_sizes WHERE tier = %(tier)s) AS in_tier, CASE
    WHEN %(session)s::text IS NOT NULL THEN (
        SELECT count(*) FROM (SELECT FROM passages WHERE session_id = %(session)s LIMIT %(most)s) AS counted)
    WHEN %(project)s::text IS NOT NULL THEN (
        SELECT count(*) FROM (SELECT FROM passages WHERE project = %(project)s LIMIT %(most)s) AS counted)
END AS in_scope

-- name: keyword_memory
-- The best memories by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza, 2009) over the postings of the query's terms,
-- each by its best part. The document frequency is counted from the same postings, so it is never stale. A score is a
-- share of what the query's most telling words could give at most, each once; `words` says which terms are forms of one
-- word. It is added up in whole numbers, whose sum does not depend on the order. What the terms weigh comes along, for
-- `keyword_scores`.
-- Terms are read from the rarest on, as long as there are few postings in all; the others are looked up in the best that
-- were found so, as MaxScore does it (Turtle and Flood, 1995). `is_whole` says that all were read.
-- Nothing is joined but single rows, and rows are looked up one by one, best first, until enough may be seen; the
-- OFFSETs keep the planner from another way. Before its first ANALYZE of a pool that was just filled it takes ten
-- thousand rows for thirty, and would compare each with each.
WITH {weights}, scored AS (
    SELECT number, part, {score} AS score
    FROM (SELECT * FROM weighed WHERE is_read OFFSET 0) AS read
    CROSS JOIN LATERAL (
        SELECT number, part, frequency, length FROM postings WHERE tier = %(tier)s AND term = read.term OFFSET 0
    ) AS held
    GROUP BY number, part
), best AS MATERIALIZED (
    SELECT seen.id, ranked.number, ranked.part, ranked.score
    FROM (SELECT * FROM scored ORDER BY score DESC, number DESC OFFSET 0) AS ranked
    CROSS JOIN LATERAL (SELECT t.id FROM {memory_filter} AS t WHERE t.number = ranked.number OFFSET 0) AS seen
    ORDER BY ranked.score DESC, ranked.number DESC
    LIMIT (SELECT CASE WHEN is_whole THEN %(limit)s::bigint ELSE %(looked_up)s END FROM asked)
)
SELECT id, number, (max(best.score + rest.score) / 1e7 / ideal)::float8 AS score, weights, mean_terms, ideal, is_whole
FROM best
CROSS JOIN asked
CROSS JOIN LATERAL (
    SELECT coalesce({score}, 0) AS score
    FROM (SELECT * FROM weighed WHERE NOT is_read OFFSET 0) AS unread
    CROSS JOIN LATERAL (
        SELECT frequency, length FROM postings
        WHERE tier = %(tier)s AND term = unread.term AND number = best.number AND part = best.part OFFSET 0
    ) AS held
) AS rest
GROUP BY id, number, weights, mean_terms, ideal, is_whole
ORDER BY 3 DESC, number DESC LIMIT %(limit)s

-- name: keyword_memory_in_scope
-- The same where few rows of the pool may be seen: it is cheaper to look up those than to pass by all others, and all
-- terms are read. (IS TRUE keeps the planner from a join, so that rows are always looked up in a hash.)
WITH {weights}, best AS MATERIALIZED (
    SELECT number, {score} AS score
    FROM (SELECT * FROM weighed OFFSET 0) AS read
    CROSS JOIN LATERAL (
        SELECT number, part, frequency, length FROM postings
        WHERE tier = %(tier)s AND term = read.term
          AND (number IN (SELECT seen.number FROM {memory_filter} AS seen)) IS TRUE OFFSET 0
    ) AS held
    GROUP BY number, part ORDER BY 2 DESC, number DESC LIMIT %(limit)s
)
SELECT t.id, number, (max(best.score) / 1e7 / ideal)::float8 AS score, weights, mean_terms, ideal, true AS is_whole
FROM best
CROSS JOIN asked
CROSS JOIN LATERAL (SELECT id FROM memories AS t WHERE t.number = best.number OFFSET 0) AS t
GROUP BY t.id, number, weights, mean_terms, ideal
ORDER BY 3 DESC, number DESC

-- name: keyword_passage
-- The same among passages.
WITH {weights}, scored AS (
    SELECT number, part, {score} AS score
    FROM (SELECT * FROM weighed WHERE is_read OFFSET 0) AS read
    CROSS JOIN LATERAL (
        SELECT number, part, frequency, length FROM postings WHERE tier = %(tier)s AND term = read.term OFFSET 0
    ) AS held
    GROUP BY number, part
), best AS MATERIALIZED (
    SELECT seen.id, ranked.number, ranked.part, ranked.score
    FROM (SELECT * FROM scored ORDER BY score DESC, number DESC OFFSET 0) AS ranked
    CROSS JOIN LATERAL (SELECT t.id FROM {passage_filter} AS t WHERE t.number = ranked.number OFFSET 0) AS seen
    ORDER BY ranked.score DESC, ranked.number DESC
    LIMIT (SELECT CASE WHEN is_whole THEN %(limit)s::bigint ELSE %(looked_up)s END FROM asked)
)
SELECT id, number, (max(best.score + rest.score) / 1e7 / ideal)::float8 AS score, weights, mean_terms, ideal, is_whole
FROM best
CROSS JOIN asked
CROSS JOIN LATERAL (
    SELECT coalesce({score}, 0) AS score
    FROM (SELECT * FROM weighed WHERE NOT is_read OFFSET 0) AS unread
    CROSS JOIN LATERAL (
        SELECT frequency, length FROM postings
        WHERE tier = %(tier)s AND term = unread.term AND number = best.number AND part = best.part OFFSET 0
    ) AS held
) AS rest
GROUP BY id, number, weights, mean_terms, ideal, is_whole
ORDER BY 3 DESC, number DESC LIMIT %(limit)s

-- name: keyword_passage_in_scope
-- The same among passages.
WITH {weights}, best AS MATERIALIZED (
    SELECT number, {score} AS score
    FROM (SELECT * FROM weighed OFFSET 0) AS read
    CROSS JOIN LATERAL (
        SELECT number, part, frequency, length FROM postings
        WHERE tier = %(tier)s AND term = read.term
          AND (number IN (SELECT seen.number FROM {passage_filter} AS seen)) IS TRUE OFFSET 0
    ) AS held
    GROUP BY number, part ORDER BY 2 DESC, number DESC LIMIT %(limit)s
)
SELECT t.id, number, (max(best.score) / 1e7 / ideal)::float8 AS score, weights, mean_terms, ideal, true AS is_whole
FROM best
CROSS JOIN asked
CROSS JOIN LATERAL (SELECT id FROM passages AS t WHERE t.number = best.number OFFSET 0) AS t
GROUP BY t.id, number, weights, mean_terms, ideal
ORDER BY 3 DESC, number DESC

-- name: keyword_scores
-- The scores of some texts in the same search, 0 for those that are left out.
SELECT number, (max(score) / 1e7 / %(ideal)s)::float8
FROM (
    SELECT p.number, p.part, {score} AS score
    FROM postings p
    JOIN unnest(%(terms)s::text[], %(weights)s::float8[]) AS asked (term, weight) ON asked.term = p.term
    CROSS JOIN (SELECT %(mean_terms)s::float8 AS mean_terms) AS tier
    WHERE p.number = ANY (%(numbers)s) AND p.tier = %(tier)s
    GROUP BY p.number, p.part
) AS parts
GROUP BY number

-- name: vector_memory
-- The nearest memories by cosine, exactly, among those that may be seen. One with several parts may come several times.
-- A vector of an older text does not count. Rows are looked up as in the search by keyword.
SELECT seen.id, near.number, (1 - near.distance)::float8 AS score
FROM (
    SELECT number, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} WHERE tier = 'm' ORDER BY distance, number DESC OFFSET 0
) AS near
CROSS JOIN LATERAL (
    SELECT m.id FROM {memory_filter} AS m
    WHERE m.number = near.number AND m.content_hash = near.content_hash OFFSET 0
) AS seen
ORDER BY near.distance, near.number DESC
LIMIT %(limit)s

-- name: vector_passage
-- The same among passages.
SELECT seen.id, near.number, (1 - near.distance)::float8 AS score
FROM (
    SELECT number, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} WHERE tier = 'p' ORDER BY distance, number DESC OFFSET 0
) AS near
CROSS JOIN LATERAL (
    SELECT p.id FROM {passage_filter} AS p
    WHERE p.number = near.number AND p.content_hash = near.content_hash OFFSET 0
) AS seen
ORDER BY near.distance, near.number DESC
LIMIT %(limit)s

-- name: only_as_indexed
-- For the next statement of this transaction: rows come in the order of an index and are not sorted. By itself Postgres
-- takes an index of large vectors to be dearer than sorting them all.
SELECT set_config('enable_sort', 'off', true)

-- name: in_any_way
-- From here on Postgres chooses again.
SELECT set_config('enable_sort', 'on', true)

-- name: near_memory
-- The nearest memories by cosine, approximately, by the index of the tier: it walks on from the nearest (iterative scan,
-- see server/db/database.py) until enough of them may be seen, or two thousand were looked at. Its order is nearly that
-- of the distances. The pool is a constant here, or the index would be of no use; the exact statement has none, and
-- never uses the index.
SELECT seen.id, near.number, (1 - near.distance)::float8 AS score
FROM (
    SELECT number, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} WHERE pool_id = {pool} AND tier = 'm' ORDER BY embedding <=> %(vector)s::halfvec LIMIT 2000
) AS near
CROSS JOIN LATERAL (
    SELECT m.id FROM {memory_filter} AS m
    WHERE m.number = near.number AND m.content_hash = near.content_hash OFFSET 0
) AS seen
LIMIT %(limit)s

-- name: near_passage
-- The same among passages.
SELECT seen.id, near.number, (1 - near.distance)::float8 AS score
FROM (
    SELECT number, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} WHERE pool_id = {pool} AND tier = 'p' ORDER BY embedding <=> %(vector)s::halfvec LIMIT 2000
) AS near
CROSS JOIN LATERAL (
    SELECT p.id FROM {passage_filter} AS p
    WHERE p.number = near.number AND p.content_hash = near.content_hash OFFSET 0
) AS seen
LIMIT %(limit)s

-- name: filtered_memory
-- The nearest memories by cosine, exactly, from the other side: first those that may be seen, then their vectors. For
-- filters that leave few, where vector_memory would look at nearly every row of the pool before it has enough.
SELECT seen.id, seen.number, (1 - near.distance)::float8 AS score
FROM (SELECT m.id, m.number, m.content_hash FROM {memory_filter} AS m OFFSET 0) AS seen
CROSS JOIN LATERAL (
    SELECT v.embedding <=> %(vector)s::halfvec AS distance FROM {vectors} v
    WHERE v.tier = 'm' AND v.number = seen.number AND v.content_hash = seen.content_hash OFFSET 0
) AS near
ORDER BY near.distance, seen.number DESC
LIMIT %(limit)s

-- name: filtered_passage
-- The same among passages.
SELECT seen.id, seen.number, (1 - near.distance)::float8 AS score
FROM (SELECT p.id, p.number, p.content_hash FROM {passage_filter} AS p OFFSET 0) AS seen
CROSS JOIN LATERAL (
    SELECT v.embedding <=> %(vector)s::halfvec AS distance FROM {vectors} v
    WHERE v.tier = 'p' AND v.number = seen.number AND v.content_hash = seen.content_hash OFFSET 0
) AS near
ORDER BY near.distance, seen.number DESC
LIMIT %(limit)s

-- name: cosines
-- How near some texts are, by their nearest part; of many parts one is near by chance.
SELECT v.number, (max(1 - (v.embedding <=> %(vector)s::halfvec)) - %(by_chance)s * ln(count(*)))::float8
FROM {vectors} v WHERE v.tier = %(tier)s AND v.number = ANY (%(numbers)s) GROUP BY v.number

-- name: around
-- What stands next to some memories in their sessions, before and behind, as far as it may be seen.
SELECT m.number AS of_number, n.id, n.number
FROM memories m
CROSS JOIN LATERAL (
    (SELECT id, number FROM {memory_filter} AS n
     WHERE n.session_id = m.session_id AND n.said_at <= m.said_at AND (n.said_at, n.id) < (m.said_at, m.id)
     ORDER BY said_at DESC, id DESC LIMIT 1)
    UNION ALL
    (SELECT id, number FROM {memory_filter} AS n
     WHERE n.session_id = m.session_id AND n.said_at >= m.said_at AND (n.said_at, n.id) > (m.said_at, m.id)
     ORDER BY said_at, id LIMIT 1)
) AS n
WHERE m.number = ANY (%(numbers)s) AND m.session_id IS NOT NULL

-- name: told_memory
-- The latest memories that were said in a time, and those that are about it.
(SELECT m.id, m.number FROM {memory_filter} AS m
 WHERE m.said_at BETWEEN %(start)s AND %(end)s ORDER BY m.said_at DESC LIMIT %(limit)s)
UNION
(SELECT m.id, m.number FROM {memory_filter} AS m
 WHERE m.refers_from BETWEEN %(start)s AND %(end)s ORDER BY m.refers_from DESC LIMIT %(limit)s)

-- name: told_passage
-- The latest passages that were said in a time.
SELECT p.id, p.number FROM {passage_filter} AS p
WHERE p.said_to BETWEEN %(start)s AND %(end)s ORDER BY p.said_to DESC LIMIT %(limit)s

-- name: near_pairs
-- Which of some memories are near each other.
WITH asked AS MATERIALIZED (
    SELECT m.id, v.embedding
    FROM memories m JOIN {vectors} v ON v.tier = 'm' AND v.number = m.number AND v.part = 0
    WHERE m.id = ANY (%(ids)s)
)
SELECT one.id, other.id, (1 - (one.embedding <=> other.embedding))::float8
FROM asked AS one JOIN asked AS other ON one.id < other.id
WHERE one.embedding <=> other.embedding <= 1 - %(least)s::float8
