-- columns: memory
id, kind, priority, category, trust, content, author, session_id, group_id, project, tags, source_seqs, source_ids,
tokens, said_at, refers_from, refers_to, valid_until, last_used_at, superseded_by, superseded_at, reflection_id,
external_id, created_at

-- name: insert
-- Write rows with the terms that they are found by, in the order of their names, so that two batches of the same notes
-- wait for each other in turn. A row whose external id names a live row already is left out.
WITH new AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
        id text, kind text, priority text, category text, trust text, content text, author text, session_id text,
        group_id text, project text, tags text[], source_seqs bigint[], source_ids text[], tokens int, terms int,
        frequencies jsonb, said_at timestamptz, refers_from timestamptz, refers_to timestamptz,
        valid_until timestamptz, last_used_at timestamptz, reflection_id text, external_id text,
        created_at timestamptz)
), written AS (
    INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, session_id,
                          group_id, project, tags, source_seqs, source_ids, tokens, terms, said_at, refers_from,
                          refers_to, valid_until, last_used_at, reflection_id, external_id, created_at)
    SELECT current_pool(), id, kind, priority, category, trust, content, sha256(convert_to(content, 'UTF8')), author,
           session_id, group_id, project, tags, source_seqs, source_ids, tokens, terms, said_at, refers_from,
           refers_to, valid_until, last_used_at, reflection_id, external_id, created_at
    FROM new
    ORDER BY external_id COLLATE "C" NULLS FIRST, id
    ON CONFLICT (pool_id, external_id) WHERE external_id IS NOT NULL AND superseded_at IS NULL DO NOTHING
    RETURNING id
), indexed AS (
    INSERT INTO postings (pool_id, term, memory_id, frequency, length)
    SELECT current_pool(), posting.term, id, posting.frequency::int, new.terms
    FROM written JOIN new USING (id) CROSS JOIN LATERAL jsonb_each_text(new.frequencies) AS posting (term, frequency)
    ORDER BY posting.term, id
)
SELECT id FROM written

-- name: by_external_id
-- The live rows that callers know under these names.
SELECT external_id, id, content FROM memories
WHERE external_id = ANY (%(external_ids)s) AND superseded_at IS NULL

-- name: raise
-- Rows that were written once more: what is asked for now can make them matter more, never less.
UPDATE memories m
SET kind = CASE WHEN 'manual' IN (m.kind, again.kind) THEN 'manual' ELSE m.kind END,
    trust = CASE WHEN 'user' IN (m.trust, again.trust) THEN 'user' ELSE m.trust END,
    priority = (ARRAY ['high', 'medium', 'low'])[least(
        array_position(ARRAY ['high', 'medium', 'low'], m.priority),
        array_position(ARRAY ['high', 'medium', 'low'], again.priority))],
    tags = ARRAY(SELECT tag FROM unnest(m.tags || again.tags) WITH ORDINALITY AS t (tag, place)
                 GROUP BY tag ORDER BY min(place))
FROM jsonb_to_recordset(%(rows)s::jsonb) AS again (id text, kind text, trust text, priority text, tags text[])
WHERE m.id = again.id AND m.kind IN ('note', 'manual')

-- name: get
-- Rows by id.
SELECT {memory}
FROM memories WHERE id = ANY (%(ids)s)

-- name: list
-- What a list may see, newest first, after a place in that order.
SELECT {memory}
FROM visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s, %(as_of)s,
                      %(moment)s, %(with_superseded)s)
WHERE %(before)s::text IS NULL
   OR (created_at, id) < (SELECT created_at, id FROM memories WHERE id = %(before)s)
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s

-- name: latest_of_session
-- The session's own latest observations, to show the observer what it has.
SELECT {memory} FROM memories
WHERE session_id = %(session)s AND kind IN ('observation', 'reflection') AND superseded_at IS NULL
ORDER BY said_at DESC, id DESC
LIMIT %(limit)s

-- name: live_of_session
-- The session's own live rows in the order of what they tell.
SELECT {memory}
FROM memories
WHERE session_id = %(session)s AND kind IN ('observation', 'reflection') AND superseded_at IS NULL
ORDER BY said_at, id

-- name: observation_tokens
-- What the session's live observations cost: at the trigger they are reflected.
SELECT coalesce(sum(tokens), 0)::bigint FROM memories
WHERE session_id = %(session)s AND kind = 'observation' AND superseded_at IS NULL

-- name: supersede
-- Let rows be replaced, but only those that are still live.
UPDATE memories SET superseded_by = new.by_id, superseded_at = %(now)s, outdated_at = new.said_at
FROM unnest(%(ids)s::text[], %(by_ids)s::text[], %(said)s::timestamptz[]) AS new (id, by_id, said_at)
WHERE memories.id = new.id AND superseded_at IS NULL
RETURNING memories.id

-- name: restore
-- Bring back what a row had replaced.
UPDATE memories SET superseded_by = NULL, superseded_at = NULL, outdated_at = NULL
WHERE superseded_by = ANY (%(by_ids)s)
RETURNING id

-- name: hold
-- Those of these rows that are there, kept there until the transaction ends, whoever wants to delete them.
SELECT id FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR KEY SHARE

-- name: lock_to_change
-- Lock rows that are about to be changed. NO KEY, so that packs which show them can be frozen meanwhile.
SELECT id FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR NO KEY UPDATE

-- name: lock_to_delete
-- Lock rows that are about to be deleted; whoever holds one is waited for.
SELECT id FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR UPDATE

-- name: stood_for
-- These rows, and all rows that they stand for, and those stand for.
WITH RECURSIVE meant AS (
    SELECT id, source_ids FROM memories WHERE id = ANY (%(ids)s)
    UNION
    SELECT m.id, m.source_ids FROM memories m JOIN meant ON m.id = ANY (meant.source_ids)
)
SELECT id FROM meant

-- name: drawn_from
-- These rows, and all reflections that were drawn from them, and from those: the rows of the reflection that replaced a
-- row, as far as they cite it.
WITH RECURSIVE drawn AS (
    SELECT id, superseded_by FROM memories WHERE id = ANY (%(ids)s)
    UNION
    SELECT m.id, m.superseded_by
    FROM drawn
    JOIN memories s ON s.id = drawn.superseded_by
    JOIN memories m ON m.reflection_id = s.reflection_id AND m.source_ids @> ARRAY [drawn.id]
)
SELECT id FROM drawn

-- name: delete
-- Delete rows; their postings and places in the queue go with them.
DELETE FROM memories WHERE id = ANY (%(ids)s)

-- name: forget_in_reflections
-- Take ids out of what reflections say about themselves.
UPDATE reflections
SET input_ids = ARRAY(SELECT unnest(input_ids) EXCEPT SELECT unnest(%(ids)s::text[])),
    output_ids = ARRAY(SELECT unnest(output_ids) EXCEPT SELECT unnest(%(ids)s::text[]))
WHERE input_ids && %(ids)s OR output_ids && %(ids)s

-- name: lock_pins
-- One transaction at a time pins rows in this pool.
SELECT pg_advisory_xact_lock(hashtext('pins'), hashtext(current_pool()::text))

-- name: pinned_tokens
-- What a person pinned costs in the packs of one project, or in those of all.
SELECT coalesce(sum(tokens), 0)::bigint FROM memories
WHERE kind = 'manual' AND superseded_at IS NULL AND project IS NOT DISTINCT FROM %(project)s

-- name: pinned
-- What a person pinned, oldest first.
SELECT {memory}
FROM memories
WHERE kind = 'manual' AND superseded_at IS NULL
  AND (project IS NULL OR %(project)s::text IS NULL OR project = %(project)s)
  AND (valid_until IS NULL OR valid_until > %(now)s)
ORDER BY created_at, id

-- name: best_of_classes
-- The first rows of each (kind, priority) class by last use, those of the session itself left out: one index walk
-- per class. Within a class the pack's score falls with last_used_at alone, so a merge of these walks is the order of
-- the whole pool.
SELECT {memory}
FROM unnest(%(kinds)s::text[], %(priorities)s::text[]) AS class (of_kind, of_priority)
CROSS JOIN LATERAL (
    SELECT * FROM (
        SELECT *, sum(tokens) OVER (ORDER BY last_used_at DESC, id ROWS UNBOUNDED PRECEDING) - tokens AS before
        FROM memories
        WHERE kind = class.of_kind AND priority = class.of_priority AND superseded_at IS NULL
          AND (kind = 'note' OR session_id IS DISTINCT FROM %(session)s)
          AND (project IS NULL OR %(project)s::text IS NULL OR project = %(project)s)
          AND (valid_until IS NULL OR valid_until > %(now)s)
        ORDER BY last_used_at DESC, id
        LIMIT %(limit)s
    ) AS walk
    WHERE before < %(tokens)s
) AS m
