-- name: pools_with_jobs
-- Which pools have a job of these kinds that can run, who has waited longest first.
SELECT pool_id::text FROM pools_with_jobs(%(kinds)s, %(now)s)

-- name: pools_with_embedding_work
-- Which pools have rows to embed in a space.
SELECT pool_id::text FROM pools_with_embedding_work(%(space)s, %(now)s)

-- name: pools_without_space
-- Which pools do not know a space yet, or, if asked, have retired it.
SELECT pool_id::text FROM pools_without_space(%(space)s, %(source)s, %(or_retired)s)

-- name: backlog
-- How much waits, in all pools together.
SELECT * FROM backlog(%(now)s)

-- name: coverage
-- How well transcripts are covered, in all pools together.
SELECT * FROM coverage()
