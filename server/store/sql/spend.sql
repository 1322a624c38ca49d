-- name: take_turns
-- Let one transaction at a time decide whether the pool may make a call.
SELECT pg_advisory_xact_lock(hashtext('spend'), hashtext(current_pool()::text))

-- name: reserve
-- Count a call before it is made, at the most that it may use.
INSERT INTO open_calls (pool_id, id, holder, day, model, purpose, input_tokens, output_tokens, cost_usd, begun_at)
VALUES (current_pool(), %(id)s, %(holder)s, %(day)s, %(model)s, %(purpose)s, %(input_tokens)s, %(output_tokens)s,
        %(cost_usd)s, %(now)s)

-- name: withdraw
-- Forget a call that was not made.
DELETE FROM open_calls WHERE id = %(id)s

-- name: settle
-- Count what a call has used. One that was counted as cut off stays as it was counted.
WITH ended AS (
    DELETE FROM open_calls WHERE id = %(id)s RETURNING day, model, purpose
)
INSERT INTO spend (pool_id, day, model, purpose, calls, input_tokens, cache_write_tokens, cache_read_tokens,
                   output_tokens, cost_usd)
SELECT current_pool(), day, model, purpose, 1, %(input_tokens)s, %(cache_write_tokens)s, %(cache_read_tokens)s,
       %(output_tokens)s, %(cost_usd)s
FROM ended
ON CONFLICT (pool_id, day, model, purpose) DO UPDATE
    SET calls = spend.calls + 1,
        input_tokens = spend.input_tokens + excluded.input_tokens,
        cache_write_tokens = spend.cache_write_tokens + excluded.cache_write_tokens,
        cache_read_tokens = spend.cache_read_tokens + excluded.cache_read_tokens,
        output_tokens = spend.output_tokens + excluded.output_tokens,
        -- A call without a known price keeps the cost of the others.
        cost_usd = CASE WHEN spend.cost_usd IS NULL THEN excluded.cost_usd
                        ELSE spend.cost_usd + coalesce(excluded.cost_usd, 0) END

-- name: allowance
-- The pool's own cap, what happens when it is reached, the spending of a day, and the most that open calls may cost.
SELECT p.daily_cap_usd::float8, p.when_spent,
       (SELECT coalesce(sum(cost_usd), 0)::float8 FROM spend WHERE day = %(day)s) AS spent_usd,
       (SELECT coalesce(sum(cost_usd), 0)::float8 FROM open_calls WHERE day = %(day)s) AS open_usd
FROM pools p WHERE p.id = current_pool()

-- name: since
-- The spending from a day on, newest first, with the most that open calls may use.
SELECT day, model, purpose, sum(calls)::bigint AS calls, sum(input_tokens)::bigint AS input_tokens,
       sum(cache_write_tokens)::bigint AS cache_write_tokens, sum(cache_read_tokens)::bigint AS cache_read_tokens,
       sum(output_tokens)::bigint AS output_tokens, sum(cost_usd)::float8 AS cost_usd
FROM (SELECT day, model, purpose, calls, input_tokens, cache_write_tokens, cache_read_tokens, output_tokens, cost_usd
      FROM spend WHERE day >= %(day)s
      UNION ALL
      SELECT day, model, purpose, 1, input_tokens, 0, 0, output_tokens, cost_usd
      FROM open_calls WHERE day >= %(day)s) AS counted
GROUP BY day, model, purpose ORDER BY day DESC, model, purpose

-- name: set_cap
-- Set the pool's daily cap, and what happens when it is reached.
UPDATE pools SET daily_cap_usd = %(cap)s, when_spent = %(when_spent)s WHERE id = current_pool()
