-- One repository is one project: names are stored in lower case, and Windows directories with slashes.

CREATE FUNCTION pg_temp.project_name(name text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT lower(CASE WHEN name ~ '^([A-Za-z]:[\\/]|\\\\)' THEN replace(name, '\', '/') ELSE name END) $$;

UPDATE sessions SET project = pg_temp.project_name(project) WHERE project <> pg_temp.project_name(project);
UPDATE memories SET project = pg_temp.project_name(project) WHERE project <> pg_temp.project_name(project);
UPDATE passages SET project = pg_temp.project_name(project) WHERE project <> pg_temp.project_name(project);
UPDATE reflections SET project = pg_temp.project_name(project) WHERE project <> pg_temp.project_name(project);
UPDATE quarantines SET project = pg_temp.project_name(project) WHERE project <> pg_temp.project_name(project);
