-- name: weeks
-- How many live rows of each kind were said in each week since a moment. The weeks begin on Monday, in UTC.
SELECT date_trunc('week', said_at, 'UTC') AS week, kind, count(*) AS rows
FROM memories
WHERE superseded_at IS NULL AND said_at >= %(since)s
GROUP BY week, kind
ORDER BY week, kind

-- name: clients
-- The sessions and messages of each client, the most sessions first.
SELECT client, count(*) AS sessions, coalesce(sum(last_seq), 0)::bigint AS messages, max(last_received_at) AS latest_at
FROM sessions
GROUP BY client
ORDER BY sessions DESC, client
LIMIT %(limit)s
