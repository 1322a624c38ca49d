-- name: insert
-- Who did what to which id, without any content.
INSERT INTO audit (pool_id, at, actor, action, target, detail)
VALUES (current_pool(), %(now)s, %(actor)s, %(action)s, %(target)s, %(detail)s)
