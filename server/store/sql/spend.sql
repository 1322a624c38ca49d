-- name: add
-- Count one call.
INSERT INTO spend (pool_id, day, model, purpose, calls, input_tokens, cache_write_tokens, cache_read_tokens,
                   output_tokens, cost_usd)
VALUES (current_pool(), %(day)s, %(model)s, %(purpose)s, 1, %(input_tokens)s, %(cache_write_tokens)s,
        %(cache_read_tokens)s, %(output_tokens)s, %(cost_usd)s)
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
-- The pool's own cap, what happens when it is reached, and the spending of a day.
SELECT p.daily_cap_usd::float8, p.when_spent,
       (SELECT coalesce(sum(cost_usd), 0)::float8 FROM spend WHERE day = %(day)s) AS spent_usd
FROM pools p WHERE p.id = current_pool()

-- name: since
-- The spending from a day on, newest first.
SELECT day, model, purpose, calls, input_tokens, cache_write_tokens, cache_read_tokens, output_tokens,
       cost_usd::float8
FROM spend WHERE day >= %(day)s ORDER BY day DESC, model, purpose

-- name: set_cap
-- Set the pool's daily cap, and what happens when it is reached.
UPDATE pools SET daily_cap_usd = %(cap)s, when_spent = %(when_spent)s WHERE id = current_pool()
