-- name: insert
-- Add an entry: who did what to which id, without any content.
INSERT INTO audit (pool_id, at, actor, action, target, detail)
VALUES (current_pool(), %(now)s, %(actor)s, %(action)s, %(target)s, %(detail)s)

-- name: list
-- Entries of this pool, newest first.
SELECT id, at, actor, action, target, detail FROM audit
WHERE pool_id = current_pool() AND (%(before)s::bigint IS NULL OR id < %(before)s)
  AND (%(actor)s::text IS NULL OR actor = %(actor)s)
  AND (%(action)s::text IS NULL OR %(action)s IN (action, split_part(action, '.', 1)))
ORDER BY id DESC LIMIT %(limit)s
