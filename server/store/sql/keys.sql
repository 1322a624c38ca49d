-- name: find
-- The pool, the scopes and the binding of a valid key, by its hash.
SELECT pool_id::text, pool_name, key_id, scopes, last_used_on, client, project FROM find_api_key(%(hash)s, %(now)s)

-- name: keyless
-- A pool by its name, and whether any pool has ever had a key.
SELECT pool.id::text, pool.name, EXISTS (SELECT FROM pools WHERE keys_required) AS required
FROM (VALUES (%(name)s)) AS asked (name) LEFT JOIN pools AS pool USING (name)

-- name: any_required
-- Whether any pool has ever had a key.
SELECT EXISTS (SELECT FROM pools WHERE keys_required) AS required

-- name: note_use
-- Record the day on which a key was used, unless a later one is known.
UPDATE api_keys SET last_used_on = %(day)s
WHERE pool_id = current_pool() AND id = %(id)s AND (last_used_on IS NULL OR last_used_on < %(day)s)

-- name: insert
-- Store a new key's hash; the key itself is never stored. Does nothing if its name is taken.
INSERT INTO api_keys (pool_id, id, name, prefix, key_hash, scopes, client, project, created_at, expires_at)
VALUES (current_pool(), %(id)s, %(name)s, %(prefix)s, %(hash)s, %(scopes)s, %(client)s, %(project)s, %(now)s,
        %(expires)s)
ON CONFLICT (pool_id, name) WHERE revoked_at IS NULL DO NOTHING

-- name: list
-- The keys of this pool, revoked ones included.
SELECT id, name, prefix, scopes, client, project, created_at, expires_at, revoked_at, last_used_on
FROM api_keys ORDER BY created_at, id

-- name: revoke
-- Revoke a key by its id or its name.
UPDATE api_keys SET revoked_at = %(now)s
WHERE (id = %(key)s OR name = %(key)s) AND revoked_at IS NULL
RETURNING id
