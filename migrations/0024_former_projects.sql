-- Projects that were renamed or merged into others. Clients go on naming them by their repositories, as before; what they
-- send belongs to the present project. Rows that a transaction wrote meanwhile under a former name are moved soon.

CREATE TABLE former_projects (
    pool_id        uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    former_project text NOT NULL CHECK (former_project <> ''),
    -- A present name, never a former one.
    project        text NOT NULL CHECK (project <> ''),
    created_at     timestamptz NOT NULL,
    PRIMARY KEY (pool_id, former_project),
    CHECK (former_project <> project)
);
CALL isolate('former_projects');
-- A key that is bound to a project may name it as before.
CALL open_to_projects('former_projects', 'SELECT', 'project = current_project()', 'false', 'false');

-- Which pools have a project with a former name?
CREATE FUNCTION pools_with_former_projects() RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$ SELECT DISTINCT f.pool_id FROM former_projects f $$;
REVOKE EXECUTE ON FUNCTION pools_with_former_projects FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pools_with_former_projects TO esker_app;
