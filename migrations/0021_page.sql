-- The page: counts of a large pool, and former packs that can be compared with the present one.

-- Live rows are counted by kind, project and time in this index alone. Only the statement that counts says that a kind is
-- not empty: while a table has no statistics, the planner would take this index for the walks of a pack, too.
CREATE INDEX memories_live ON memories (pool_id, kind, project, said_at) WHERE superseded_at IS NULL AND kind <> '';

-- The rows of a former pack, from which the page tells the difference between two versions: ids alone, since the words
-- are in the rows. NULL: the version is older than this column, one of the latest few came after it, or a row that it
-- showed was forgotten.
ALTER TABLE former_packs ADD COLUMN memory_ids text[];

-- A key of a project that freezes a pack lets go of the ids of an old version, too.
GRANT UPDATE ON former_packs TO esker_project;
ALTER POLICY changed ON former_packs
    USING (pool_id = current_pool() AND EXISTS (
        SELECT FROM sessions s WHERE s.id = session_id AND s.project = current_project()));
