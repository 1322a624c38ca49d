-- name: create
-- Make a pool; nothing comes back when there is one of that name.
INSERT INTO pools (name) VALUES (%(name)s) ON CONFLICT (name) DO NOTHING RETURNING id::text, name

-- name: notify
-- Wake the embedding worker, which makes the pool's vectors.
SELECT pg_notify('esker_embed', '')

-- name: list
-- All pools by name.
SELECT id::text, name, keys_required, passages, created_at FROM pools ORDER BY name

-- name: by_name
-- Find a pool.
SELECT id::text, name FROM pools WHERE name = %(name)s

-- name: ids
-- Every pool.
SELECT id::text FROM pools
