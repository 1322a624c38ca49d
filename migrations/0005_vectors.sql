-- Vectors at any size: an index for each large tier, a daily look at what it misses, and models that change in place.


-- Which model a pool uses -------------------------------------------------------------------------------------------

ALTER TABLE embedding_spaces
    -- Somebody asked for this model by command; no worker's setting takes the pool to another one.
    ADD COLUMN chosen boolean NOT NULL DEFAULT false,
    -- When recall went over to another one, if it ever used this: the last to go is the first to come back.
    ADD COLUMN left_at timestamptz,
    ADD CHECK (NOT (chosen AND state = 'retired'));
UPDATE embedding_spaces SET left_at = created_at WHERE state = 'retired';

-- Which pools take the model of a worker's setting and do not know its space yet or, if asked, have retired it?
DROP FUNCTION pools_without_space(text, boolean);
CREATE FUNCTION pools_without_space(space text, from_source text, or_retired boolean) RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT p.id FROM pools p
        WHERE NOT EXISTS (
            SELECT FROM embedding_spaces e
            WHERE e.pool_id = p.id
              AND (e.chosen AND e.source <> from_source OR e.name = space AND NOT (or_retired AND e.state = 'retired')))
    $$;

-- Which settings make the embedders of what was chosen by command?
CREATE FUNCTION chosen_sources() RETURNS TABLE (source text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$ SELECT DISTINCT e.source FROM embedding_spaces e WHERE e.chosen AND e.state = 'active' $$;

REVOKE EXECUTE ON FUNCTION pools_without_space, chosen_sources FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pools_without_space, chosen_sources TO esker_app;


-- Vectors -----------------------------------------------------------------------------------------------------------

-- Vectors stand in the rows, and not in a table beside: 3,072 dimensions are then searched three times as fast, exactly
-- or by an index, and indexed three times as fast. A row with 4,000 dimensions, the most there are, fits on a page.
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
END
$$;
-- In tables that are there, what is written from now on.
DO $$
DECLARE
    space record;
BEGIN
    FOR space IN SELECT DISTINCT name FROM embedding_spaces WHERE to_regclass('embeddings_' || name) IS NOT NULL LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN embedding SET STORAGE PLAIN', 'embeddings_' || space.name);
    END LOOP;
END
$$;


-- Indexes -----------------------------------------------------------------------------------------------------------

-- What the index of a tier of a pool in a space is called. Whether there is one, the catalog knows.
CREATE FUNCTION vector_index(pool uuid, space text, tier "char") RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT 'near_' || md5(pool::text || ' ' || space || ' ' || tier::text) $$;

-- Make the index of a tier of the present pool, and tell whether that was done: not when it is there, or when another
-- one is being made. Whoever writes to the space waits meanwhile, whoever reads does not; a writer that takes longer
-- than lock_timeout goes first.
CREATE FUNCTION create_vector_index(space text, tier "char") RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = public, pg_temp SET lock_timeout = '5s' SET maintenance_work_mem = '256MB'
    AS $$
DECLARE
    statement text := format(
        'CREATE INDEX %I ON %I USING hnsw (embedding halfvec_cosine_ops) WHERE pool_id = %L::uuid AND tier = %L::"char"',
        vector_index(current_pool(), space, tier), 'embeddings_' || space, current_pool(), tier);
BEGIN
    IF NOT EXISTS (SELECT FROM embedding_spaces WHERE pool_id = current_pool() AND name = space) THEN
        RAISE EXCEPTION 'the pool has no space %', space USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT pg_try_advisory_xact_lock(hashtext('create_vector_index'))
       OR to_regclass(vector_index(current_pool(), space, tier)) IS NOT NULL THEN
        RETURN false;
    END IF;
    BEGIN
        EXECUTE statement;
    EXCEPTION WHEN insufficient_resources OR disk_full OR out_of_memory THEN
        -- Several processes share memory, of which a container may have little; one alone needs none of it.
        SET LOCAL max_parallel_maintenance_workers = 0;
        EXECUTE statement;
    END;
    -- What was known of one before it says nothing of this one.
    DELETE FROM vector_probes p
    WHERE p.pool_id = current_pool() AND p.space = create_vector_index.space AND p.tier = create_vector_index.tier;
    RETURN true;
END
$$;

-- Drop it, and what is known of it.
CREATE FUNCTION drop_vector_index(space text, tier "char") RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET lock_timeout = '2s'
    AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS %I', vector_index(current_pool(), space, tier));
    DELETE FROM vector_probes p
    WHERE p.pool_id = current_pool() AND p.space = drop_vector_index.space AND p.tier = drop_vector_index.tier;
END
$$;

-- How well an index agreed with the exact search when they were last compared.
CREATE TABLE vector_probes (
    pool_id   uuid NOT NULL,
    space     text NOT NULL,
    tier      "char" NOT NULL CHECK (tier IN ('m', 'p')),
    probed_at timestamptz NOT NULL,
    questions integer NOT NULL CHECK (questions > 0),
    -- The share of the ten nearest that the index found, over all questions.
    agreement double precision NOT NULL CHECK (agreement BETWEEN 0 AND 1),
    PRIMARY KEY (pool_id, space, tier),
    FOREIGN KEY (pool_id, space) REFERENCES embedding_spaces ON DELETE CASCADE
);
CALL isolate('vector_probes');

-- Which tiers have become so large that they want an index, or so small that they want none? A tier whose vectors are
-- still being made is among them; whoever asks counts those first.
CREATE FUNCTION vector_tiers_to_change(large bigint, small bigint)
    RETURNS TABLE (pool_id uuid, space text, tier "char", indexed boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT e.pool_id, e.name, sized.tier, there.indexed
        FROM (
            SELECT t.pool_id, t.tier, sum(t.parts) AS parts FROM tier_sizes t GROUP BY t.pool_id, t.tier
        ) AS sized
        JOIN embedding_spaces e ON e.pool_id = sized.pool_id
        CROSS JOIN LATERAL (
            SELECT to_regclass(vector_index(e.pool_id, e.name, sized.tier)) IS NOT NULL AS indexed
        ) AS there
        WHERE CASE WHEN there.indexed THEN sized.parts < small ELSE sized.parts >= large AND e.state <> 'retired' END
    $$;

-- Which indexes that recall uses were not compared with the exact search since?
CREATE FUNCTION vector_tiers_to_probe(since timestamptz) RETURNS TABLE (pool_id uuid, space text, tier "char")
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT e.pool_id, e.name, t.tier
        FROM embedding_spaces e CROSS JOIN unnest(ARRAY['m', 'p']::"char"[]) AS t (tier)
        WHERE e.state = 'active' AND to_regclass(vector_index(e.pool_id, e.name, t.tier)) IS NOT NULL
          AND NOT EXISTS (
            SELECT FROM vector_probes p
            WHERE p.pool_id = e.pool_id AND p.space = e.name AND p.tier = t.tier AND p.probed_at > since)
    $$;

-- How well does the index agree that agrees least? 1 where there is none.
CREATE FUNCTION lowest_agreement() RETURNS double precision
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT coalesce(min(p.agreement), 1)
        FROM vector_probes p
        JOIN embedding_spaces e ON e.pool_id = p.pool_id AND e.name = p.space AND e.state = 'active'
        WHERE to_regclass(vector_index(p.pool_id, p.space, p.tier)) IS NOT NULL
    $$;

REVOKE EXECUTE ON FUNCTION create_vector_index, drop_vector_index, vector_tiers_to_change, vector_tiers_to_probe,
                           lowest_agreement FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_vector_index, drop_vector_index, vector_tiers_to_change, vector_tiers_to_probe,
                          lowest_agreement TO esker_app;
