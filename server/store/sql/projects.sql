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

-- name: lock
-- One transaction at a time renames projects of this pool.
SELECT pg_advisory_xact_lock(hashtext('projects'), hashtext(current_pool()::text))

-- name: counts
-- The rows of a project.
SELECT (SELECT count(*) FROM sessions WHERE project = %(project)s) AS sessions,
       (SELECT count(*) FROM memories WHERE project = %(project)s) AS memories,
       (SELECT count(*) FROM passages WHERE project = %(project)s) AS passages,
       (SELECT count(*) FROM reflections WHERE project = %(project)s) AS reflections,
       (SELECT count(*) FROM quarantines WHERE project = %(project)s) AS quarantines

-- name: bound_keys
-- The projects to which keys are bound that still open them, with the names of these keys.
SELECT project, array_agg(name ORDER BY name) FROM api_keys
WHERE project IS NOT NULL AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s)
GROUP BY project ORDER BY project

-- name: present
-- Those of some names that are former ones, with the present ones.
SELECT former_project, project FROM former_projects WHERE former_project = ANY (%(names)s)

-- name: former
-- All former names with the present ones.
SELECT former_project, project FROM former_projects ORDER BY former_project

-- name: free_name
-- Let a name be that of a project again.
DELETE FROM former_projects WHERE former_project = %(project)s

-- name: follow
-- Have former names of a project lead to its new name.
UPDATE former_projects SET project = %(project)s WHERE project = %(former)s

-- name: add_former
-- Keep a former name of a project.
INSERT INTO former_projects (pool_id, former_project, project, created_at)
VALUES (current_pool(), %(former)s, %(project)s, %(now)s)

-- name: move_sessions
-- Give the sessions of a former name the present one.
WITH held AS (SELECT id FROM sessions WHERE project = %(former)s ORDER BY id FOR NO KEY UPDATE)
UPDATE sessions s SET project = %(project)s FROM held WHERE s.id = held.id

-- name: move_memories
-- The same for memories. The external id that was derived from a note has the name of its project in it; if a live row of
-- the project has the same words and so this id, it keeps it.
WITH held AS (
    SELECT id, CASE WHEN starts_with(external_id, 'sha256:') THEN 'sha256:' || encode(sha256(
                   convert_to(%(project)s, 'UTF8') || '\x00'::bytea || convert_to(coalesce(session_id, ''), 'UTF8')
                   || '\x00'::bytea || convert_to(content, 'UTF8')), 'hex') END AS own_name
    FROM memories WHERE project = %(former)s ORDER BY id FOR NO KEY UPDATE
)
UPDATE memories m SET project = %(project)s, external_id = CASE
    WHEN held.own_name IS NULL THEN m.external_id
    WHEN m.superseded_at IS NULL AND EXISTS (
        SELECT FROM memories o WHERE o.external_id = held.own_name AND o.superseded_at IS NULL) THEN NULL
    ELSE held.own_name END
FROM held WHERE m.id = held.id

-- name: move_passages
-- The same for passages.
WITH held AS (SELECT id FROM passages WHERE project = %(former)s ORDER BY id FOR NO KEY UPDATE)
UPDATE passages p SET project = %(project)s FROM held WHERE p.id = held.id

-- name: move_reflections
-- The same for reflections.
UPDATE reflections SET project = %(project)s WHERE project = %(former)s

-- name: move_quarantines
-- The same for quarantines that have a project as a limit.
UPDATE quarantines SET project = %(project)s WHERE project = %(former)s

-- name: move_jobs
-- The same for reflections of projects that have not ended.
UPDATE jobs SET options = jsonb_set(options, '{project}', to_jsonb(new.project))
FROM unnest(%(formers)s::text[], %(projects)s::text[]) AS new (former, project) WHERE options ->> 'project' = new.former

-- name: pools
-- The pools that have a project with a former name.
SELECT pool_id::text FROM pools_with_former_projects()
