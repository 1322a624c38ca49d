-- columns: quarantine
id, session_id, project, client, source, since, until, created_at, lifted_at

-- name: insert
-- Begin a quarantine.
INSERT INTO quarantines (pool_id, id, session_id, project, client, source, since, until, created_at)
VALUES (current_pool(), %(id)s, %(session_id)s, %(project)s, %(client)s, %(source)s, %(since)s, %(until)s, %(now)s)

-- name: list
-- All quarantines, the latest first.
SELECT {quarantine} FROM quarantines ORDER BY created_at DESC, id DESC

-- name: active
-- The quarantines that are not lifted, oldest first.
SELECT {quarantine} FROM quarantines WHERE lifted_at IS NULL ORDER BY created_at, id

-- name: lock
-- One transaction at a time begins, extends or lifts quarantines of a pool, or forgets: it changes states that they keep.
SELECT pg_advisory_xact_lock(hashtext('quarantine'), hashtext(current_pool()::text))

-- name: lift
-- End a quarantine; returns no row if it is lifted already.
UPDATE quarantines SET lifted_at = %(now)s WHERE id = %(id)s AND lifted_at IS NULL RETURNING id

-- name: memories
-- The memories within the limits that are not in quarantine yet.
SELECT m.id
FROM memories m LEFT JOIN sessions s ON s.id = m.session_id
WHERE (m.superseded_by IS NULL OR left(m.superseded_by, 4) <> 'qua_')
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(project)s::text IS NULL OR m.project = %(project)s)
  AND (%(client)s::text IS NULL OR s.client = %(client)s)
  AND (%(source)s::text IS NULL OR %(source)s IN (m.trust, m.author))
  AND (%(since)s::timestamptz IS NULL OR m.said_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR m.said_at <= %(until)s)

-- name: sessions
-- The sessions with a message within the limits that are not in quarantine yet.
SELECT s.id FROM sessions s
WHERE s.quarantine_id IS NULL
  AND (%(session_id)s::text IS NULL OR s.id = %(session_id)s)
  AND (%(project)s::text IS NULL OR s.project = %(project)s)
  AND (%(client)s::text IS NULL OR s.client = %(client)s)
  AND EXISTS (
    SELECT FROM messages m
    WHERE m.session_id = s.id
      AND (%(source)s::text IS NULL OR m.trust = %(source)s)
      AND (%(since)s::timestamptz IS NULL OR m.sent_at >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR m.sent_at <= %(until)s))

-- name: keep_state
-- Keep the state of memories as it is, to which they return.
INSERT INTO quarantined_memories (pool_id, quarantine_id, memory_id, superseded_by, superseded_at, outdated_at)
SELECT current_pool(), %(id)s, m.id, m.superseded_by, m.superseded_at, m.outdated_at
FROM memories m WHERE m.id = ANY (%(ids)s) ORDER BY m.id
ON CONFLICT (pool_id, quarantine_id, memory_id) DO NOTHING

-- name: hide_memories
-- Supersede memories as if they had never been valid. The caller has locked them.
UPDATE memories SET superseded_by = %(id)s, superseded_at = %(now)s, outdated_at = '-infinity'
WHERE id = ANY (%(ids)s)

-- name: hide_passages
-- Put the passages within the limits into quarantine.
WITH held AS (
    SELECT p.id FROM passages p JOIN sessions s ON s.id = p.session_id
    WHERE p.quarantine_id IS NULL
      AND (%(session_id)s::text IS NULL OR p.session_id = %(session_id)s)
      AND (%(project)s::text IS NULL OR p.project = %(project)s)
      AND (%(client)s::text IS NULL OR s.client = %(client)s)
      AND (%(source)s::text IS NULL OR p.trust = %(source)s)
      AND (%(since)s::timestamptz IS NULL OR p.said_to >= %(since)s)
      AND (%(until)s::timestamptz IS NULL OR p.said_from <= %(until)s)
    ORDER BY p.id FOR NO KEY UPDATE OF p
)
UPDATE passages p SET quarantine_id = %(id)s FROM held WHERE p.id = held.id

-- name: hide_sessions
-- Put sessions into quarantine. The caller has locked them.
UPDATE sessions SET quarantine_id = %(id)s WHERE id = ANY (%(ids)s) AND quarantine_id IS NULL

-- name: hidden
-- The memories in a quarantine, those that are live meanwhile, and its sessions.
SELECT m.id, NULL FROM memories m WHERE m.superseded_by = %(id)s
UNION
SELECT memory_id, NULL FROM quarantined_memories WHERE quarantine_id = %(id)s
UNION ALL
SELECT NULL, s.id FROM sessions s WHERE s.quarantine_id = %(id)s

-- name: restore_memories
-- Return memories to the state before a quarantine. A note that was written again meanwhile stays superseded by its new
-- version; a memory that was live meanwhile is superseded again by the one that is back. The caller has locked them.
UPDATE memories m
SET superseded_by = coalesce(k.superseded_by, again.id),
    superseded_at = CASE WHEN k.superseded_by IS NULL AND again.id IS NOT NULL THEN m.superseded_at ELSE k.superseded_at END,
    outdated_at = CASE WHEN k.superseded_by IS NULL THEN again.said_at ELSE k.outdated_at END
FROM quarantined_memories k
JOIN memories kept ON kept.id = k.memory_id
LEFT JOIN memories again
    ON again.external_id = kept.external_id AND again.superseded_at IS NULL AND again.id <> kept.id
WHERE k.quarantine_id = %(id)s AND m.id = k.memory_id
  AND (m.superseded_by = %(id)s
       OR m.superseded_at IS NULL AND k.superseded_by IS NOT NULL
          AND EXISTS (SELECT FROM memories s WHERE s.id = k.superseded_by))

-- name: forget_superseders
-- Let the memories in quarantine that these rows superseded be live again after it. The caller has locked the pool's
-- quarantines.
UPDATE quarantined_memories SET superseded_by = NULL, superseded_at = NULL, outdated_at = NULL
WHERE superseded_by = ANY (%(ids)s)

-- name: hand_over_states
-- Later quarantines have kept memories as this one left them: give them the states before it.
UPDATE quarantined_memories later
SET superseded_by = k.superseded_by, superseded_at = k.superseded_at, outdated_at = k.outdated_at
FROM quarantined_memories k
WHERE k.quarantine_id = %(id)s AND later.memory_id = k.memory_id AND later.quarantine_id > k.quarantine_id

-- name: drop_states
-- Delete the states that a quarantine has kept.
DELETE FROM quarantined_memories WHERE quarantine_id = %(id)s

-- name: restore_passages
-- Take passages out of a quarantine.
WITH held AS (
    SELECT id FROM passages WHERE quarantine_id = %(id)s ORDER BY id FOR NO KEY UPDATE
)
UPDATE passages p SET quarantine_id = NULL FROM held WHERE p.id = held.id

-- name: restore_sessions
-- Take sessions out of a quarantine. The caller has locked them.
UPDATE sessions SET quarantine_id = NULL WHERE quarantine_id = %(id)s

-- name: pools
-- The pools with a quarantine.
SELECT pool_id::text FROM pools_with_quarantine()
