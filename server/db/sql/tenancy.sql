-- name: become_app_role
-- Give up whatever the login may do beyond the app role, for the life of the connection.
SET ROLE esker_app

-- name: see_one_moment
-- Let all statements of this transaction see what was committed by the first of them; it writes nothing.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY

-- name: enter_pool
-- Say whose rows this transaction may see, and make sure that it may see no others; both settings end with it.
SELECT set_config('role', 'esker_app', true), set_config('esker.pool_id', %(pool)s, true)
