-- Forgetting looks for rows whose note quotes what goes. Notes end with a bracket; without this index every row was read.
CREATE INDEX memories_with_notes ON memories (pool_id)
    WHERE kind IN ('observation', 'reflection') AND right(content, 1) = ')';
