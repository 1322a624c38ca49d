-- name: key
-- The key of the pool's hashes, and how forgotten words begin; no row before the first forgetting.
SELECT key, starts FROM forget_keys

-- name: ensure_key
-- The same, with a new key if there is none. Other transactions that forget in this pool wait from here on.
INSERT INTO forget_keys (pool_id, key) VALUES (current_pool(), %(key)s)
ON CONFLICT (pool_id) DO UPDATE SET key = forget_keys.key
RETURNING key, starts

-- name: add_starts
-- Add how words begin, each once.
UPDATE forget_keys SET starts = ARRAY (SELECT DISTINCT unnest(starts || %(starts)s::bigint[]) ORDER BY 1)
RETURNING key, starts

-- name: add
-- Add tombstones of one receipt.
INSERT INTO tombstones (pool_id, digest, receipt_id, until, blanks)
SELECT current_pool(), digest, %(receipt)s, CASE WHEN bounded THEN %(now)s::timestamptz END, %(blanks)s
FROM unnest(%(digests)s::bytea[], %(bounded)s::boolean[]) AS new (digest, bounded)
ORDER BY digest
ON CONFLICT (pool_id, digest, receipt_id) DO UPDATE SET until = NULL WHERE excluded.until IS NULL

-- name: known
-- Those of some hashes that are tombstones: up to when they hold at the latest, and whether one of them blanks.
SELECT digest, CASE WHEN bool_or(until IS NULL) THEN NULL ELSE max(until) END, bool_or(blanks)
FROM tombstones WHERE digest = ANY (%(digests)s) GROUP BY digest

-- name: of_receipt
-- The hashes of one receipt.
SELECT digest FROM tombstones WHERE receipt_id = %(receipt)s

-- name: lift
-- Delete the tombstones of a receipt: what it forgot may come back.
DELETE FROM tombstones WHERE receipt_id = %(receipt)s

-- name: hashed_messages
-- Messages with the hashes of their content, without those that are forgotten already.
SELECT m.content_hash, m.external_id, m.text, m.content
FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS asked (session_id, seq)
JOIN messages m ON m.session_id = asked.session_id AND m.seq = asked.seq
WHERE m.content_hash <> '\x'

-- name: projects
-- The projects of the pool, as its memories have them or had them.
SELECT project FROM memories WHERE project IS NOT NULL
UNION SELECT former_project FROM former_projects

-- name: all_message_hashes
-- The hashes of the content of all messages.
SELECT content_hash FROM messages WHERE content_hash <> '\x'

-- name: stored_rows
-- The next memories in the order of their ids, as they are compared with what was forgotten.
SELECT id, content, said_at, project FROM memories WHERE id > %(after)s ORDER BY id LIMIT %(limit)s

-- name: stored_notes
-- The tasks, continuations and titles of sessions and of their groups.
SELECT session_id, note, said_at, project
FROM (
    SELECT id AS session_id, coalesce(last_sent_at, created_at) AS said_at, project, current_task,
           suggested_continuation, thread_title
    FROM sessions
    UNION ALL
    SELECT g.session_id, g.created_at, s.project, g.current_task, g.suggested_continuation, g.thread_title
    FROM observation_groups g JOIN sessions s ON s.id = g.session_id
) AS t
CROSS JOIN LATERAL unnest(ARRAY [t.current_task, t.suggested_continuation, t.thread_title]) AS note
WHERE note IS NOT NULL

-- name: stored_messages
-- The next messages that still have their words, in the order of their sessions.
SELECT session_id, seq, content_hash, external_id, sent_at, text, content, left_out FROM messages
WHERE (session_id, seq) > (%(after_session)s, %(after_seq)s::bigint) AND content_hash <> '\x'
ORDER BY session_id, seq LIMIT %(limit)s
