-- Whoever deletes texts takes their places out of the queue in the order in which everybody locks these.

CREATE OR REPLACE FUNCTION forget_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postings p USING changed c WHERE p.pool_id = c.pool_id AND p.number = c.number;
    DELETE FROM embedding_attempts a
    USING (
        SELECT q.pool_id, q.space, q.number
        FROM embedding_attempts q JOIN changed c ON q.pool_id = c.pool_id AND q.number = c.number
        ORDER BY q.tier DESC, q.number, q.space FOR UPDATE OF q
    ) AS held
    WHERE a.pool_id = held.pool_id AND a.space = held.space AND a.number = held.number;
    RETURN NULL;
END
$$;
