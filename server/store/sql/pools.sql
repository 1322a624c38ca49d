-- name: create
-- Make a pool; returns no row if one with this name exists.
INSERT INTO pools (name) VALUES (%(name)s) ON CONFLICT (name) DO NOTHING RETURNING id::text, name

-- name: notify
-- Wake the embedding worker.
SELECT pg_notify('esker_embed', '')

-- name: list
-- All pools by name.
SELECT id::text, name, keys_required, passages, created_at FROM pools ORDER BY name

-- name: by_name
-- Find a pool.
SELECT id::text, name FROM pools WHERE name = %(name)s

-- name: ids
-- The ids of all pools.
SELECT id::text FROM pools
