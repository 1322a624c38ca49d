-- Recall: what is searched has a number, what messages said is searched as passages, a text may have several vectors,
-- and large pools have an index of their own for theirs.


-- What is searched --------------------------------------------------------------------------------------------------

-- A memory ('m') or a passage ('p') is known to both searches by a number: a posting with a number is half as long as
-- one with an id, and reading postings is most of what a search by keyword does. Later ones have higher numbers.
CREATE SEQUENCE search_numbers;
GRANT USAGE ON SEQUENCE search_numbers TO esker_app;

ALTER TABLE memories ADD COLUMN number bigint;
UPDATE memories m SET number = numbered.number
FROM (
    SELECT pool_id, id, nextval('search_numbers') AS number
    FROM (SELECT pool_id, id FROM memories ORDER BY created_at, id) AS aged
) AS numbered
WHERE m.pool_id = numbered.pool_id AND m.id = numbered.id;
-- A long text is searched in parts.
ALTER TABLE memories ADD COLUMN parts integer NOT NULL DEFAULT 1 CHECK (parts >= 0);
ALTER TABLE memories ALTER COLUMN parts DROP DEFAULT;
ALTER TABLE memories ALTER COLUMN number SET DEFAULT nextval('search_numbers'), ALTER COLUMN number SET NOT NULL;
CREATE UNIQUE INDEX memories_by_number ON memories (pool_id, number);
CREATE INDEX memories_by_project ON memories (pool_id, project);
-- What was said in a time, or is about it.
CREATE INDEX memories_by_time ON memories (pool_id, said_at DESC);
CREATE INDEX memories_by_time_told ON memories (pool_id, refers_from DESC) WHERE refers_from IS NOT NULL;

-- Windows of a session's messages, word for word: the second tier of recall, for what no fact has kept.
CREATE TABLE passages (
    pool_id      uuid NOT NULL,
    id           text NOT NULL,
    number       bigint NOT NULL DEFAULT nextval('search_numbers'),
    session_id   text NOT NULL,
    project      text,
    first_seq    bigint NOT NULL,
    last_seq     bigint NOT NULL,
    text         text NOT NULL CHECK (text <> ''),
    content_hash bytea NOT NULL,
    -- The least of what its messages are trusted.
    trust        text NOT NULL CHECK (trust IN ('user', 'assistant', 'tool', 'external')),
    tokens       integer NOT NULL CHECK (tokens > 0),
    parts        integer NOT NULL CHECK (parts >= 0),
    terms        integer NOT NULL CHECK (terms >= 0),
    said_from    timestamptz NOT NULL,
    said_to      timestamptz NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (pool_id, id),
    UNIQUE (pool_id, number),
    UNIQUE (pool_id, session_id, first_seq),
    FOREIGN KEY (pool_id, session_id) REFERENCES sessions ON DELETE CASCADE,
    CHECK (first_seq BETWEEN 1 AND last_seq),
    CHECK (said_from <= said_to)
);
CREATE INDEX passages_by_project ON passages (pool_id, project);
CREATE INDEX passages_by_time ON passages (pool_id, said_to DESC);
CALL isolate('passages');

-- Something that was said in the message was forgotten, so it is in no passage, though it is kept.
ALTER TABLE messages ADD COLUMN left_out boolean NOT NULL DEFAULT false;

-- Whether the pool has passages. A session's messages up to passages_seq were looked at for them.
ALTER TABLE pools ADD COLUMN passages boolean NOT NULL DEFAULT true;
GRANT UPDATE (passages) ON pools TO esker_app;
ALTER TABLE sessions ADD COLUMN passages_seq bigint NOT NULL DEFAULT 0, ADD CHECK (passages_seq BETWEEN 0 AND last_seq);

-- What a recall may see of passages, as visible_memories has it. A passage is neither superseded nor does it expire.
CREATE FUNCTION visible_passages(
        in_session text, in_project text, since timestamptz, until timestamptz, as_of timestamptz)
    RETURNS SETOF passages LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
        SELECT * FROM passages p
        WHERE (in_session IS NULL OR p.session_id = in_session)
          AND (in_project IS NULL OR p.project = in_project OR p.project IS NULL)
          AND (since IS NULL OR p.said_to >= since)
          AND (until IS NULL OR p.said_from <= until)
          AND (as_of IS NULL OR p.said_to <= as_of)
    $$;


-- By keyword --------------------------------------------------------------------------------------------------------

-- BM25's inverted index, by numbers and for both tiers. There is no foreign key, which would be looked up for every term
-- of every text; the triggers below let postings go with what they are of.
ALTER TABLE postings RENAME TO old_postings;
CREATE TABLE postings (
    pool_id   uuid NOT NULL,
    tier      "char" NOT NULL CHECK (tier IN ('m', 'p')),
    term      text NOT NULL,
    number    bigint NOT NULL,
    part      smallint NOT NULL,
    -- How often the term stands in the part, and how many terms the part has.
    frequency integer NOT NULL CHECK (frequency > 0),
    length    integer NOT NULL CHECK (length >= frequency),
    CONSTRAINT postings_by_term PRIMARY KEY (pool_id, tier, term, number, part) INCLUDE (frequency, length)
);
INSERT INTO postings (pool_id, tier, term, number, part, frequency, length)
SELECT o.pool_id, 'm', o.term, m.number, 1, o.frequency, o.length
FROM old_postings o JOIN memories m ON m.pool_id = o.pool_id AND m.id = o.memory_id;
DROP TABLE old_postings;
CREATE INDEX postings_by_number ON postings (pool_id, number);
CALL isolate('postings');

-- How many parts a tier of a pool has and how many terms they have together: what BM25 weighs by. A tier has as many
-- slots as there were ever writers at one moment; each writer takes one that nobody holds, so none waits for another.
CREATE TABLE tier_sizes (
    pool_id uuid NOT NULL REFERENCES pools ON DELETE CASCADE,
    tier    "char" NOT NULL CHECK (tier IN ('m', 'p')),
    slot    bigint GENERATED ALWAYS AS IDENTITY,
    parts   bigint NOT NULL,
    terms   bigint NOT NULL,
    PRIMARY KEY (pool_id, tier, slot)
);
CALL isolate('tier_sizes');
INSERT INTO tier_sizes (pool_id, tier, parts, terms)
SELECT pool_id, 'm', count(*), sum(terms) FROM memories GROUP BY pool_id;

CREATE FUNCTION count_parts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_tier "char" := TG_ARGV[0];
    sign    integer := CASE TG_OP WHEN 'DELETE' THEN -1 ELSE 1 END;
    change  record;
    free    bigint;
BEGIN
    FOR change IN
        SELECT c.pool_id, sign * sum(c.parts) AS parts, sign * sum(c.terms) AS terms
        FROM changed c JOIN pools p ON p.id = c.pool_id
        GROUP BY c.pool_id ORDER BY c.pool_id
    LOOP
        SELECT slot INTO free FROM tier_sizes
        WHERE pool_id = change.pool_id AND tier = of_tier LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE tier_sizes SET parts = tier_sizes.parts + change.parts, terms = tier_sizes.terms + change.terms
            WHERE pool_id = change.pool_id AND tier = of_tier AND slot = free;
        ELSE
            INSERT INTO tier_sizes (pool_id, tier, parts, terms)
            VALUES (change.pool_id, of_tier, change.parts, change.terms);
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_new AFTER INSERT ON memories REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_parts('m');
CREATE TRIGGER count_gone AFTER DELETE ON memories REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_parts('m');
CREATE TRIGGER count_new AFTER INSERT ON passages REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_parts('p');
CREATE TRIGGER count_gone AFTER DELETE ON passages REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION count_parts('p');


-- By meaning --------------------------------------------------------------------------------------------------------

-- What a cosine is worth in the space, by script: mean and deviation between unrelated texts, and how much it may say.
ALTER TABLE embedding_spaces ADD COLUMN calibration jsonb NOT NULL DEFAULT '{}';

-- The queue knows what is to be embedded by its number, too.
ALTER TABLE embedding_attempts ADD COLUMN number bigint, ADD COLUMN tier "char";
UPDATE embedding_attempts a SET number = m.number, tier = 'm'
FROM memories m WHERE m.pool_id = a.pool_id AND m.id = a.memory_id;
ALTER TABLE embedding_attempts DROP COLUMN memory_id;
ALTER TABLE embedding_attempts
    ALTER COLUMN number SET NOT NULL,
    ALTER COLUMN tier SET NOT NULL,
    ADD CHECK (tier IN ('m', 'p')),
    -- 3 high, 2 medium, 1 low priority, 0 a passage.
    DROP CONSTRAINT embedding_attempts_urgency_check,
    ADD CHECK (urgency BETWEEN 0 AND 3),
    ADD PRIMARY KEY (pool_id, space, number);
CREATE INDEX embedding_attempts_due ON embedding_attempts (pool_id, space, urgency DESC, number DESC) WHERE NOT dead;
CREATE INDEX embedding_attempts_by_number ON embedding_attempts (pool_id, number);

-- What goes takes its postings and its places in the queue along. Its vectors have no trigger, since their tables come
-- and go; whoever deletes rows deletes those too, and an orphan is found by nobody.
CREATE FUNCTION forget_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postings p USING changed c WHERE p.pool_id = c.pool_id AND p.number = c.number;
    DELETE FROM embedding_attempts a USING changed c WHERE a.pool_id = c.pool_id AND a.number = c.number;
    RETURN NULL;
END
$$;
CREATE TRIGGER forget_search AFTER DELETE ON memories REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION forget_search();
CREATE TRIGGER forget_search AFTER DELETE ON passages REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION forget_search();

-- A long text has a vector for each of its parts. Every space there is gets the new shape, and so will later ones.
CREATE PROCEDURE number_vectors(space text) LANGUAGE plpgsql AS $$
DECLARE
    vectors text := quote_ident('embeddings_' || space);
BEGIN
    EXECUTE format('ALTER TABLE %s ADD COLUMN tier "char" NOT NULL DEFAULT ''m'', ADD COLUMN number bigint,
                        ADD COLUMN part smallint NOT NULL DEFAULT 0', vectors);
    EXECUTE format('UPDATE %s v SET number = m.number FROM memories m
                    WHERE m.pool_id = v.pool_id AND m.id = v.memory_id', vectors);
    EXECUTE format('DELETE FROM %s WHERE number IS NULL', vectors);
    EXECUTE format('ALTER TABLE %s DROP COLUMN memory_id, ALTER COLUMN tier DROP DEFAULT,
                        ALTER COLUMN part DROP DEFAULT, ADD PRIMARY KEY (pool_id, tier, number, part)', vectors);
END
$$;
DO $$
DECLARE
    space record;
BEGIN
    FOR space IN SELECT DISTINCT name FROM embedding_spaces WHERE to_regclass('embeddings_' || name) IS NOT NULL LOOP
        CALL number_vectors(space.name);
    END LOOP;
END
$$;
DROP PROCEDURE number_vectors;

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
        embedding    halfvec(%s) NOT NULL,
        created_at   timestamptz NOT NULL,
        PRIMARY KEY (pool_id, tier, number, part))', table_name, dimension);
    EXECUTE format('CALL isolate(%L)', table_name);
END
$$;
