-- name: lock
-- One migrator at a time in this database; the lock ends with the connection.
SELECT pg_advisory_lock(hashtext('esker migrate'))

-- name: create
-- The list of migrations that were applied here.
CREATE TABLE IF NOT EXISTS schema_migrations (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    checksum   text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: exists
-- Whether this database was ever migrated.
SELECT to_regclass('schema_migrations') IS NOT NULL

-- name: applied
-- The applied migrations with their checksums.
SELECT version, checksum FROM schema_migrations

-- name: record
-- Record one migration, in its own transaction.
INSERT INTO schema_migrations (version, name, checksum) VALUES (%(version)s, %(name)s, %(checksum)s)

-- name: publish
-- Let the server check whether the schema is current.
GRANT SELECT ON schema_migrations TO esker_app
