-- name: current
-- The pack that a session has now: the last one that was frozen, unless it was forgotten.
SELECT p.version, p.text, p.sha256, p.tokens, p.memory_ids, p.pins_left, p.reason, p.created_at
FROM sessions s JOIN packs p ON p.session_id = s.id AND p.version = s.pack_version
WHERE s.id = %(session)s

-- name: delete_former
-- Delete the versions before; nobody can ask for them any more.
DELETE FROM packs WHERE session_id = %(session)s AND version < %(version)s

-- name: insert
-- Freeze a new version.
INSERT INTO packs (pool_id, session_id, version, text, sha256, tokens, memory_ids, pins_left, reason, created_at)
VALUES (current_pool(), %(session)s, %(version)s, %(text)s, %(sha256)s, %(tokens)s, %(memory_ids)s, %(pins_left)s,
        %(reason)s, %(created_at)s)

-- name: delete_showing
-- Delete every version that shows one of these rows.
DELETE FROM packs WHERE memory_ids && %(ids)s
