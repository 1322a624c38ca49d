-- columns: usage
calls, input_tokens, cache_write_tokens, cache_read_tokens, output_tokens, raw_tokens, prefix_lost, priced_calls, cost_usd,
raw_cost_usd, last_at, last_model, last_input_tokens, last_cache_write_tokens, last_cache_read_tokens, last_output_tokens,
last_raw_tokens, last_pack_version

-- name: get
-- The usage of a session.
SELECT {usage} FROM session_usage WHERE session_id = %(session)s

-- name: remove
-- Delete the former usage of a session.
DELETE FROM session_usage WHERE session_id = %(session)s

-- name: insert
-- Store the usage of a session.
INSERT INTO session_usage (pool_id, session_id, {usage})
VALUES (current_pool(), %(session)s, %(calls)s, %(input_tokens)s, %(cache_write_tokens)s, %(cache_read_tokens)s,
        %(output_tokens)s, %(raw_tokens)s, %(prefix_lost)s, %(priced_calls)s, %(cost_usd)s, %(raw_cost_usd)s, %(last_at)s,
        %(last_model)s, %(last_input_tokens)s, %(last_cache_write_tokens)s, %(last_cache_read_tokens)s,
        %(last_output_tokens)s, %(last_raw_tokens)s, %(last_pack_version)s)

-- name: of_pool
-- The usage of all sessions of the pool together.
SELECT count(*) AS sessions, coalesce(sum(calls), 0)::bigint AS calls,
       coalesce(sum(input_tokens + cache_write_tokens + cache_read_tokens), 0)::bigint AS sent_tokens,
       coalesce(sum(raw_tokens), 0)::bigint AS raw_tokens, coalesce(sum(priced_calls), 0)::bigint AS priced_calls,
       coalesce(sum(cost_usd), 0) AS cost_usd, coalesce(sum(raw_cost_usd), 0) AS raw_cost_usd
FROM session_usage
