-- The pipeline in full: where else a fact was said, events that come once, reflections of a whole pool that can be
-- undone, and what models cost.


-- What was said again -----------------------------------------------------------------------------------------------

-- A fact that is said once more is no new row: the row that is there gets another source. The first one stands in the
-- row itself (session_id, group_id, source_seqs).
CREATE TABLE memory_sources (
    pool_id    uuid NOT NULL,
    memory_id  text NOT NULL,
    session_id text NOT NULL,
    group_id   text NOT NULL,
    seqs       bigint[] NOT NULL CHECK (cardinality(seqs) > 0),
    said_at    timestamptz NOT NULL,
    PRIMARY KEY (pool_id, memory_id, group_id),
    FOREIGN KEY (pool_id, memory_id) REFERENCES memories ON DELETE CASCADE,
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    FOREIGN KEY (pool_id, group_id) REFERENCES observation_groups ON DELETE CASCADE
);
CREATE INDEX memory_sources_by_session ON memory_sources (pool_id, session_id);
CREATE INDEX memory_sources_by_group ON memory_sources (pool_id, group_id);
CALL isolate('memory_sources');

-- Which rows a reflection's row was drawn from, the other way round: what is forgotten takes along everything that was
-- ever drawn from it, undone or not. A table and no GIN index on source_ids, see postings.
CREATE TABLE memory_links (
    pool_id   uuid NOT NULL,
    source_id text NOT NULL,
    memory_id text NOT NULL,
    PRIMARY KEY (pool_id, source_id, memory_id),
    FOREIGN KEY (pool_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_links_by_memory ON memory_links (pool_id, memory_id);
CALL isolate('memory_links');
INSERT INTO memory_links (pool_id, source_id, memory_id)
SELECT DISTINCT pool_id, unnest(source_ids), id FROM memories WHERE kind = 'reflection';

-- An observation that says the same words as one that is there is that one.
CREATE INDEX memories_by_words ON memories (pool_id, content_hash) WHERE superseded_at IS NULL;

-- What kind of insight a reflection's row is that stands beside its sources, for the whole pool.
ALTER TABLE memories ADD COLUMN facet text CHECK (facet IN ('knowledge', 'behavior', 'event', 'skill')),
    ADD CHECK (facet IS NULL OR (kind = 'reflection' AND session_id IS NULL));

-- Somebody undid what the row was condensed into with others of the pool: it is not tried again.
ALTER TABLE memories ADD COLUMN left_alone boolean NOT NULL DEFAULT false;

-- Said with a reservation ("maybe we should …"): shown as such, and it replaces nothing that was said for certain.
ALTER TABLE memories ADD COLUMN tentative boolean NOT NULL DEFAULT false;

-- What became of the facts that one observer call proposed and that are no row of their own: how many were said before
-- (merged), how many rows they replaced, and how many were refused, by reason. Counts only, never words.
ALTER TABLE observation_groups
    ADD COLUMN merged integer NOT NULL DEFAULT 0 CHECK (merged >= 0),
    ADD COLUMN replaced integer NOT NULL DEFAULT 0 CHECK (replaced >= 0),
    ADD COLUMN refused jsonb NOT NULL DEFAULT '{}';


-- Events ------------------------------------------------------------------------------------------------------------

-- Which events of a session have been acted on: a hook that fires twice tells of one event.
CREATE TABLE session_events (
    pool_id     uuid NOT NULL,
    session_id  text NOT NULL,
    dedupe_key  text NOT NULL,
    kind        text NOT NULL CHECK (kind IN ('compaction_pending', 'session_end', 'turn_end', 'evicted')),
    received_at timestamptz NOT NULL,
    PRIMARY KEY (pool_id, session_id, kind, dedupe_key),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE
);
CALL isolate('session_events');


-- Reflections -------------------------------------------------------------------------------------------------------

-- After a reflection that was no better than what is there, or that was undone, live observations must reach this
-- many tokens before there is another. NULL: the session's own trigger.
ALTER TABLE sessions ADD COLUMN reflect_at_tokens bigint CHECK (reflect_at_tokens > 0);

-- A reflection belongs to a session, or to the whole pool (of one project, or of what belongs to none).
--   committed   its rows stand for its inputs
--   rejected    no candidate was better than what is there; `reason` says why, and nothing was changed
--   undone      its inputs are live again
-- Of its inputs those that no output cites are `dropped_ids`; the others that are not cited stayed as they were.
ALTER TABLE reflections
    ALTER COLUMN session_id DROP NOT NULL,
    ADD COLUMN project text,
    ADD COLUMN state text NOT NULL DEFAULT 'committed' CHECK (state IN ('committed', 'rejected', 'undone')),
    ADD COLUMN level integer NOT NULL DEFAULT 0 CHECK (level BETWEEN 0 AND 3),
    ADD COLUMN reason text,
    ADD COLUMN dropped_ids text[] NOT NULL DEFAULT '{}',
    ADD COLUMN undone_at timestamptz,
    DROP CONSTRAINT reflections_scope_check,
    DROP CONSTRAINT reflections_check,
    ADD CHECK (scope IN ('session', 'pool')),
    ADD CHECK ((scope = 'session') = (session_id IS NOT NULL)),
    ADD CHECK (state = 'rejected' OR tokens_after < tokens_before),
    ADD CHECK ((state = 'rejected') = (reason IS NOT NULL)),
    ADD CHECK ((state = 'undone') = (undone_at IS NOT NULL));
UPDATE reflections r
SET project = (SELECT s.project FROM sessions s WHERE s.pool_id = r.pool_id AND s.id = r.session_id),
    dropped_ids = ARRAY(SELECT m.id FROM memories m WHERE m.pool_id = r.pool_id AND m.superseded_by = r.id ORDER BY m.id);
CREATE INDEX reflections_by_session ON reflections (pool_id, session_id, id DESC) WHERE session_id IS NOT NULL;
CREATE INDEX reflections_by_age ON reflections (pool_id, id DESC);

-- What a reflection of the pool looks at, oldest first.
CREATE INDEX memories_to_reflect ON memories (pool_id, project, said_at, id)
    WHERE superseded_at IS NULL AND kind <> 'manual' AND NOT left_alone;

-- A job is about a session, or about the pool itself. Then its subject is empty for what comes every day, and names how
-- it was asked for otherwise, so that two wishes do not become one.
ALTER TABLE jobs DROP CONSTRAINT jobs_pkey;
ALTER TABLE jobs DROP CONSTRAINT jobs_pool_id_session_id_fkey;
ALTER TABLE jobs DROP CONSTRAINT jobs_kind_check;
ALTER TABLE jobs RENAME COLUMN session_id TO subject;
ALTER TABLE jobs
    ADD COLUMN session_id text GENERATED ALWAYS AS (CASE WHEN kind <> 'reflect_pool' THEN subject END) STORED,
    -- How a reflection of the pool was asked for.
    ADD COLUMN options jsonb NOT NULL DEFAULT '{}',
    ADD PRIMARY KEY (pool_id, kind, subject),
    ADD FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    ADD CHECK (kind IN ('observe', 'reflect', 'reflect_pool')),
    ADD CHECK (kind = 'reflect_pool' OR subject <> '');


-- Money -------------------------------------------------------------------------------------------------------------

-- What models were sent and wrote for a pool, by the day (UTC), in their providers' own tokens. The cost is what the
-- prices that were set by then make of it; NULL where a price is not known.
CREATE TABLE spend (
    pool_id            uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    day                date NOT NULL,
    model              text NOT NULL,
    purpose            text NOT NULL CHECK (purpose IN ('observe', 'reflect')),
    calls              bigint NOT NULL CHECK (calls > 0),
    input_tokens       bigint NOT NULL CHECK (input_tokens >= 0),
    cache_write_tokens bigint NOT NULL CHECK (cache_write_tokens >= 0),
    cache_read_tokens  bigint NOT NULL CHECK (cache_read_tokens >= 0),
    output_tokens      bigint NOT NULL CHECK (output_tokens >= 0),
    cost_usd           numeric(20, 10) CHECK (cost_usd >= 0),
    PRIMARY KEY (pool_id, day, model, purpose)
);
CALL isolate('spend');

-- The most that models may cost a pool in a day (NULL: what the server's settings say), and what happens then.
ALTER TABLE pools
    ADD COLUMN daily_cap_usd numeric(12, 4) CHECK (daily_cap_usd >= 0),
    ADD COLUMN when_spent text NOT NULL DEFAULT 'wait' CHECK (when_spent IN ('wait', 'extractive'));
GRANT UPDATE (daily_cap_usd, when_spent) ON pools TO esker_app;


-- How well transcripts are covered, in all pools together: messages, those in a group, those that are neither in a
-- group nor in the unobserved tail (none, ever), and the lowest share of any session.
CREATE FUNCTION coverage()
    RETURNS TABLE (messages bigint, covered_messages bigint, lost_messages bigint, lowest_coverage double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        WITH covered AS (
            SELECT s.last_seq, s.observed_seq, coalesce(sum(g.last_seq - g.first_seq + 1), 0) AS messages
            FROM sessions s
            LEFT JOIN observation_groups g ON g.pool_id = s.pool_id AND g.session_id = s.id
            WHERE s.last_seq > 0
            GROUP BY s.pool_id, s.id
        )
        SELECT coalesce(sum(last_seq), 0)::bigint, coalesce(sum(c.messages), 0)::bigint,
               coalesce(sum(observed_seq - c.messages), 0)::bigint,
               coalesce(min(c.messages::float8 / last_seq), 1)::float8
        FROM covered c
    $$;
REVOKE EXECUTE ON FUNCTION coverage FROM PUBLIC;
GRANT EXECUTE ON FUNCTION coverage TO esker_app;
