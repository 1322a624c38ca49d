-- The figures that an operator watches beyond the backlog, of all pools together: jobs, leases, the age of due work, and spending.
-- Like `backlog`, it runs as the owner and gives away counts alone. A measure without a kind or a state has empty ones.
CREATE FUNCTION operations(moment timestamptz)
    RETURNS TABLE (measure text, kind text, state text, value double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT 'jobs', j.kind, j.state, count(*)::float8 FROM jobs j GROUP BY j.kind, j.state
        UNION ALL
        SELECT 'jobs_oldest_due_seconds', j.kind, '', max(extract(epoch FROM moment - j.run_after))::float8
        FROM jobs j WHERE j.state = 'ready' AND j.run_after <= moment GROUP BY j.kind
        UNION ALL
        SELECT 'jobs_lease_expired', '', '', count(*)::float8 FROM jobs j WHERE j.lease_until < moment
        UNION ALL
        SELECT 'embeddings_oldest_due_seconds', '', '',
               coalesce(max(extract(epoch FROM moment - a.not_before)), 0)::float8
        FROM embedding_attempts a WHERE NOT a.dead AND a.not_before <= moment
        UNION ALL
        SELECT 'spend_today_usd', s.purpose, '', sum(coalesce(s.cost_usd, 0))::float8
        FROM spend s WHERE s.day = (moment AT TIME ZONE 'UTC')::date GROUP BY s.purpose
        UNION ALL
        SELECT 'database_bytes', '', '', pg_database_size(current_database())::float8
    $$;

REVOKE EXECUTE ON FUNCTION operations FROM PUBLIC;
GRANT EXECUTE ON FUNCTION operations TO esker_app;
