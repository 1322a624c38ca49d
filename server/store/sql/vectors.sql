-- name: create_space
-- Make the table of a space if it does not exist.
SELECT create_embedding_space(%(space)s, %(dimension)s)

-- name: lock_spaces
-- One transaction at a time changes the pool's list of spaces, or queues missing vectors.
SELECT pg_advisory_xact_lock(hashtext('embedding_spaces'), hashtext(current_pool()::text))

-- name: register_space
-- Add a space to the pool; the first becomes active at once, a later one is built beside it.
INSERT INTO embedding_spaces (pool_id, name, model, revision, dimension, prefix, source, calibration, state, chosen,
                              created_at)
SELECT current_pool(), %(name)s, %(model)s, %(revision)s, %(dimension)s, %(prefix)s, %(source)s, %(calibration)s::jsonb,
       CASE WHEN EXISTS (SELECT FROM embedding_spaces WHERE state = 'active') THEN 'building' ELSE 'active' END,
       %(chosen)s, %(now)s
ON CONFLICT (pool_id, name) DO UPDATE
    SET state = CASE embedding_spaces.state WHEN 'retired' THEN 'building' ELSE embedding_spaces.state END,
        source = excluded.source, calibration = excluded.calibration, chosen = embedding_spaces.chosen OR excluded.chosen

-- name: recalibrate
-- Store a new calibration of a space.
UPDATE embedding_spaces SET calibration = %(calibration)s::jsonb
WHERE name = %(space)s AND calibration <> %(calibration)s::jsonb

-- name: chosen_sources
-- The embedder settings of the spaces that `esker reembed` chose, in all pools.
SELECT source FROM chosen_sources()

-- name: spaces
-- The spaces of the pool, and their tiers with an index.
SELECT name, model, dimension, source, state, chosen, left_at, calibration,
       ARRAY(SELECT mark FROM unnest(ARRAY ['m', 'p']) AS mark
             WHERE to_regclass(vector_index(pool_id, name, mark::"char")) IS NOT NULL),
       pool_id::text
FROM embedding_spaces ORDER BY created_at, name

-- name: activate
-- Switch recall to a complete space, or back to a former one, and delete the queue of the space it leaves. A transaction
-- that also locks texts must do so before this.
WITH held AS (
    SELECT a.space, a.number FROM embedding_attempts a JOIN embedding_spaces s ON s.name = a.space
    WHERE s.state = 'active' AND s.name <> %(space)s
    ORDER BY a.tier DESC, a.number, a.space FOR UPDATE OF a
), retired AS (
    DELETE FROM embedding_attempts a USING held WHERE a.space = held.space AND a.number = held.number
)
UPDATE embedding_spaces
SET state = CASE WHEN name = %(space)s THEN 'active' ELSE 'retired' END,
    left_at = CASE WHEN name = %(space)s THEN NULL ELSE %(now)s::timestamptz END,
    -- A newer revision of a chosen model counts as chosen, too.
    chosen = name = %(space)s AND (%(chosen)s OR EXISTS (
        SELECT FROM embedding_spaces s WHERE s.chosen AND (s.state = 'active' OR s.name = %(space)s)))
WHERE name = %(space)s OR state = 'active'

-- name: choose_active
-- Have the pool keep its active space.
UPDATE embedding_spaces SET chosen = true WHERE state = 'active'

-- name: give_up
-- Keep the active space: spaces that are being built are retired, and their vectors kept.
WITH held AS (
    SELECT a.space, a.number FROM embedding_attempts a JOIN embedding_spaces s ON s.name = a.space
    WHERE s.state = 'building'
    ORDER BY a.tier DESC, a.number, a.space FOR UPDATE OF a
), unwanted AS (
    DELETE FROM embedding_attempts a USING held WHERE a.space = held.space AND a.number = held.number
)
UPDATE embedding_spaces
SET state = CASE state WHEN 'building' THEN 'retired' ELSE state END, chosen = state = 'active'
WHERE state <> 'retired'

-- name: delete_all
-- Delete all vectors that the pool has in a space.
WITH held AS (
    SELECT tier, number, part FROM {vectors} ORDER BY tier DESC, number, part FOR UPDATE
)
DELETE FROM {vectors} v USING held WHERE v.tier = held.tier AND v.number = held.number AND v.part = held.part

-- name: delete_retired
-- Delete a retired space from the pool's list.
DELETE FROM embedding_spaces WHERE name = %(space)s AND state = 'retired'

-- name: missing
-- How many texts the pool has, memories and passages; how many have no current vector in a space; and how many in its
-- queue wait or are dead.
SELECT (SELECT count(*) FROM memories) + (SELECT count(*) FROM passages),
       (SELECT count(*) FROM memories m WHERE NOT EXISTS (
            SELECT FROM {vectors} v
            WHERE v.tier = 'm' AND v.number = m.number AND v.part = 0 AND v.content_hash = m.content_hash OFFSET 0))
       + (SELECT count(*) FROM passages p WHERE NOT EXISTS (
            SELECT FROM {vectors} v
            WHERE v.tier = 'p' AND v.number = p.number AND v.part = 0 AND v.content_hash = p.content_hash OFFSET 0)),
       (SELECT count(*) FROM embedding_attempts WHERE space = %(space)s AND NOT dead),
       (SELECT count(*) FROM embedding_attempts WHERE space = %(space)s AND dead)

-- name: queued
-- How many texts wait for a vector in each space, and how many were refused for good.
SELECT space, count(*) FILTER (WHERE NOT dead), count(*) FILTER (WHERE dead) FROM embedding_attempts GROUP BY space

-- name: enqueue
-- Queue memories for every space that is not retired; one that is queued already starts again, and a worker that has
-- claimed it loses its lease.
INSERT INTO embedding_attempts (pool_id, space, tier, number, urgency, not_before)
SELECT current_pool(), s.name, 'm', m.number, CASE m.priority WHEN 'high' THEN 3 WHEN 'medium' THEN 2 ELSE 1 END,
       %(now)s
FROM memories m CROSS JOIN embedding_spaces s
WHERE m.id = ANY (%(ids)s) AND s.state <> 'retired'
ORDER BY m.number, s.name
ON CONFLICT (pool_id, space, number) DO UPDATE
    SET not_before = excluded.not_before, attempts = 0, dead = false, last_error = NULL,
        lease_token = NULL, lease_until = NULL

-- name: enqueue_missing
-- Queue memories that have neither a current vector nor a queue entry.
INSERT INTO embedding_attempts (pool_id, space, tier, number, urgency, not_before)
SELECT current_pool(), %(space)s, 'm', m.number, CASE m.priority WHEN 'high' THEN 3 WHEN 'medium' THEN 2 ELSE 1 END,
       %(now)s
FROM memories m
WHERE NOT EXISTS (
    SELECT FROM {vectors} v
    WHERE v.tier = 'm' AND v.number = m.number AND v.part = 0 AND v.content_hash = m.content_hash
    OFFSET 0 -- forces a look-up for each row, also before the first ANALYZE of a new pool
)
ORDER BY m.id
FOR KEY SHARE OF m -- waits for a row that is being forgotten, and leaves it out
ON CONFLICT (pool_id, space, number) DO NOTHING

-- name: enqueue_missing_passages
-- The same for passages.
INSERT INTO embedding_attempts (pool_id, space, tier, number, urgency, not_before)
SELECT current_pool(), %(space)s, 'p', p.number, 0, %(now)s
FROM passages p
WHERE NOT EXISTS (
    SELECT FROM {vectors} v
    WHERE v.tier = 'p' AND v.number = p.number AND v.part = 0 AND v.content_hash = p.content_hash
    OFFSET 0
)
ORDER BY p.id
FOR KEY SHARE OF p
ON CONFLICT (pool_id, space, number) DO NOTHING

-- name: delete_orphans
-- Delete the vectors of deleted texts.
WITH held AS (
    SELECT tier, number, part FROM {vectors} v
    WHERE NOT EXISTS (SELECT FROM memories m WHERE m.number = v.number OFFSET 0)
      AND NOT EXISTS (SELECT FROM passages p WHERE p.number = v.number OFFSET 0)
    ORDER BY tier DESC, number, part FOR UPDATE
)
DELETE FROM {vectors} v USING held WHERE v.tier = held.tier AND v.number = held.number AND v.part = held.part

-- name: bury
-- Mark a row dead whose worker has died too often: it would kill the next worker, too. Locked rows are skipped: another
-- transaction is changing them.
WITH due AS (
    SELECT number FROM embedding_attempts
    WHERE space = %(space)s AND NOT dead AND lease_until <= %(now)s AND attempts >= %(most)s
    FOR UPDATE SKIP LOCKED
)
UPDATE embedding_attempts a
SET dead = true, lease_token = NULL, lease_until = NULL,
    last_error = coalesce(last_error, 'its worker died, ' || attempts || ' times')
FROM due WHERE a.space = %(space)s AND a.number = due.number

-- name: due_since
-- The due time of the row that will be claimed last.
SELECT not_before FROM embedding_attempts
WHERE space = %(space)s AND NOT dead AND not_before <= %(now)s AND (lease_until IS NULL OR lease_until <= %(now)s)
ORDER BY urgency, number
LIMIT 1

-- name: claim
-- Claim the most urgent and newest rows that are due, among those that were tried before, or were not. Rows whose worker
-- died once count as untried: it probably died of something else.
WITH due AS (
    SELECT number FROM embedding_attempts
    WHERE space = %(space)s AND NOT dead AND not_before <= %(now)s AND (attempts > 1 OR (attempts = 1 AND last_error IS NOT NULL)) = %(tried)s
      AND (lease_until IS NULL OR lease_until <= %(now)s)
    ORDER BY urgency DESC, number DESC
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE embedding_attempts a
SET lease_token = %(token)s, lease_until = %(until)s, attempts = attempts + 1
FROM due
CROSS JOIN LATERAL (
    SELECT m.id, m.content, m.content_hash FROM memories m WHERE m.number = due.number
    UNION ALL
    SELECT p.id, p.text, p.content_hash FROM passages p WHERE p.number = due.number
) AS found
WHERE a.space = %(space)s AND a.number = due.number
RETURNING found.id, a.number, found.content, found.content_hash, a.attempts

-- name: store
-- Store vectors for texts that are unchanged and whose lease is still valid, and delete their queue entries. The texts
-- are locked, so that no vector of a forgotten text remains.
WITH memory AS (
    SELECT number, content_hash FROM memories WHERE number = ANY (%(numbers)s::bigint[]) ORDER BY id FOR KEY SHARE
), passage AS (
    SELECT number, content_hash FROM passages WHERE number = ANY (%(numbers)s::bigint[]) ORDER BY id FOR KEY SHARE
), held AS (
    SELECT * FROM memory UNION ALL SELECT * FROM passage
), leased AS (
    SELECT a.tier, a.number FROM held JOIN embedding_attempts a ON a.number = held.number
    WHERE a.space = %(space)s AND a.lease_token = %(token)s
    ORDER BY a.tier DESC, a.number FOR UPDATE OF a
), made AS (
    SELECT leased.tier, new.number, new.part, new.content_hash, new.embedding
    FROM unnest(%(numbers)s::bigint[], %(parts)s::int[], %(hashes)s::bytea[], %(vectors)b::halfvec[])
        AS new (number, part, content_hash, embedding)
    JOIN held ON held.number = new.number AND held.content_hash = new.content_hash
    JOIN leased ON leased.number = new.number
), stored AS (
    INSERT INTO {vectors} (pool_id, tier, number, part, content_hash, embedding, created_at)
    SELECT current_pool(), tier, number, part, content_hash, embedding, %(now)s FROM made
    ORDER BY tier DESC, number, part
    ON CONFLICT (pool_id, tier, number, part) DO UPDATE
        SET content_hash = excluded.content_hash, embedding = excluded.embedding, created_at = excluded.created_at
    RETURNING number, part
)
DELETE FROM embedding_attempts a USING stored
WHERE a.space = %(space)s AND a.number = stored.number AND stored.part = 0

-- name: fail
-- A row failed: retry it after a cooldown or, after too many tries, mark it dead, with its error.
UPDATE embedding_attempts
SET lease_token = NULL, lease_until = NULL, last_error = %(error)s, not_before = %(not_before)s, dead = %(dead)s
WHERE space = %(space)s AND number = %(number)s AND lease_token = %(token)s

-- name: release
-- Release rows without counting an attempt: the failure was not theirs.
WITH held AS (
    SELECT number FROM embedding_attempts WHERE space = %(space)s AND lease_token = %(token)s
    ORDER BY tier DESC, number FOR UPDATE
)
UPDATE embedding_attempts a
SET lease_token = NULL, lease_until = NULL, attempts = attempts - 1, last_error = %(error)s,
    not_before = %(not_before)s
FROM held WHERE a.space = %(space)s AND a.number = held.number

-- name: revive
-- Queue dead rows again.
WITH held AS (
    SELECT space, number FROM embedding_attempts WHERE dead ORDER BY tier DESC, number, space FOR UPDATE
)
UPDATE embedding_attempts a SET dead = false, attempts = 0, not_before = %(now)s
FROM held WHERE a.space = held.space AND a.number = held.number

-- name: bring_forward
-- Make rows due that wait for longer than any cooldown, as they do when the clock was set back: `untried` and `tried` are
-- the latest times for which a row can wait.
WITH held AS (
    SELECT number FROM embedding_attempts
    WHERE space = %(space)s AND NOT dead AND not_before > CASE attempts WHEN 0 THEN %(untried)s::timestamptz
                                                                          ELSE %(tried)s::timestamptz END
    ORDER BY tier DESC, number FOR UPDATE
)
UPDATE embedding_attempts a SET not_before = %(now)s
FROM held WHERE a.space = %(space)s AND a.number = held.number

-- name: waiting
-- How many rows wait for a vector in the active space, without dead ones.
SELECT count(*) FROM embedding_attempts
WHERE space = (SELECT name FROM embedding_spaces WHERE state = 'active') AND NOT dead

-- name: unfinished
-- How many rows of a space were never tried, are with a worker, or were with a worker that died.
SELECT count(*) FROM embedding_attempts
WHERE space = %(space)s AND NOT dead AND (attempts = 0 OR last_error IS NULL)

-- name: live_rows
-- How many live rows and passages the pool has.
SELECT (SELECT count(*) FROM memories WHERE superseded_at IS NULL) + (SELECT count(*) FROM passages)

-- name: delete
-- Delete vectors.
WITH held AS (
    SELECT number, part FROM {vectors} WHERE tier = %(tier)s AND number = ANY (%(numbers)s)
    ORDER BY number, part FOR UPDATE
)
DELETE FROM {vectors} v USING held WHERE v.tier = %(tier)s AND v.number = held.number AND v.part = held.part

-- name: notify
-- Wake the embedding worker.
SELECT pg_notify('esker_embed', '')

-- name: of_rows
-- The current vectors of some rows in a space.
SELECT m.id, v.embedding
FROM memories m
JOIN {vectors} v ON v.tier = 'm' AND v.number = m.number AND v.part = 0 AND v.content_hash = m.content_hash
WHERE m.id = ANY (%(ids)s)
