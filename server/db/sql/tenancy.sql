-- name: become_app_role
-- Give up whatever the login may do beyond the app role, for the life of the connection.
SET ROLE esker_app

-- name: enter_pool
-- Say whose rows this transaction may see, and make sure that it may see no others; both settings end with it.
SELECT set_config('role', 'esker_app', true), set_config('esker.pool_id', %(pool)s, true)
