-- name: position
-- How far this server's log was written: all that was committed before is in it. NULL on a server that only reads.
SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_flush_lsn()::text END

-- name: has_reached
-- Whether a replica shows all that is in the log up to a position. One that was promoted does not follow any longer.
SELECT coalesce(pg_last_wal_replay_lsn() >= %(position)s::pg_lsn, false) AS reached
