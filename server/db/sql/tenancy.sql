-- name: become_app_role
-- Give up whatever the login may do beyond the app role, for the life of the connection.
SET ROLE esker_app

-- name: enter_pool
-- Say whose rows this transaction may see; the setting ends with it.
SELECT set_config('esker.pool_id', %(pool)s, true)

-- name: pool_by_name
-- Find a pool.
SELECT id::text, name FROM pools WHERE name = %(name)s
