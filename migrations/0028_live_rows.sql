-- Migration 0021 was changed on the day it was made: databases that have its first wording get the index of today, which
-- the planner does not take for the walks of a pack. Others keep theirs.

DO $$
BEGIN
    IF pg_get_indexdef('memories_live'::regclass) NOT LIKE '%kind <> %' THEN
        DROP INDEX memories_live;
        CREATE INDEX memories_live ON memories (pool_id, kind, project, said_at)
            WHERE superseded_at IS NULL AND kind <> '';
    END IF;
END $$;
