-- The spine: pools and keys, sessions and messages, observation groups and memories, keywords, vectors, packs, jobs.
--
-- What this database is the authority for:
--   * every message is in the unobserved tail (seq > sessions.observed_seq) or in exactly one observation group;
--   * pools never meet: each pool table forces row-level security, and the app role cannot bypass it;
--   * a memory without a vector has a row in embedding_attempts that says why.
--
-- Every key begins with pool_id, so that the schema distributes by pool.

CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS btree_gist;

-- The role that serves requests. Roles belong to the whole cluster, so another database may have made it already.
DO $$
BEGIN
    CREATE ROLE esker_app NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;
GRANT esker_app TO CURRENT_USER WITH SET TRUE, INHERIT FALSE;
GRANT USAGE ON SCHEMA public TO esker_app;

-- The pool of the present transaction. Unset it is NULL, and after another transaction an empty string, which is no
-- uuid: both ways a statement outside `tenant()` sees nothing.
CREATE FUNCTION current_pool() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT current_setting('esker.pool_id', true)::uuid $$;


-- Tenants -----------------------------------------------------------------------------------------------------------

CREATE TABLE pools (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name          text NOT NULL UNIQUE CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$'),
    -- Set by the first key and never taken back: revoking the last key must not open the door.
    keys_required boolean NOT NULL DEFAULT false,
    created_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
    pool_id    uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id         text NOT NULL,
    name       text NOT NULL,
    prefix     text NOT NULL,
    key_hash   bytea NOT NULL CHECK (length(key_hash) = 32),
    scopes     text[] NOT NULL CHECK (scopes <@ ARRAY['read', 'write'] AND cardinality(scopes) > 0),
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz,
    PRIMARY KEY (pool_id, id),
    UNIQUE (pool_id, key_hash)
);
CREATE INDEX api_keys_by_hash ON api_keys (key_hash);
-- A name means one key, so that revoking by name revokes what was meant.
CREATE UNIQUE INDEX api_keys_by_name ON api_keys (pool_id, name) WHERE revoked_at IS NULL;


-- Transcripts -------------------------------------------------------------------------------------------------------

CREATE TABLE sessions (
    pool_id                uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id                     text NOT NULL,
    client                 text NOT NULL CHECK (client <> ''),
    external_id            text NOT NULL CHECK (external_id <> ''),
    project                text,
    cwd                    text,
    timezone               text NOT NULL,
    effective_context      integer NOT NULL CHECK (effective_context BETWEEN 1000 AND 10000000),
    last_seq               bigint NOT NULL DEFAULT 0,
    -- Messages up to here are in a group, the others are not: the one cursor of the observer.
    observed_seq           bigint NOT NULL DEFAULT 0,
    total_tokens           bigint NOT NULL DEFAULT 0,
    unobserved_tokens      bigint NOT NULL DEFAULT 0,
    last_received_at       timestamptz,
    -- How many packs were frozen; it only grows, so that no version ever names two texts.
    pack_version           integer NOT NULL DEFAULT 0,
    current_task           text,
    suggested_continuation text,
    thread_title           text,
    created_at             timestamptz NOT NULL,
    PRIMARY KEY (pool_id, id),
    UNIQUE (pool_id, client, external_id),
    CHECK (observed_seq BETWEEN 0 AND last_seq),
    CHECK (unobserved_tokens BETWEEN 0 AND total_tokens),
    -- Every message costs at least one token, so nothing is left exactly when the cursor is at the end.
    CHECK ((unobserved_tokens = 0) = (observed_seq = last_seq))
);
CREATE INDEX sessions_by_age ON sessions (pool_id, created_at DESC, id DESC);
CREATE INDEX sessions_unobserved ON sessions (pool_id, id) INCLUDE (unobserved_tokens, observed_seq)
    WHERE unobserved_tokens > 0;

CREATE TABLE messages (
    pool_id      uuid NOT NULL,
    session_id   text NOT NULL,
    seq          bigint NOT NULL CHECK (seq > 0),
    external_id  text NOT NULL CHECK (external_id <> ''),
    role         text NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
    trust        text NOT NULL CHECK (trust IN ('user', 'assistant', 'tool', 'external')),
    sent_at      timestamptz NOT NULL,
    received_at  timestamptz NOT NULL,
    content      jsonb NOT NULL CHECK (jsonb_typeof(content) = 'array'),
    content_hash bytea NOT NULL,
    -- The names of the tools that the message calls, by the id of the call.
    calls        jsonb NOT NULL DEFAULT '{}',
    text         text NOT NULL,
    tokens       integer NOT NULL CHECK (tokens > 0),
    -- What it costs to show the text and the images to an observer.
    shown_tokens integer NOT NULL CHECK (shown_tokens >= 0),
    PRIMARY KEY (pool_id, session_id, seq),
    UNIQUE (pool_id, session_id, external_id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);

CREATE TABLE observation_groups (
    pool_id                uuid NOT NULL,
    id                     text NOT NULL,
    session_id             text NOT NULL,
    first_seq              bigint NOT NULL,
    last_seq               bigint NOT NULL,
    first_external_id      text NOT NULL,
    last_external_id       text NOT NULL,
    kind                   text NOT NULL DEFAULT 'observations' CHECK (kind IN ('observations')),
    cwd                    text,
    observer               text NOT NULL,
    current_task           text,
    suggested_continuation text,
    thread_title           text,
    input_tokens           bigint NOT NULL CHECK (input_tokens >= 0),
    output_tokens          bigint NOT NULL CHECK (output_tokens >= 0),
    created_at             timestamptz NOT NULL,
    PRIMARY KEY (pool_id, id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    CHECK (first_seq <= last_seq),
    -- A message is covered once.
    EXCLUDE USING gist (pool_id WITH =, session_id WITH =, int8range(first_seq, last_seq, '[]') WITH &&)
);


-- Memory ------------------------------------------------------------------------------------------------------------

CREATE TABLE memories (
    pool_id       uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id            text NOT NULL,
    kind          text NOT NULL CHECK (kind IN ('observation', 'reflection', 'note', 'manual')),
    priority      text NOT NULL CHECK (priority IN ('high', 'medium', 'low')),
    category      text NOT NULL CHECK (category IN
                      ('decision', 'preference', 'fact', 'issue', 'next_step', 'outcome', 'state_change')),
    trust         text NOT NULL CHECK (trust IN ('user', 'assistant', 'tool', 'external')),
    content       text NOT NULL CHECK (content <> ''),
    content_hash  bytea NOT NULL,
    author        text NOT NULL,
    session_id    text,
    group_id      text,
    project       text,
    tags          text[] NOT NULL DEFAULT '{}',
    source_seqs   bigint[] NOT NULL DEFAULT '{}',
    source_ids    text[] NOT NULL DEFAULT '{}',
    tokens        integer NOT NULL CHECK (tokens >= 0),
    -- Keyword terms in the content, repeats included: the document length of BM25.
    terms         integer NOT NULL CHECK (terms >= 0),
    said_at       timestamptz NOT NULL,
    refers_from   timestamptz,
    refers_to     timestamptz,
    valid_until   timestamptz,
    last_used_at  timestamptz NOT NULL,
    -- The memory that replaced this one, or the reflection (ref_…) that left it out: when that happened, and from when
    -- on it holds, which is when the newest of what replaced it was said.
    superseded_by text,
    superseded_at timestamptz,
    outdated_at   timestamptz,
    reflection_id text,
    external_id   text,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (pool_id, id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    FOREIGN KEY (pool_id, group_id) REFERENCES observation_groups ON DELETE CASCADE,
    CHECK ((superseded_by IS NULL) = (superseded_at IS NULL)),
    CHECK ((superseded_by IS NULL) = (outdated_at IS NULL)),
    CHECK ((kind = 'observation') = (group_id IS NOT NULL)),
    CHECK ((kind = 'reflection') = (reflection_id IS NOT NULL)),
    CHECK (kind <> 'observation' OR cardinality(source_seqs) > 0),
    CHECK (kind <> 'reflection' OR cardinality(source_ids) > 0),
    CHECK (refers_to IS NULL OR (refers_from IS NOT NULL AND refers_from <= refers_to))
);
-- The caller's name for a live row: writing it again is the same row.
CREATE UNIQUE INDEX memories_by_external_id ON memories (pool_id, external_id)
    WHERE external_id IS NOT NULL AND superseded_at IS NULL;
-- A pack is a merge of one walk of this index per class.
CREATE INDEX memories_by_rank ON memories (pool_id, kind, priority, last_used_at DESC, id)
    WHERE superseded_at IS NULL;
CREATE INDEX memories_by_session ON memories (pool_id, session_id, said_at, id) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_group ON memories (pool_id, group_id) WHERE group_id IS NOT NULL;
CREATE INDEX memories_by_age ON memories (pool_id, created_at DESC, id DESC);
-- From a row to what replaced it and back. A GIN index on source_ids would be of no use, see postings.
CREATE INDEX memories_by_reflection ON memories (pool_id, reflection_id) WHERE reflection_id IS NOT NULL;
CREATE INDEX memories_by_superseder ON memories (pool_id, superseded_by) WHERE superseded_by IS NOT NULL;

-- BM25's inverted index. A GIN index on a tsvector is out of reach here: `@@` is not leakproof, so the planner may
-- not use it below a row-level security policy, while equality on a term is and may.
CREATE TABLE postings (
    pool_id   uuid NOT NULL,
    term      text NOT NULL,
    memory_id text NOT NULL,
    -- How often the term stands in the memory, and how many terms the memory has.
    frequency integer NOT NULL CHECK (frequency > 0),
    length    integer NOT NULL CHECK (length >= frequency),
    PRIMARY KEY (pool_id, term, memory_id) INCLUDE (frequency, length),
    FOREIGN KEY (pool_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX postings_by_memory ON postings (pool_id, memory_id);

-- What a list or a recall may see: one definition for all of them. A NULL argument leaves its filter out. Plain SQL,
-- so that the planner puts it in line and the caller's row-level security holds inside it.
--   in_project       a project sees its own rows and those of no project
--   since, until     said in that time, or about some of it
--   as_of            what was known then: what had been said and was not yet outdated
--   moment           the present, after which a row may have expired
--   with_superseded  also what was replaced or has expired
CREATE FUNCTION visible_memories(
        in_session text, in_project text, of_kinds text[], of_priorities text[], with_tags text[],
        since timestamptz, until timestamptz, as_of timestamptz, moment timestamptz, with_superseded boolean)
    RETURNS SETOF memories LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
        SELECT * FROM memories m
        WHERE (in_session IS NULL OR m.session_id = in_session)
          AND (in_project IS NULL OR m.project = in_project OR m.project IS NULL)
          AND (of_kinds IS NULL OR m.kind = ANY (of_kinds))
          AND (of_priorities IS NULL OR m.priority = ANY (of_priorities))
          AND (with_tags IS NULL OR m.tags @> with_tags)
          AND ((since IS NULL AND until IS NULL)
               OR m.said_at BETWEEN coalesce(since, '-infinity') AND coalesce(until, 'infinity')
               OR (m.refers_from <= coalesce(until, 'infinity')
                   AND coalesce(m.refers_to, m.refers_from) >= coalesce(since, '-infinity')))
          AND (as_of IS NULL OR m.said_at <= as_of)
          AND (with_superseded OR m.superseded_at IS NULL OR m.outdated_at > as_of)
          AND (with_superseded OR m.valid_until IS NULL OR m.valid_until > coalesce(as_of, moment))
    $$;

CREATE TABLE packs (
    pool_id    uuid NOT NULL,
    session_id text NOT NULL,
    version    integer NOT NULL CHECK (version > 0),
    text       text NOT NULL,
    sha256     text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    tokens     integer NOT NULL,
    memory_ids text[] NOT NULL,
    -- Pinned rows that did not fit.
    pins_left  integer NOT NULL CHECK (pins_left >= 0),
    reason     text NOT NULL CHECK (reason IN ('initial', 'reflection', 'evicted', 'forgotten')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (pool_id, session_id, version),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);

CREATE TABLE reflections (
    pool_id       uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id            text NOT NULL,
    scope         text NOT NULL CHECK (scope IN ('session')),
    session_id    text NOT NULL,
    reflector     text NOT NULL,
    input_ids     text[] NOT NULL,
    output_ids    text[] NOT NULL,
    tokens_before integer NOT NULL,
    tokens_after  integer NOT NULL,
    input_tokens  bigint NOT NULL CHECK (input_tokens >= 0),
    output_tokens bigint NOT NULL CHECK (output_tokens >= 0),
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (pool_id, id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    CHECK (tokens_after < tokens_before)
);


-- Vectors -----------------------------------------------------------------------------------------------------------

-- Which models' vectors a pool has. Vectors of two spaces never meet: each space has a table of its own, made by
-- create_embedding_space().
CREATE TABLE embedding_spaces (
    pool_id    uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    name       text NOT NULL,
    model      text NOT NULL,
    revision   text NOT NULL,
    dimension  integer NOT NULL CHECK (dimension BETWEEN 1 AND 4000),
    prefix     text NOT NULL,
    -- The setting that makes its embedder: queries need it as long as this is the active space.
    source     text NOT NULL,
    state      text NOT NULL CHECK (state IN ('building', 'active', 'retired')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (pool_id, name),
    -- One active space. Deferrable, so that it is checked at the end of a statement and one statement can switch.
    EXCLUDE (pool_id WITH =) WHERE (state = 'active') DEFERRABLE INITIALLY IMMEDIATE
);

-- The queue of the embedding worker, and the reason why a row has no vector yet.
--   queued        attempts = 0, not_before in the past
--   in work       lease_token set
--   cooling down  not_before in the future
--   dead          dead = true, last_error says why
CREATE TABLE embedding_attempts (
    pool_id     uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    space       text NOT NULL,
    memory_id   text NOT NULL,
    not_before  timestamptz NOT NULL,
    attempts    integer NOT NULL DEFAULT 0,
    dead        boolean NOT NULL DEFAULT false,
    -- 3 high, 2 medium, 1 low: what matters is embedded first, and of that the newest.
    urgency     smallint NOT NULL CHECK (urgency BETWEEN 1 AND 3),
    last_error  text,
    lease_token uuid,
    lease_until timestamptz,
    PRIMARY KEY (pool_id, space, memory_id),
    FOREIGN KEY (pool_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    FOREIGN KEY (pool_id, space) REFERENCES embedding_spaces ON DELETE CASCADE,
    CHECK ((lease_token IS NULL) = (lease_until IS NULL))
);
CREATE INDEX embedding_attempts_due ON embedding_attempts (pool_id, space, urgency DESC, memory_id DESC)
    WHERE NOT dead;
CREATE INDEX embedding_attempts_by_memory ON embedding_attempts (pool_id, memory_id);


-- Work --------------------------------------------------------------------------------------------------------------

-- At most one job of a kind for a session.  ready → running → gone;  a failure → ready again, later;  too many → dead.
CREATE TABLE jobs (
    pool_id     uuid NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('observe', 'reflect')),
    session_id  text NOT NULL,
    state       text NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'running', 'dead')),
    run_after   timestamptz NOT NULL,
    -- Messages up to here were asked for by name, whatever the token trigger says.
    up_to_seq   bigint NOT NULL DEFAULT 0,
    -- Somebody asked for the job while it ran, so it runs once more.
    asked_again boolean NOT NULL DEFAULT false,
    attempts    integer NOT NULL DEFAULT 0,
    -- What went wrong last, and the name of its class of errors.
    last_error  text,
    error_kind  text,
    lease_token uuid,
    lease_until timestamptz,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (pool_id, kind, session_id),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    CHECK ((state = 'running') = (lease_token IS NOT NULL)),
    CHECK ((lease_token IS NULL) = (lease_until IS NULL)),
    CHECK (state <> 'dead' OR last_error IS NOT NULL),
    CHECK ((last_error IS NULL) = (error_kind IS NULL))
);
CREATE INDEX jobs_due ON jobs (pool_id, run_after) WHERE state <> 'dead';

CREATE TABLE audit (
    pool_id uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id      bigint GENERATED ALWAYS AS IDENTITY,
    at      timestamptz NOT NULL,
    actor   text NOT NULL,
    action  text NOT NULL,
    -- Ids and counts only, never content.
    target  text NOT NULL,
    detail  jsonb NOT NULL DEFAULT '{}',
    PRIMARY KEY (pool_id, id)
);


-- Isolation ---------------------------------------------------------------------------------------------------------

-- One policy, the same on every pool table. The owner gets a second one, because the functions below run as the
-- owner, and FORCE would hide the rows from it where the owner is not a superuser.
CREATE PROCEDURE isolate(target regclass) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', target);
    EXECUTE format('CREATE POLICY own_pool ON %s TO esker_app
                        USING (pool_id = current_pool()) WITH CHECK (pool_id = current_pool())', target);
    EXECUTE format('CREATE POLICY owner ON %s TO CURRENT_USER USING (true) WITH CHECK (true)', target);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO esker_app', target);
END
$$;
REVOKE EXECUTE ON PROCEDURE isolate FROM PUBLIC;

CALL isolate('api_keys');
CALL isolate('sessions');
CALL isolate('messages');
CALL isolate('observation_groups');
CALL isolate('memories');
CALL isolate('postings');
CALL isolate('packs');
CALL isolate('reflections');
CALL isolate('embedding_spaces');
CALL isolate('embedding_attempts');
CALL isolate('jobs');
CALL isolate('audit');

GRANT SELECT, INSERT, UPDATE (keys_required) ON pools TO esker_app;


-- Questions that no single pool can answer. They run as the owner and give away ids and counts, never content. --------

-- Whose key is this?
CREATE FUNCTION find_api_key(hash bytea, moment timestamptz)
    RETURNS TABLE (pool_id uuid, pool_name text, key_id text, scopes text[])
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT k.pool_id, p.name, k.id, k.scopes
        FROM api_keys k JOIN pools p ON p.id = k.pool_id
        WHERE k.key_hash = hash AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > moment)
    $$;

-- Which pools have a job of these kinds that can run? Who has waited longest comes first.
CREATE FUNCTION pools_with_jobs(kinds text[], moment timestamptz) RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT j.pool_id FROM jobs j
        WHERE j.state <> 'dead' AND j.run_after <= moment AND j.kind = ANY (kinds)
          AND (j.lease_until IS NULL OR j.lease_until <= moment)
        GROUP BY j.pool_id ORDER BY min(j.run_after)
    $$;

-- Which pools have rows that can be embedded?
CREATE FUNCTION pools_with_embedding_work(in_space text, moment timestamptz) RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT p.id FROM pools p
        WHERE EXISTS (
            SELECT FROM embedding_attempts a
            WHERE a.pool_id = p.id AND a.space = in_space AND NOT a.dead AND a.not_before <= moment
              AND (a.lease_until IS NULL OR a.lease_until <= moment))
    $$;

-- Which pools do not know a space yet, or, if asked, have retired it?
CREATE FUNCTION pools_without_space(space text, or_retired boolean) RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT p.id FROM pools p
        WHERE NOT EXISTS (
            SELECT FROM embedding_spaces e
            WHERE e.pool_id = p.id AND e.name = space AND NOT (or_retired AND e.state = 'retired'))
    $$;

-- How much waits, in all pools together?
CREATE FUNCTION backlog(moment timestamptz)
    RETURNS TABLE (unobserved_tokens bigint, oldest_unobserved_seconds double precision,
                   jobs_waiting bigint, jobs_dead bigint, embeddings_waiting bigint, embeddings_dead bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT (SELECT coalesce(sum(s.unobserved_tokens), 0)::bigint FROM sessions s WHERE s.unobserved_tokens > 0),
               (SELECT coalesce(max(extract(epoch FROM moment - m.received_at)), 0)::double precision
                FROM sessions s
                JOIN messages m ON m.pool_id = s.pool_id AND m.session_id = s.id AND m.seq = s.observed_seq + 1
                WHERE s.unobserved_tokens > 0),
               (SELECT count(*) FROM jobs WHERE state <> 'dead'),
               (SELECT count(*) FROM jobs WHERE state = 'dead'),
               (SELECT count(*) FROM embedding_attempts WHERE NOT dead),
               (SELECT count(*) FROM embedding_attempts WHERE dead)
    $$;

-- Make the table of a space, if it is not there. The app role owns nothing and so cannot make it itself.
CREATE FUNCTION create_embedding_space(space text, dimension integer) RETURNS void
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
        memory_id    text NOT NULL,
        content_hash bytea NOT NULL,
        embedding    halfvec(%s) NOT NULL,
        created_at   timestamptz NOT NULL,
        PRIMARY KEY (pool_id, memory_id))', table_name, dimension);
    EXECUTE format('CALL isolate(%L)', table_name);
END
$$;

REVOKE EXECUTE ON FUNCTION find_api_key, pools_with_jobs, pools_with_embedding_work, pools_without_space, backlog,
                           create_embedding_space FROM PUBLIC;
GRANT EXECUTE ON FUNCTION find_api_key, pools_with_jobs, pools_with_embedding_work, pools_without_space, backlog,
                          create_embedding_space TO esker_app;

INSERT INTO pools (name) VALUES ('default');
