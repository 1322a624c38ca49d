-- name: pools_with_jobs
-- Which pools have a job that can run.
SELECT pool_id::text FROM pools_with_jobs(%(now)s)

-- name: pools_with_embedding_work
-- Which pools have rows to embed in a space.
SELECT pool_id::text FROM pools_with_embedding_work(%(space)s, %(now)s)

-- name: pools_without_space
-- Which pools do not know a space yet.
SELECT pool_id::text FROM pools_without_space(%(space)s)

-- name: backlog
-- How much waits, in all pools together.
SELECT * FROM backlog(%(now)s)

-- name: all_pools
-- Every pool.
SELECT id::text AS pool_id FROM pools
