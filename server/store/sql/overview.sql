-- name: live_rows
-- The number of live rows by kind, by project, and by kind, week and month, in one walk through an index. Weeks begin on
-- Monday, in UTC; `week` is NULL before the moment `weeks_since`, and `month` before `months_since`. `counted` says which of
-- the three a line is. The rows are counted by kind, project, week and month first, and the three numbers are sums of these,
-- since counting rows three times would sort them.
WITH live AS MATERIALIZED (
    SELECT kind, project,
           CASE WHEN said_at >= %(weeks_since)s THEN date_bin('7 days', said_at, '2001-01-01 00:00Z') END AS week,
           CASE WHEN said_at >= %(months_since)s THEN date_trunc('month', said_at, 'UTC') END AS month,
           count(*) AS rows
    FROM memories WHERE superseded_at IS NULL AND kind <> '' GROUP BY 1, 2, 3, 4
)
SELECT CASE grouping(kind, project, week, month) WHEN 7 THEN 'kind' WHEN 11 THEN 'project' ELSE 'age' END AS counted,
       kind, project, week, month, sum(rows)::bigint AS rows
FROM live
GROUP BY GROUPING SETS ((kind), (project), (kind, week, month))
ORDER BY rows DESC, kind, project, week, month

-- name: clients
-- The sessions and messages of each client, the most sessions first.
SELECT client, count(*) AS sessions, coalesce(sum(last_seq), 0)::bigint AS messages, max(last_received_at) AS latest_at
FROM sessions
GROUP BY client
ORDER BY sessions DESC, client
LIMIT %(limit)s
