-- name: try_lock
-- One migrator at a time in this database; the lock ends with the connection.
SELECT pg_try_advisory_lock(hashtext('esker migrate'))

-- name: lock
-- The same, but wait for another one.
SELECT pg_advisory_lock(hashtext('esker migrate'))

-- name: be_brief
-- Do not wait long for a table: requests that come later wait behind a migration, as long as it waits. A deadlock with a
-- request must end the migration, which is tried again, and not the request: so the migration gives up before a request
-- looks for a deadlock (after a second, `deadlock_timeout`), and where it may, it looks for one sooner.
SELECT set_config('lock_timeout', '900ms', true),
       CASE WHEN has_parameter_privilege('deadlock_timeout', 'SET')
            THEN set_config('deadlock_timeout', '50ms', true) END

-- name: create
-- The list of migrations that were applied here.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    -- The last migration that a server must know to work with this one.
    needs      integer NOT NULL DEFAULT 0
)

-- name: add_needs
-- Add the column `needs` to a list of migrations that an older version has made.
ALTER TABLE schema_migrations ADD COLUMN IF NOT EXISTS needs integer NOT NULL DEFAULT 0

-- name: exists
-- Whether this database was ever migrated, and whether the login may use any schema of its search path.
SELECT to_regclass('schema_migrations') IS NOT NULL, current_schema() IS NOT NULL

-- name: applied
-- The applied migrations with their checksums, and what servers they need; an older list does not say that.
SELECT version, checksum, coalesce((to_jsonb(m) ->> 'needs')::int, 0) FROM schema_migrations m

-- name: record
-- Record one migration, in its own transaction.
INSERT INTO schema_migrations (version, name, checksum, needs)
VALUES (%(version)s, %(name)s, %(checksum)s, %(needs)s)

-- name: publish
-- Let the server check whether the schema is current.
GRANT SELECT ON schema_migrations TO esker_app
