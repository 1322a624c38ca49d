-- name: rights
-- Whether the login owns the tables, whether it sees all rows whatever the policies say, and the number of tables.
SELECT coalesce(bool_and(pg_has_role(c.relowner, 'USAGE')), true), r.rolsuper OR r.rolbypassrls, count(c.oid)
FROM pg_roles r LEFT JOIN pg_class c ON c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
WHERE r.rolname = current_user
GROUP BY r.oid, r.rolsuper, r.rolbypassrls

-- name: make_roles
-- Make the roles that serve requests, unless another database of the cluster has made them, and let the login and each
-- other become them, as migrations 1 and 16 do.
DO $$
BEGIN
    IF to_regrole('esker_app') IS NULL THEN
        CREATE ROLE esker_app NOLOGIN;
    END IF;
    IF to_regrole('esker_project') IS NULL THEN
        CREATE ROLE esker_project NOLOGIN;
    END IF;
    IF NOT pg_has_role(current_user, 'esker_app', 'SET') THEN
        EXECUTE 'GRANT esker_app TO CURRENT_USER WITH SET TRUE, INHERIT FALSE';
    END IF;
    IF NOT pg_has_role('esker_app', 'esker_project', 'SET') THEN
        EXECUTE 'GRANT esker_project TO esker_app WITH SET TRUE, INHERIT FALSE';
    END IF;
END
$$

-- name: let_owner_in
-- Give the login that restores a database the policy that its owner had.
DO $$
DECLARE
    target regclass;
BEGIN
    FOR target IN
        SELECT c.oid FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relforcerowsecurity
          AND NOT EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polname = 'owner')
    LOOP
        EXECUTE format('CREATE POLICY owner ON %s TO CURRENT_USER USING (true) WITH CHECK (true)', target);
    END LOOP;
END
$$

-- name: analyze
-- Let the planner know the tables, which a dump says nothing about.
ANALYZE

-- name: has_schema
-- Whether the database is one of Esker.
SELECT to_regclass('public.schema_migrations') IS NOT NULL AND to_regclass('public.pools') IS NOT NULL

-- name: holds_anything
-- Whether anything was ever stored in it: a session, a memory, a key, or a pool beside the first.
SELECT EXISTS (SELECT FROM public.sessions) OR EXISTS (SELECT FROM public.memories)
       OR EXISTS (SELECT FROM public.api_keys) OR (SELECT count(*) FROM public.pools) > 1

-- name: others
-- How many other connections use the database.
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()

-- name: exists
-- Whether a database exists.
SELECT 1 FROM pg_database WHERE datname = %(name)s

-- name: may_create
-- Whether the login may make databases.
SELECT rolsuper OR rolcreatedb FROM pg_roles WHERE rolname = current_user

-- name: create
-- Make a database; `{name}` is filled in as a quoted identifier.
CREATE DATABASE {name}

-- name: drop
-- Drop a database, if it exists.
DROP DATABASE IF EXISTS {name} WITH (FORCE)

-- name: rename
-- Rename a database, to which nobody is connected.
ALTER DATABASE {name} RENAME TO {new}

-- name: decisions
-- Decisions of every pool that were made since the backup and must outlive a restore: the key of its hashes of forgotten texts,
-- how forgotten words begin, the tombstones, the keys that were revoked, and the versions of packs that were given out.
SELECT p.id::text, p.name, f.key, f.starts,
       (SELECT coalesce(jsonb_agg(jsonb_build_array(encode(t.digest, 'hex'), t.receipt_id, t.until, t.blanks)), '[]')
        FROM public.tombstones t WHERE t.pool_id = p.id)::text,
       (SELECT coalesce(jsonb_object_agg(k.id, k.revoked_at), '{}')
        FROM public.api_keys k WHERE k.pool_id = p.id AND k.revoked_at IS NOT NULL)::text,
       (SELECT coalesce(jsonb_object_agg(s.id, s.pack_version), '{}')
        FROM public.sessions s WHERE s.pool_id = p.id AND s.pack_version > 0)::text,
       p.keys_required
FROM public.pools p LEFT JOIN public.forget_keys f ON f.pool_id = p.id

-- name: keep_forget_key
-- Give a pool of the backup the present key of its hashes, if it has none; return the one that it has then.
INSERT INTO public.forget_keys (pool_id, key, starts) VALUES (%(pool)s, %(key)s, %(starts)s)
ON CONFLICT (pool_id) DO UPDATE
    SET starts = ARRAY (SELECT DISTINCT unnest(forget_keys.starts || excluded.starts) ORDER BY 1)
    WHERE forget_keys.key = excluded.key
RETURNING key

-- name: keep_tombstones
-- Add the present tombstones of a pool to those of the backup; return those that are new.
INSERT INTO public.tombstones (pool_id, digest, receipt_id, until, blanks)
SELECT %(pool)s, decode(t ->> 0, 'hex'), t ->> 1, (t ->> 2)::timestamptz, (t ->> 3)::boolean
FROM jsonb_array_elements(%(tombstones)s::jsonb) AS t
ON CONFLICT (pool_id, digest, receipt_id) DO NOTHING
RETURNING receipt_id

-- name: keep_revoked
-- Keys that were revoked since stay revoked.
UPDATE public.api_keys k SET revoked_at = (r.value #>> '{}')::timestamptz
FROM jsonb_each(%(revoked)s::jsonb) AS r
WHERE k.pool_id = %(pool)s AND k.id = r.key AND k.revoked_at IS NULL

-- name: keep_pack_versions
-- No version of a pack names two texts: those that were given out since are not given out again.
UPDATE public.sessions s SET pack_version = v.value::text::integer
FROM jsonb_each(%(versions)s::jsonb) AS v
WHERE s.pool_id = %(pool)s AND s.id = v.key AND s.pack_version < v.value::text::integer

-- name: keep_closed
-- A pool that has had a key stays closed.
UPDATE public.pools SET keys_required = true WHERE id = %(pool)s AND NOT keys_required

-- name: same_pool
-- The pool of the backup that is a pool of the present database: the same one, or one of the same name.
SELECT id::text FROM public.pools WHERE id::text = %(id)s OR name = %(name)s ORDER BY id::text = %(id)s DESC LIMIT 1
