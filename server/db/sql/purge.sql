-- name: tables
-- The tables of this database that the login owns, and, for a superuser, the catalogs with samples of their values.
SELECT c.oid::regclass::text
FROM pg_class c JOIN pg_roles r ON r.rolname = current_user
WHERE c.relkind = 'r' AND (
    c.relnamespace = 'public'::regnamespace AND pg_has_role(c.relowner, 'USAGE')
    OR r.rolsuper AND c.oid IN ('pg_catalog.pg_statistic'::regclass, 'pg_catalog.pg_statistic_ext_data'::regclass))
ORDER BY c.relnamespace = 'pg_catalog'::regnamespace, 1

-- name: rewrite
-- Write a table and its indexes into new files, without deleted rows; `{table}` is filled in as a quoted identifier.
VACUUM (FULL, ANALYZE) {table}

-- name: rewrite_catalog
-- The same for a catalog.
VACUUM (FULL) {table}

-- name: forget_samples
-- Delete the planner's samples of values: analyzing a table that is empty now would keep those it has.
DELETE FROM pg_catalog.pg_statistic s USING pg_class c
WHERE c.oid = s.starelid AND c.relnamespace = 'public'::regnamespace

-- name: is_superuser
-- Whether the login may change catalogs, and see and remove the files of the write-ahead log.
SELECT rolsuper FROM pg_roles WHERE rolname = current_user

-- name: wal_files
-- The files of the write-ahead log.
SELECT name FROM pg_ls_waldir() WHERE name ~ '^[0-9A-F]{24}$'

-- name: remove_wal
-- Remove files of the write-ahead log instead of using them again with their old content.
ALTER SYSTEM SET wal_recycle = off

-- name: recycle_wal
-- Reuse files of the write-ahead log, as before.
ALTER SYSTEM RESET wal_recycle

-- name: reload
-- Apply changed settings.
SELECT pg_reload_conf()

-- name: write
-- Write something to the log, since only a file with content can be ended.
SELECT pg_logical_emit_message(true, 'esker', 'purge')

-- name: switch
-- Begin the next file of the log; the rest of this one is filled with zeros.
SELECT pg_switch_wal()

-- name: checkpoint
-- Write everything to the tables, after which older files of the log are not needed.
CHECKPOINT
