-- name: mode
-- Whether Postgres archives its write-ahead log.
SELECT current_setting('archive_mode')

-- name: switch
-- End the present file of the log, with something in it, and return its name.
SELECT pg_walfile_name(pg_switch_wal()) FROM pg_logical_emit_message(true, 'esker', 'archive')

-- name: archived
-- Whether a file of the log was archived.
SELECT coalesce(last_archived_wal >= %(file)s, false) FROM pg_stat_archiver
