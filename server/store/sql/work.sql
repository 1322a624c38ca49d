-- name: pools_with_jobs
-- The pools with a job of these kinds that can run, the longest waiting first.
SELECT pool_id::text FROM pools_with_jobs(%(kinds)s, %(now)s)

-- name: pools_with_embedding_work
-- The pools with rows to embed in a space.
SELECT pool_id::text FROM pools_with_embedding_work(%(space)s, %(now)s)

-- name: pools_without_space
-- The pools that do not have a space yet, or, on request, have retired it.
SELECT pool_id::text FROM pools_without_space(%(space)s, %(source)s, %(or_retired)s)

-- name: backlog
-- How much work waits, in all pools together.
SELECT * FROM backlog(%(now)s)

-- name: operations
-- Jobs, leases, the age of due work and spending, in all pools together.
SELECT * FROM operations(%(now)s)

-- name: coverage
-- How well transcripts are covered, in all pools together.
SELECT * FROM coverage()

-- name: abandoned_holders
-- The holders of leases whose connection has ended.
SELECT holder FROM abandoned_holders(%(now)s) AS holder

-- name: end_leases
-- End the leases of some holders.
SELECT end_leases(%(holders)s::bigint[], %(now)s) AS ended

-- name: settle_calls
-- Count the open calls of some holders, which were cut off.
SELECT settle_calls(%(holders)s::bigint[]) AS settled
