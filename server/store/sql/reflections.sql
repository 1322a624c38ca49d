-- columns: reflection
id, scope, session_id, project, reflector, state, level, reason, input_ids, output_ids, dropped_ids, tokens_before,
tokens_after, input_tokens, output_tokens, created_at, undone_at

-- name: insert
-- Record the result of one reflection, or (with a reason) that all candidates were rejected.
INSERT INTO reflections (pool_id, id, scope, session_id, project, reflector, state, level, reason, input_ids,
                         output_ids, dropped_ids, tokens_before, tokens_after, input_tokens, output_tokens, created_at)
VALUES (current_pool(), %(id)s, %(scope)s, %(session)s, %(project)s, %(reflector)s,
        CASE WHEN %(reason)s::text IS NULL THEN 'committed' ELSE 'rejected' END, %(level)s, %(reason)s, %(input_ids)s,
        %(output_ids)s, %(dropped_ids)s, %(tokens_before)s, %(tokens_after)s, %(input_tokens)s, %(output_tokens)s,
        %(now)s)

-- name: get
-- One reflection.
SELECT {reflection} FROM reflections WHERE id = %(id)s

-- name: list
-- Reflections of a session, of one scope or all, newest first, between two ids.
SELECT {reflection} FROM reflections
WHERE (%(session)s::text IS NULL OR session_id = %(session)s)
  AND (%(scope)s::text IS NULL OR scope = %(scope)s)
  AND (%(before)s::text IS NULL OR id < %(before)s)
  AND (%(after)s::text IS NULL OR id > %(after)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: lock
-- One reflection, locked until the transaction ends.
SELECT {reflection} FROM reflections WHERE id = %(id)s FOR UPDATE

-- name: undo
-- Mark a reflection undone.
UPDATE reflections SET state = 'undone', undone_at = %(now)s WHERE id = %(id)s

-- name: rejected
-- Whether a reflection of these rows, or of all but an eighth of them, was rejected before.
SELECT EXISTS (
    SELECT FROM reflections
    WHERE scope = 'pool' AND state = 'rejected' AND input_ids && %(ids)s::text[]
      AND cardinality(ARRAY(SELECT unnest(input_ids) INTERSECT SELECT unnest(%(ids)s::text[])))
          > cardinality(%(ids)s::text[]) * 7 / 8.0)
