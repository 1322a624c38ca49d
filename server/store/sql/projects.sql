-- name: is_known
-- Whether anything belongs to a project; sessions, which have no index for it, are looked at last.
SELECT EXISTS (SELECT FROM memories WHERE project = %(project)s)
    OR EXISTS (SELECT FROM passages WHERE project = %(project)s)
    OR EXISTS (SELECT FROM sessions WHERE project = %(project)s)

-- name: names
-- The projects that something belongs to. Those of memories are read by going from one name to the next along the index,
-- since most rows have the name of the row before; passages have those of sessions.
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
