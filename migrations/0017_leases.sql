-- Leases end with their holder.
--
-- Each server and worker holds a lock on a number of its own for as long as it lives, and the token of a lease contains
-- that number. A process that is killed loses its connection, and with it the lock; others then end its leases at once.

-- Return the number in a token, or NULL: tokens of processes without a lock, and of older versions, are random.
CREATE FUNCTION lease_holder(token uuid) RETURNS bigint
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
        SELECT CASE WHEN substr(token::text, 15, 1) = '8'
                    THEN ('x' || lpad(left(replace(token::text, '-', ''), 12), 16, '0'))::bit(64)::bigint END
    $$;

CREATE INDEX jobs_leased ON jobs (lease_holder(lease_token)) WHERE lease_token IS NOT NULL;
CREATE INDEX embedding_attempts_leased ON embedding_attempts (lease_holder(lease_token)) WHERE lease_token IS NOT NULL;

-- Return the holders of present leases that hold no lock. The leases are read before the locks: a process takes its lock before
-- its first lease.
CREATE FUNCTION abandoned_holders(moment timestamptz) RETURNS SETOF bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
DECLARE
    holders bigint[];
BEGIN
    SELECT array_agg(DISTINCT holder) INTO holders
    FROM (SELECT lease_holder(lease_token) AS holder FROM jobs
          WHERE lease_token IS NOT NULL AND lease_until > moment
          UNION ALL
          SELECT lease_holder(lease_token) FROM embedding_attempts
          WHERE lease_token IS NOT NULL AND lease_until > moment) AS leases
    WHERE holder IS NOT NULL;
    IF holders IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT holder FROM unnest(holders) AS holder
        WHERE holder NOT IN (
            SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks
            WHERE locktype = 'advisory' AND objsubid = 1 AND granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database()));
END
$$;

-- End the present leases of some holders, and return how many. A job whose worker has died several times waits longer each time.
CREATE FUNCTION end_leases(holders bigint[], moment timestamptz) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
DECLARE
    of_jobs bigint;
    of_texts bigint;
BEGIN
    WITH held AS (
        SELECT pool_id, kind, subject FROM jobs
        WHERE lease_token IS NOT NULL AND lease_until > moment AND lease_holder(lease_token) = ANY (holders)
        ORDER BY pool_id, subject, kind FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE jobs j
    SET lease_until = moment,
        run_after = CASE WHEN j.attempts < 3 THEN j.run_after
                         ELSE greatest(j.run_after,
                                       moment + least(3600, 15 * 2 ^ (j.attempts - 3)) * (1 + random()) / 2
                                                * interval '1 second') END
    FROM held WHERE j.pool_id = held.pool_id AND j.kind = held.kind AND j.subject = held.subject;
    GET DIAGNOSTICS of_jobs = ROW_COUNT;
    WITH held AS (
        SELECT pool_id, space, number FROM embedding_attempts
        WHERE lease_token IS NOT NULL AND lease_until > moment AND lease_holder(lease_token) = ANY (holders)
        ORDER BY tier DESC, number, space FOR UPDATE SKIP LOCKED
    )
    UPDATE embedding_attempts a SET lease_until = moment
    FROM held WHERE a.pool_id = held.pool_id AND a.space = held.space AND a.number = held.number;
    GET DIAGNOSTICS of_texts = ROW_COUNT;
    PERFORM pg_notify('esker_jobs', '') WHERE of_jobs > 0;
    PERFORM pg_notify('esker_embed', '') WHERE of_texts > 0;
    RETURN of_jobs + of_texts;
END
$$;

REVOKE EXECUTE ON FUNCTION abandoned_holders, end_leases FROM PUBLIC;
GRANT EXECUTE ON FUNCTION abandoned_holders, end_leases TO esker_app;
