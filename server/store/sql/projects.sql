-- name: is_known
-- Whether a row belongs to a project, or none is given; sessions, which have no index for it, are read last.
SELECT %(project)s::text IS NULL
    OR EXISTS (SELECT FROM memories WHERE project = %(project)s)
    OR EXISTS (SELECT FROM passages WHERE project = %(project)s)
    OR EXISTS (SELECT FROM sessions WHERE project = %(project)s)

-- name: names
-- The names of all projects. Those of memories are read by jumping from one name to the next in the index, since many
-- rows share a name; passages have the projects of sessions.
WITH RECURSIVE named AS (
    (SELECT project FROM memories WHERE project IS NOT NULL ORDER BY project LIMIT 1)
    UNION ALL
    SELECT (SELECT m.project FROM memories m WHERE m.project > named.project ORDER BY m.project LIMIT 1)
    FROM named WHERE named.project IS NOT NULL
)
SELECT project FROM named WHERE project IS NOT NULL
UNION
SELECT project FROM sessions WHERE project IS NOT NULL
ORDER BY 1 LIMIT %(limit)s

-- name: with_memories
-- The projects with the most memories that recall can find, and the time of the latest one.
SELECT project, count(*) AS memories, max(said_at) AS latest_at
FROM memories
WHERE project IS NOT NULL AND superseded_at IS NULL AND (valid_until IS NULL OR valid_until > %(now)s)
GROUP BY project
ORDER BY memories DESC, project
LIMIT %(limit)s
