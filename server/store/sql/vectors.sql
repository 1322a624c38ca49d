-- name: create_space
-- Make the table of a space, if it is not there.
SELECT create_embedding_space(%(space)s, %(dimension)s)

-- name: lock_spaces
-- One transaction at a time changes which spaces the pool has.
SELECT pg_advisory_xact_lock(hashtext('embedding_spaces'), hashtext(current_pool()::text))

-- name: register_space
-- Tell the pool about a space; the first becomes active at once, a later one is built beside it.
INSERT INTO embedding_spaces (pool_id, name, model, revision, dimension, prefix, source, state, created_at)
SELECT current_pool(), %(name)s, %(model)s, %(revision)s, %(dimension)s, %(prefix)s, %(source)s,
       CASE WHEN EXISTS (SELECT FROM embedding_spaces WHERE state = 'active') THEN 'building' ELSE 'active' END,
       %(now)s
ON CONFLICT (pool_id, name) DO UPDATE
    SET state = CASE embedding_spaces.state WHEN 'retired' THEN 'building' ELSE embedding_spaces.state END,
        source = excluded.source

-- name: spaces
-- The spaces of the pool.
SELECT name, source, state FROM embedding_spaces ORDER BY created_at

-- name: activate
-- Switch recall to a space that is complete, in one statement; nobody embeds for the one before any more.
WITH retired AS (
    DELETE FROM embedding_attempts a USING embedding_spaces s
    WHERE s.name = a.space AND s.state = 'active' AND s.name <> %(space)s
)
UPDATE embedding_spaces SET state = CASE WHEN name = %(space)s THEN 'active' ELSE 'retired' END
WHERE name = %(space)s OR state = 'active'

-- name: enqueue
-- Queue rows for every space that is kept; a row that is queued already starts again, and whoever works on it loses.
INSERT INTO embedding_attempts (pool_id, space, memory_id, urgency, not_before)
SELECT current_pool(), s.name, m.id, CASE m.priority WHEN 'high' THEN 3 WHEN 'medium' THEN 2 ELSE 1 END, %(now)s
FROM memories m CROSS JOIN embedding_spaces s
WHERE m.id = ANY (%(ids)s) AND s.state <> 'retired'
ON CONFLICT (pool_id, space, memory_id) DO UPDATE
    SET not_before = excluded.not_before, attempts = 0, dead = false, last_error = NULL,
        lease_token = NULL, lease_until = NULL

-- name: enqueue_missing
-- Queue rows that have neither a current vector nor a place in the queue.
INSERT INTO embedding_attempts (pool_id, space, memory_id, urgency, not_before)
SELECT current_pool(), %(space)s, m.id, CASE m.priority WHEN 'high' THEN 3 WHEN 'medium' THEN 2 ELSE 1 END, %(now)s
FROM memories m
WHERE NOT EXISTS (
    SELECT FROM {vectors} v WHERE v.memory_id = m.id AND v.content_hash = m.content_hash
    OFFSET 0 -- a look-up for each row, whatever the planner believes of a pool that was just filled
)
ORDER BY m.id
FOR KEY SHARE OF m -- a row that is being forgotten is waited for and left out
ON CONFLICT (pool_id, space, memory_id) DO NOTHING

-- name: delete_orphans
-- Delete vectors whose rows are gone.
DELETE FROM {vectors} v WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = v.memory_id OFFSET 0)

-- name: bury
-- A row whose worker died once too often is dead: what kills its worker would kill the next one.
UPDATE embedding_attempts
SET dead = true, lease_token = NULL, lease_until = NULL,
    last_error = coalesce(last_error, 'its worker died, ' || attempts || ' times')
WHERE space = %(space)s AND NOT dead AND lease_until <= %(now)s AND attempts >= %(most)s

-- name: claim
-- Take the most urgent and newest rows that are due, either such as were never tried or such as were.
WITH due AS (
    SELECT memory_id FROM embedding_attempts
    WHERE space = %(space)s AND NOT dead AND not_before <= %(now)s AND (attempts > 0) = %(tried)s
      AND (lease_until IS NULL OR lease_until <= %(now)s)
    ORDER BY urgency DESC, memory_id DESC
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE embedding_attempts a
SET lease_token = %(token)s, lease_until = %(until)s, attempts = attempts + 1
FROM due JOIN memories m ON m.id = due.memory_id
WHERE a.space = %(space)s AND a.memory_id = due.memory_id
RETURNING a.memory_id, m.content, m.content_hash, a.attempts

-- name: store
-- Keep vectors of rows that still say what was embedded and are still ours, and take those off the queue. The rows are
-- held meanwhile, so that a row which is being forgotten leaves no vector behind.
WITH held AS (
    SELECT id, content_hash FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR KEY SHARE
), made AS (
    SELECT new.memory_id, new.content_hash, new.embedding
    FROM unnest(%(ids)s::text[], %(hashes)s::bytea[], %(vectors)s::text[]) AS new (memory_id, content_hash, embedding)
    JOIN held ON held.id = new.memory_id AND held.content_hash = new.content_hash
    JOIN embedding_attempts a
        ON a.space = %(space)s AND a.memory_id = new.memory_id AND a.lease_token = %(token)s
), stored AS (
    INSERT INTO {vectors} (pool_id, memory_id, content_hash, embedding, created_at)
    SELECT current_pool(), memory_id, content_hash, embedding::halfvec, %(now)s FROM made
    ON CONFLICT (pool_id, memory_id) DO UPDATE
        SET content_hash = excluded.content_hash, embedding = excluded.embedding, created_at = excluded.created_at
    RETURNING memory_id
)
DELETE FROM embedding_attempts a USING stored
WHERE a.space = %(space)s AND a.memory_id = stored.memory_id

-- name: fail
-- A row failed: let it cool down or, after too many tries, lie dead with its error.
UPDATE embedding_attempts
SET lease_token = NULL, lease_until = NULL, last_error = %(error)s, not_before = %(not_before)s, dead = %(dead)s
WHERE space = %(space)s AND memory_id = %(id)s AND lease_token = %(token)s

-- name: release
-- Give rows back untried: it was not their fault.
UPDATE embedding_attempts
SET lease_token = NULL, lease_until = NULL, attempts = attempts - 1, last_error = %(error)s,
    not_before = %(not_before)s
WHERE space = %(space)s AND lease_token = %(token)s

-- name: revive
-- Try dead rows again.
UPDATE embedding_attempts SET dead = false, attempts = 0, not_before = %(now)s WHERE dead

-- name: waiting
-- Rows that recall cannot find by meaning yet, in a space; those that cannot be embedded are not waited for.
SELECT count(*) FROM embedding_attempts WHERE space = %(space)s AND NOT dead

-- name: untried
-- Rows of a space that were never tried.
SELECT count(*) FROM embedding_attempts WHERE space = %(space)s AND NOT dead AND attempts = 0

-- name: live_rows
-- Rows that recall may find.
SELECT count(*) FROM memories WHERE superseded_at IS NULL

-- name: delete
-- Delete the vectors of rows.
DELETE FROM {vectors} WHERE memory_id = ANY (%(ids)s)

-- name: notify
-- Wake the embedding worker.
SELECT pg_notify('esker_embed', '')

-- name: of_rows
-- The current vectors of some rows in a space.
SELECT v.memory_id, v.embedding::text
FROM memories m JOIN {vectors} v ON v.memory_id = m.id AND v.content_hash = m.content_hash
WHERE m.id = ANY (%(ids)s)
