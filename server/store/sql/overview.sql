-- name: live_rows
-- The number of live rows by kind, by project, and by kind and week, in one walk through an index. Weeks begin on Monday, in
-- UTC; the weeks before a moment are one, which is NULL. `counted` says which of the three a line is. The rows are counted
-- by kind, project and week first, and the three numbers are sums of these, since counting rows three times would sort them.
WITH live AS MATERIALIZED (
    SELECT kind, project, CASE WHEN said_at >= %(since)s THEN date_bin('7 days', said_at, '2001-01-01 00:00Z') END AS week,
           count(*) AS rows
    FROM memories WHERE superseded_at IS NULL AND kind <> '' GROUP BY 1, 2, 3
)
SELECT CASE grouping(kind, project, week) WHEN 3 THEN 'kind' WHEN 5 THEN 'project' ELSE 'week' END AS counted,
       kind, project, week, sum(rows)::bigint AS rows
FROM live
GROUP BY GROUPING SETS ((kind), (project), (kind, week))
ORDER BY rows DESC, kind, project, week

-- name: clients
-- The sessions and messages of each client, the most sessions first.
SELECT client, count(*) AS sessions, coalesce(sum(last_seq), 0)::bigint AS messages, max(last_received_at) AS latest_at
FROM sessions
GROUP BY client
ORDER BY sessions DESC, client
LIMIT %(limit)s
