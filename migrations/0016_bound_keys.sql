-- Keys that are bound to a client or to a project. Those of a project work under a role that sees nothing of others.

ALTER TABLE api_keys
    ADD COLUMN client text CHECK (client <> ''),
    ADD COLUMN project text CHECK (project <> ''),
    -- Forgetting reaches over a pool: what was drawn from a text, and whatever says it again.
    ADD CHECK (project IS NULL OR NOT scopes && ARRAY['forget', 'admin']);

DROP FUNCTION find_api_key(bytea, timestamptz);
CREATE FUNCTION find_api_key(hash bytea, moment timestamptz)
    RETURNS TABLE (pool_id uuid, pool_name text, key_id text, scopes text[], last_used_on date, client text,
                   project text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT k.pool_id, p.name, k.id, k.scopes, k.last_used_on, k.client, k.project
        FROM api_keys k JOIN pools p ON p.id = k.pool_id
        WHERE k.key_hash = hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > moment)
    $$;
REVOKE EXECUTE ON FUNCTION find_api_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key TO esker_app;


-- The role of a project ---------------------------------------------------------------------------------------------

-- A role of its own, so that its conditions cost nothing in the statements of other keys. It is no member of esker_app,
-- so it has only the rights below. Another database of the cluster may have made it already.
DO $$
BEGIN
    CREATE ROLE esker_project NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;
DO $$
BEGIN
    IF NOT pg_has_role('esker_app', 'esker_project', 'SET') THEN
        GRANT esker_project TO esker_app WITH SET TRUE, INHERIT FALSE;
    END IF;
END
$$;
GRANT USAGE ON SCHEMA public TO esker_project;
GRANT SELECT ON pools TO esker_project;
GRANT USAGE ON SEQUENCE search_numbers TO esker_project;

-- The project of the present transaction; NULL outside of one.
CREATE FUNCTION current_project() RETURNS text
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT nullif(current_setting('esker.project', true), '') $$;

-- Give the role some rights to a table: it sees the rows of the pool for which `seen` holds, may add those for which
-- `added` does, and change or delete those for which `changed` does.
CREATE PROCEDURE open_to_projects(
        target regclass, rights text, seen text, added text DEFAULT 'true', changed text DEFAULT 'true')
    LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('GRANT %s ON %s TO esker_project', rights, target);
    EXECUTE format('CREATE POLICY seen ON %s FOR SELECT TO esker_project
                        USING (pool_id = current_pool() AND (%s))', target, seen);
    EXECUTE format('CREATE POLICY added ON %s FOR INSERT TO esker_project
                        WITH CHECK (pool_id = current_pool() AND (%s))', target, added);
    EXECUTE format('CREATE POLICY changed ON %s FOR UPDATE TO esker_project
                        USING (pool_id = current_pool() AND (%s))', target, changed);
    EXECUTE format('CREATE POLICY deleted ON %s FOR DELETE TO esker_project
                        USING (pool_id = current_pool() AND (%s))', target, changed);
END
$$;
REVOKE EXECUTE ON PROCEDURE open_to_projects FROM PUBLIC;

-- A row of no project is seen by all projects and changed by none.
CALL open_to_projects('sessions', 'SELECT, INSERT, UPDATE', 'project = current_project() OR project IS NULL',
                      'project = current_project()', 'project = current_project()');

-- The rest of a session goes with it, also a row without a project that is older than that of its session.
CREATE FUNCTION pg_temp.in_session(id text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT format('EXISTS (SELECT FROM sessions s WHERE s.id = %s)', id) $$;
CREATE FUNCTION pg_temp.in_own_session(id text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$ SELECT format('EXISTS (SELECT FROM sessions s WHERE s.id = %s AND s.project = current_project())', id) $$;
DO $$
DECLARE
    seen constant text := pg_temp.in_session('session_id');
    own  constant text := pg_temp.in_own_session('session_id');
    here constant text := format(
        'project = current_project() OR project IS NULL AND (session_id IS NULL OR %s)', seen);
    held constant text := 'project = current_project() OR project IS NULL AND ' || own;
BEGIN
    CALL open_to_projects('messages', 'SELECT, INSERT, UPDATE', seen, own, own);
    CALL open_to_projects('observation_groups', 'SELECT', seen, 'false', 'false');
    CALL open_to_projects('memories', 'SELECT, INSERT, UPDATE', here, 'project = current_project()', held);
    CALL open_to_projects('passages', 'SELECT, INSERT, UPDATE, DELETE', here, own, own);
    CALL open_to_projects('reflections', 'SELECT, UPDATE', here, 'false', held);
    -- A pack of a session without a project shows rows of all projects.
    CALL open_to_projects('packs', 'SELECT, INSERT, DELETE', own, own, own);
    CALL open_to_projects('former_packs', 'SELECT, INSERT', own, own, 'false');
    CALL open_to_projects('session_usage', 'SELECT, INSERT, DELETE', own, own, own);
    CALL open_to_projects('session_events', 'SELECT, INSERT', own, own, 'false');
    -- The daily job of the pool is scheduled by every writer.
    CALL open_to_projects('jobs', 'SELECT, INSERT, UPDATE',
        format('CASE kind WHEN ''reflect_pool'' THEN subject = '''' ELSE %s END', pg_temp.in_session('subject')),
        format('CASE kind WHEN ''reflect_pool'' THEN subject = '''' ELSE %s END', pg_temp.in_own_session('subject')),
        format('CASE kind WHEN ''reflect_pool'' THEN subject = '''' ELSE %s END', pg_temp.in_own_session('subject')));
END
$$;

-- Parts of memories and passages are added by the statement that writes these, before it can see them.
CALL open_to_projects('memory_sources', 'SELECT',
    'EXISTS (SELECT FROM memories m WHERE m.id = memory_id) AND ' || pg_temp.in_session('session_id'), 'false', 'false');
CALL open_to_projects('memory_links', 'SELECT, INSERT', 'EXISTS (SELECT FROM memories m WHERE m.id = memory_id)');
CREATE FUNCTION pg_temp.of_text(target text) RETURNS text LANGUAGE sql IMMUTABLE
    AS $$
        SELECT format('CASE tier WHEN ''m'' THEN EXISTS (SELECT FROM memories m WHERE m.number = %1$s.number)
                       ELSE EXISTS (SELECT FROM passages p WHERE p.number = %1$s.number) END', target)
    $$;
-- Otherwise a score would tell which words other projects use.
CALL open_to_projects('postings', 'SELECT, INSERT', pg_temp.of_text('postings'));
CALL open_to_projects('embedding_attempts', 'SELECT, INSERT, UPDATE',
                      pg_temp.of_text('embedding_attempts'), 'true', pg_temp.of_text('embedding_attempts'));

-- Tables of the whole pool, without words: sizes, models, costs, and the texts that must not be kept.
CALL open_to_projects('tier_sizes', 'SELECT, INSERT, UPDATE', 'true');
CALL open_to_projects('embedding_spaces', 'SELECT', 'true', 'false', 'false');
CALL open_to_projects('spend', 'SELECT, INSERT, UPDATE', 'true');
CALL open_to_projects('forget_keys', 'SELECT', 'true', 'false', 'false');
CALL open_to_projects('tombstones', 'SELECT', 'true', 'false', 'false');
CALL open_to_projects('quarantines', 'SELECT', 'true', 'false', 'false');
CALL open_to_projects('audit', 'INSERT', 'false');

-- Postings and places in the queue go with a text that is gone, by which the policies above decide; so its trigger works
-- as the owner.
ALTER FUNCTION forget_search() SECURITY DEFINER SET search_path = public, pg_temp;
REVOKE EXECUTE ON FUNCTION forget_search FROM PUBLIC;


-- Vectors -----------------------------------------------------------------------------------------------------------

-- They are found by the numbers of texts, and only with those.
CREATE OR REPLACE FUNCTION create_embedding_space(space text, dimension integer) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
DECLARE
    table_name text := 'embeddings_' || space;
BEGIN
    IF space !~ '^[a-z0-9_]{1,48}$' THEN
        RAISE EXCEPTION 'not a name for a space: %', space USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF dimension NOT BETWEEN 1 AND 4000 THEN
        RAISE EXCEPTION 'halfvec holds 1 to 4000 dimensions, not %', dimension
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    PERFORM pg_advisory_xact_lock(hashtext('create_embedding_space'));
    IF to_regclass(table_name) IS NOT NULL THEN
        RETURN;
    END IF;
    -- No foreign key: an orphan is harmless, since recall joins back, and the queue stays cheap.
    EXECUTE format('CREATE TABLE %I (
        pool_id      uuid NOT NULL,
        tier         "char" NOT NULL,
        number       bigint NOT NULL,
        part         smallint NOT NULL,
        content_hash bytea NOT NULL,
        embedding    halfvec(%s) STORAGE PLAIN NOT NULL,
        created_at   timestamptz NOT NULL,
        PRIMARY KEY (pool_id, tier, number, part))', table_name, dimension);
    EXECUTE format('CALL isolate(%L)', table_name);
    EXECUTE format('CALL open_to_projects(%L, %L, %L)', table_name, 'SELECT, UPDATE, DELETE', 'true');
END
$$;
DO $$
DECLARE
    space record;
BEGIN
    FOR space IN SELECT DISTINCT name FROM embedding_spaces WHERE to_regclass('embeddings_' || name) IS NOT NULL LOOP
        EXECUTE format('CALL open_to_projects(%L, %L, %L)', 'embeddings_' || space.name, 'SELECT, UPDATE, DELETE', 'true');
    END LOOP;
END
$$;
