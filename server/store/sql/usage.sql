-- columns: usage
calls, gateway_calls, input_tokens, cache_write_tokens, cache_read_tokens, output_tokens, raw_tokens, prefix_lost,
priced_calls, cost_usd, raw_cost_usd, last_at, last_model, last_input_tokens, last_cache_write_tokens,
last_cache_read_tokens, last_output_tokens, last_raw_tokens, last_pack_version

-- columns: sums
sum(u.calls)::bigint AS calls, sum(u.gateway_calls)::bigint AS gateway_calls,
sum(u.input_tokens + u.cache_write_tokens + u.cache_read_tokens)::bigint AS sent_tokens,
sum(u.cache_read_tokens)::bigint AS cache_read_tokens, sum(u.cache_write_tokens)::bigint AS cache_write_tokens,
sum(u.output_tokens)::bigint AS output_tokens, sum(u.raw_tokens)::bigint AS raw_tokens,
sum(u.raw_tokens - u.input_tokens - u.cache_write_tokens - u.cache_read_tokens)::bigint AS left_out_tokens,
sum(u.priced_calls)::bigint AS priced_calls, CASE WHEN sum(u.priced_calls) > 0 THEN sum(u.cost_usd) END AS cost_usd,
CASE WHEN sum(u.priced_calls) > 0 THEN sum(u.raw_cost_usd) END AS raw_cost_usd,
CASE WHEN sum(u.priced_calls) > 0 THEN sum(u.raw_cost_usd - u.cost_usd) END AS saved_usd

-- name: get
-- The usage of a session.
SELECT {usage} FROM session_usage WHERE session_id = %(session)s

-- name: remove
-- Delete the former usage of a session.
DELETE FROM session_usage WHERE session_id = %(session)s

-- name: insert
-- Store the usage of a session.
INSERT INTO session_usage (pool_id, session_id, {usage})
VALUES (current_pool(), %(session)s, %(calls)s, %(gateway_calls)s, %(input_tokens)s, %(cache_write_tokens)s,
        %(cache_read_tokens)s, %(output_tokens)s, %(raw_tokens)s, %(prefix_lost)s, %(priced_calls)s, %(cost_usd)s,
        %(raw_cost_usd)s, %(last_at)s, %(last_model)s, %(last_input_tokens)s, %(last_cache_write_tokens)s, %(last_cache_read_tokens)s,
        %(last_output_tokens)s, %(last_raw_tokens)s, %(last_pack_version)s)

-- name: of_pool
-- The usage of all sessions of the pool together.
SELECT count(*) AS sessions, coalesce(sum(calls), 0)::bigint AS calls, coalesce(sum(gateway_calls), 0)::bigint AS gateway_calls,
       coalesce(sum(input_tokens + cache_write_tokens + cache_read_tokens), 0)::bigint AS sent_tokens,
       coalesce(sum(raw_tokens), 0)::bigint AS raw_tokens, coalesce(sum(priced_calls), 0)::bigint AS priced_calls,
       coalesce(sum(cost_usd), 0) AS cost_usd, coalesce(sum(raw_cost_usd), 0) AS raw_cost_usd
FROM session_usage

-- name: by_client
-- The usage of the sessions with a call since a time, by client, the most tokens first.
SELECT s.client, count(*) AS sessions, {sums}
FROM session_usage u JOIN sessions s ON s.pool_id = u.pool_id AND s.id = u.session_id
WHERE u.last_at >= %(since)s
GROUP BY s.client
ORDER BY sum(u.input_tokens + u.cache_write_tokens + u.cache_read_tokens) DESC, s.client

-- name: by_session
-- The usage of sessions with a call since a time, the latest call first.
SELECT s.id AS session_id, s.client, s.external_id, s.project, u.last_model AS model, u.last_at, {sums}
FROM session_usage u JOIN sessions s ON s.pool_id = u.pool_id AND s.id = u.session_id
WHERE u.last_at >= %(since)s
GROUP BY s.pool_id, s.id, u.pool_id, u.session_id
ORDER BY u.last_at DESC, s.id
LIMIT %(limit)s
