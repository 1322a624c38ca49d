-- name: become_app_role
-- Give up all rights of the login beyond those of the app role, for the life of the connection.
SET ROLE esker_app

-- name: act_as_app
-- The same until the end of the transaction, for connections that other clients use as well.
SELECT set_config('role', 'esker_app', true)

-- name: limit
-- The settings that a connection of its own gets when it is opened, until the end of the transaction.
SELECT set_config('statement_timeout', '30s', true), set_config('lock_timeout', '10s', true),
       set_config('idle_in_transaction_session_timeout', '60s', true), set_config('timezone', 'UTC', true),
       set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.ef_search', '200', true)
-- name: read_clock
-- Read the clock of the database.
SELECT clock_timestamp()

-- name: live
-- Show that this process lives: hold a lock on its number as long as this connection exists.
SELECT pg_try_advisory_lock(%(number)s)

-- name: see_one_moment
-- Give all statements of this read-only transaction the same snapshot.
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY

-- name: enter_pool
-- Limit this transaction to the rows of one pool, under a role that cannot bypass this; both settings end with it.
SELECT set_config('role', 'esker_app', true), set_config('esker.pool_id', %(pool)s, true)

-- name: enter_project
-- The same for one project of a pool, under the role that sees only this project and what belongs to none.
SELECT set_config('role', 'esker_project', true), set_config('esker.pool_id', %(pool)s, true),
       set_config('esker.project', %(project)s, true)

-- name: begin
-- Begin a transaction in a pipeline.
BEGIN

-- name: begin_moment
-- Begin a read-only transaction in a pipeline, whose statements all see the same snapshot.
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY

-- name: commit
-- End a transaction in a pipeline.
COMMIT
