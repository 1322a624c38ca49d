-- Quarantine: what came from a source is out of recall and packs, reversibly. Retention: how long a pool keeps what.


-- Quarantine --------------------------------------------------------------------------------------------------------

-- Which memories, passages and sessions it covers: those within all of its limits, also later ones, until it is lifted.
-- `source` is a trust or an author.
CREATE TABLE quarantines (
    pool_id    uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    id         text NOT NULL,
    session_id text,
    project    text,
    client     text,
    source     text,
    since      timestamptz,
    until      timestamptz,
    created_at timestamptz NOT NULL,
    lifted_at  timestamptz,
    PRIMARY KEY (pool_id, id),
    CHECK (num_nonnulls(session_id, project, client, source, since, until) > 0)
);
CALL isolate('quarantines');

-- A memory in quarantine is superseded by it ('qua_…'). This is its state before, to which it returns; and that of a
-- memory which was superseded by one in quarantine and is live meanwhile.
CREATE TABLE quarantined_memories (
    pool_id       uuid NOT NULL,
    quarantine_id text NOT NULL,
    memory_id     text NOT NULL,
    superseded_by text,
    superseded_at timestamptz,
    outdated_at   timestamptz,
    PRIMARY KEY (pool_id, quarantine_id, memory_id),
    FOREIGN KEY (pool_id, quarantine_id) REFERENCES quarantines ON DELETE CASCADE,
    FOREIGN KEY (pool_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX quarantined_memories_by_memory ON quarantined_memories (pool_id, memory_id);
CALL isolate('quarantined_memories');

ALTER TABLE passages ADD COLUMN quarantine_id text;
CREATE INDEX passages_by_quarantine ON passages (pool_id, quarantine_id) WHERE quarantine_id IS NOT NULL;
-- No briefing shows the task of such a session.
ALTER TABLE sessions ADD COLUMN quarantine_id text;
CREATE INDEX sessions_by_quarantine ON sessions (pool_id, quarantine_id) WHERE quarantine_id IS NOT NULL;

-- As before, without what is in quarantine, whether or not superseded rows are asked for.
CREATE OR REPLACE FUNCTION visible_memories(
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
          AND (m.superseded_at IS NULL OR left(m.superseded_by, 4) <> 'qua_')
          AND (with_superseded OR m.valid_until IS NULL OR m.valid_until > coalesce(as_of, moment))
    $$;
CREATE OR REPLACE FUNCTION visible_passages(
        in_session text, in_project text, since timestamptz, until timestamptz, as_of timestamptz)
    RETURNS SETOF passages LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
        SELECT * FROM passages p
        WHERE (in_session IS NULL OR p.session_id = in_session)
          AND (in_project IS NULL OR p.project = in_project OR p.project IS NULL)
          AND (since IS NULL OR p.said_to >= since)
          AND (until IS NULL OR p.said_from <= until)
          AND (as_of IS NULL OR p.said_to <= as_of)
          AND p.quarantine_id IS NULL
    $$;

-- Which pools have a quarantine?
CREATE FUNCTION pools_with_quarantine() RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$ SELECT DISTINCT q.pool_id FROM quarantines q WHERE q.lifted_at IS NULL $$;


-- Retention ---------------------------------------------------------------------------------------------------------

-- For how many days the words of messages, images and passages are kept, and memories by kind ({"observation": 365}).
-- NULL, or a kind that is not named: for ever.
ALTER TABLE pools
    ADD COLUMN keep_messages_days integer CHECK (keep_messages_days > 0),
    ADD COLUMN keep_images_days integer CHECK (keep_images_days > 0),
    ADD COLUMN keep_passages_days integer CHECK (keep_passages_days > 0),
    ADD COLUMN keep_memories_days jsonb NOT NULL DEFAULT '{}' CHECK (jsonb_typeof(keep_memories_days) = 'object');
GRANT UPDATE (keep_messages_days, keep_images_days, keep_passages_days, keep_memories_days) ON pools TO esker_app;

-- Which pools do not keep everything for ever?
CREATE FUNCTION pools_with_retention() RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT p.id FROM pools p
        WHERE num_nonnulls(p.keep_messages_days, p.keep_images_days, p.keep_passages_days) > 0
           OR p.keep_memories_days <> '{}'
    $$;

REVOKE EXECUTE ON FUNCTION pools_with_quarantine, pools_with_retention FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pools_with_quarantine, pools_with_retention TO esker_app;
