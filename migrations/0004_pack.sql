-- The pack at any size: walks that pass by nothing, and what decided about each of its rows.


-- Ranks -------------------------------------------------------------------------------------------------------------

-- Its valid_until has passed, which is for ever. The time itself decides what is shown; this takes the row out of the
-- indexes that a pack walks, since no index knows what time it is.
ALTER TABLE memories ADD COLUMN expired boolean NOT NULL DEFAULT false;
CREATE INDEX memories_to_expire ON memories (pool_id, valid_until)
    WHERE valid_until IS NOT NULL AND superseded_at IS NULL AND NOT expired;

-- A pack is a merge of one walk per class: of the first index for a session without a project, of the second for one
-- with a project, which walks the rows of its project and those of none. No project is an empty one there: Postgres sees
-- no order behind IS NULL, and nothing but this index is of use then, whatever it believes about the rows. (CASE and not
-- coalesce, which Postgres does not take to be leakproof, so that it could not be looked up below row-level security.)
DROP INDEX memories_by_rank;
CREATE INDEX memories_by_rank ON memories (pool_id, kind, priority, last_used_at DESC, id)
    WHERE superseded_at IS NULL AND NOT expired;
CREATE INDEX memories_by_rank_in_project ON memories
    (pool_id, (CASE WHEN project IS NULL THEN '' ELSE project END), kind, priority, last_used_at DESC, id)
    WHERE superseded_at IS NULL AND NOT expired;

-- Which pools have rows that expired and are not marked yet?
CREATE FUNCTION pools_with_expired_memories(moment timestamptz) RETURNS TABLE (pool_id uuid)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
        SELECT p.id FROM pools p
        WHERE EXISTS (
            SELECT FROM memories m
            WHERE m.pool_id = p.id AND m.valid_until <= moment AND m.superseded_at IS NULL AND NOT m.expired)
    $$;
REVOKE EXECUTE ON FUNCTION pools_with_expired_memories FROM PUBLIC;
GRANT EXECUTE ON FUNCTION pools_with_expired_memories TO esker_app;


-- Explanations ------------------------------------------------------------------------------------------------------

-- What decided about the rows of a pack when it was frozen (one entry for each of memory_ids) and about rows that were
-- looked at and left out (one for each of left_out_ids). NULL in packs that are older than this.
ALTER TABLE packs
    ADD COLUMN reasons jsonb,
    ADD COLUMN left_out_ids text[] NOT NULL DEFAULT '{}',
    ADD COLUMN left_out jsonb NOT NULL DEFAULT '[]',
    ADD CHECK (jsonb_array_length(reasons) = cardinality(memory_ids)),
    ADD CHECK (jsonb_array_length(left_out) = cardinality(left_out_ids));
-- A pack is built while an agent waits, and squeezing its text would be a tenth of that time.
ALTER TABLE packs ALTER COLUMN text SET STORAGE EXTERNAL;
