-- name: latest
-- The pack that a session has now.
SELECT version, text, sha256, tokens, memory_ids, reason, created_at FROM packs
WHERE session_id = %(session)s
ORDER BY version DESC
LIMIT 1

-- name: insert
-- Freeze a new version.
INSERT INTO packs (pool_id, session_id, version, text, sha256, tokens, memory_ids, reason, created_at)
VALUES (current_pool(), %(session)s, %(version)s, %(text)s, %(sha256)s, %(tokens)s, %(memory_ids)s, %(reason)s,
        %(created_at)s)

-- name: showing
-- Sessions of which some version of the pack shows one of these rows.
SELECT DISTINCT session_id FROM packs WHERE memory_ids && %(ids)s

-- name: delete_showing
-- Delete every version that shows one of these rows.
DELETE FROM packs WHERE memory_ids && %(ids)s
