-- Calls of language models are counted before they are made, at the most that they may use, so that a killed server
-- cannot have spent what nobody counted.

CREATE TABLE open_calls (
    pool_id       uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id            uuid NOT NULL,
    -- The number of the process that makes the call; when nobody holds it any longer, the call was cut off.
    holder        bigint NOT NULL,
    day           date NOT NULL,
    model         text NOT NULL,
    purpose       text NOT NULL CHECK (purpose IN ('observe', 'reflect', 'recall')),
    -- The most that it may use; the cost is NULL if the price is not known.
    input_tokens  bigint NOT NULL CHECK (input_tokens >= 0),
    output_tokens bigint NOT NULL CHECK (output_tokens >= 0),
    cost_usd      numeric(20, 10) CHECK (cost_usd >= 0),
    begun_at      timestamptz NOT NULL,
    PRIMARY KEY (pool_id, id)
);
CALL isolate('open_calls');
CALL open_to_projects('open_calls', 'SELECT, INSERT, DELETE', 'true');

-- As before, and the holders of open calls.
CREATE OR REPLACE FUNCTION abandoned_holders(moment timestamptz) RETURNS SETOF bigint
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
          WHERE lease_token IS NOT NULL AND lease_until > moment
          UNION ALL
          SELECT holder FROM open_calls) AS leases
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

-- Count the open calls of some holders as if they had used the most that they might, and return how many.
CREATE FUNCTION settle_calls(holders bigint[]) RETURNS bigint
    LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        WITH cut_off AS (
            DELETE FROM open_calls WHERE holder = ANY (holders) RETURNING *
        ), counted AS (
            INSERT INTO spend (pool_id, day, model, purpose, calls, input_tokens, cache_write_tokens,
                               cache_read_tokens, output_tokens, cost_usd)
            SELECT pool_id, day, model, purpose, count(*), sum(input_tokens), 0, 0, sum(output_tokens), sum(cost_usd)
            FROM cut_off GROUP BY pool_id, day, model, purpose ORDER BY pool_id, day, model, purpose
            ON CONFLICT (pool_id, day, model, purpose) DO UPDATE
                SET calls = spend.calls + excluded.calls,
                    input_tokens = spend.input_tokens + excluded.input_tokens,
                    output_tokens = spend.output_tokens + excluded.output_tokens,
                    cost_usd = CASE WHEN spend.cost_usd IS NULL THEN excluded.cost_usd
                                    ELSE spend.cost_usd + coalesce(excluded.cost_usd, 0) END
        )
        SELECT count(*) FROM cut_off
    $$;

REVOKE EXECUTE ON FUNCTION settle_calls FROM PUBLIC;
GRANT EXECUTE ON FUNCTION settle_calls TO esker_app;
