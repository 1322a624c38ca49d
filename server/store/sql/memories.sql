-- columns: memory
id, kind, priority, category, trust, content, author, session_id, group_id, project, tags, source_seqs, source_ids,
tokens, said_at, refers_from, refers_to, valid_until, last_used_at, superseded_by, superseded_at, reflection_id,
external_id, tentative, facet, created_at

-- columns: pack_row
id, kind, priority, category, content, group_id, project, tokens, said_at, last_used_at, tentative, trust

-- name: insert
-- Write rows and their keyword index, ordered by external id, so that two batches of the same notes cannot deadlock.
-- The index comes as columns, ordered by term, and each of its entries names its row by the `place` from 1 on. A
-- row with the external id of a live row is left out. Only imported rows can be superseded or `left_alone` already.
WITH new AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
        id text, kind text, priority text, category text, trust text, content text, author text, session_id text,
        group_id text, project text, tags text[], source_seqs bigint[], source_ids text[], tokens int, terms int,
        parts int, said_at timestamptz, refers_from timestamptz, refers_to timestamptz,
        valid_until timestamptz, last_used_at timestamptz, superseded_by text, superseded_at timestamptz,
        outdated_at timestamptz, reflection_id text, external_id text, left_alone boolean, tentative boolean,
        facet text, created_at timestamptz, place int)
), written AS (
    INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, session_id,
                          group_id, project, tags, source_seqs, source_ids, tokens, parts, terms, said_at,
                          refers_from, refers_to, valid_until, last_used_at, superseded_by, superseded_at, outdated_at,
                          reflection_id, external_id, left_alone, tentative, facet, created_at)
    SELECT current_pool(), id, kind, priority, category, trust, content, sha256(convert_to(content, 'UTF8')), author,
           session_id, group_id, project, tags, source_seqs, source_ids, tokens, parts, terms, said_at,
           refers_from, refers_to, valid_until, last_used_at, superseded_by, superseded_at, outdated_at,
           reflection_id, external_id, coalesce(left_alone, false), tentative, facet, created_at
    FROM new
    ORDER BY external_id COLLATE "C" NULLS FIRST, id
    ON CONFLICT (pool_id, external_id) WHERE external_id IS NOT NULL AND superseded_at IS NULL DO NOTHING
    RETURNING id, number
), numbered AS (
    -- An array, since a join would compare each posting with each row if the planner takes them for a few.
    SELECT array_agg(written.number ORDER BY new.place) AS numbers FROM new LEFT JOIN written USING (id)
), indexed AS (
    INSERT INTO postings (pool_id, tier, term, number, part, frequency, length)
    SELECT current_pool(), 'm', posting.term, numbers[posting.place], posting.part, posting.frequency, posting.length
    FROM numbered CROSS JOIN ROWS FROM (
        jsonb_array_elements_text(%(terms)s::jsonb), unnest(%(places)s::int[]), unnest(%(parts)s::smallint[]),
        unnest(%(frequencies)s::int[]), unnest(%(lengths)s::int[])
    ) AS posting (term, place, part, frequency, length)
    WHERE numbers[posting.place] IS NOT NULL
), linked AS (
    INSERT INTO memory_links (pool_id, source_id, memory_id)
    SELECT DISTINCT current_pool(), unnest(new.source_ids), id FROM written JOIN new USING (id)
)
SELECT id FROM written

-- name: by_external_id
-- The live rows with these external ids.
SELECT external_id, id, content FROM memories
WHERE external_id = ANY (%(external_ids)s) AND superseded_at IS NULL

-- name: raise
-- Raise the kind, trust, priority and tags of notes that were written again; never lower them.
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
-- Visible rows, newest first, after a row in that order.
SELECT {memory}
FROM visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s, %(as_of)s,
                      %(moment)s, %(with_superseded)s)
WHERE %(before)s::text IS NULL
   OR (created_at, id) < (SELECT created_at, id FROM memories WHERE id = %(before)s)
ORDER BY created_at DESC, id DESC
LIMIT %(limit)s

-- name: latest_of_session
-- The session's own latest live rows, which the observer is shown to avoid repeats.
SELECT {memory} FROM memories
WHERE session_id = %(session)s AND kind IN ('observation', 'reflection') AND superseded_at IS NULL
ORDER BY said_at DESC, id DESC
LIMIT %(limit)s

-- name: latest_of_project
-- The latest decisions, preferences and facts of a project's other sessions. `NOT left_alone` makes an index usable; rows
-- that a reflection left alone are older.
SELECT {memory} FROM memories
WHERE project = %(project)s::text AND superseded_at IS NULL AND kind <> 'manual' AND NOT left_alone
  AND category IN ('decision', 'preference', 'fact') AND priority <> 'low' AND session_id IS DISTINCT FROM %(session)s
  AND (valid_until IS NULL OR valid_until > %(now)s)
ORDER BY said_at DESC, id DESC
LIMIT %(limit)s

-- name: live_of_session
-- The session's own live rows by the time when they were said.
SELECT {memory}
FROM memories
WHERE session_id = %(session)s AND kind IN ('observation', 'reflection') AND superseded_at IS NULL
ORDER BY said_at, id

-- name: observation_tokens
-- The tokens of the session's live observations; at the trigger they are reflected.
SELECT coalesce(sum(tokens), 0)::bigint FROM memories
WHERE session_id = %(session)s AND kind = 'observation' AND superseded_at IS NULL

-- name: row_counts
-- How many rows were made from a session, live and superseded, and the tokens of its live observations.
SELECT count(*) FILTER (WHERE kind = 'observation' AND superseded_at IS NULL) AS observations_live,
       count(*) FILTER (WHERE kind = 'observation' AND superseded_at IS NOT NULL) AS observations_superseded,
       count(*) FILTER (WHERE kind = 'reflection' AND superseded_at IS NULL) AS reflections_live,
       count(*) FILTER (WHERE kind = 'reflection' AND superseded_at IS NOT NULL) AS reflections_superseded,
       coalesce(sum(tokens) FILTER (WHERE kind = 'observation' AND superseded_at IS NULL), 0)::bigint
           AS observation_tokens
FROM memories WHERE session_id = %(session)s

-- name: lock_observed
-- One transaction at a time adds observations to a session or its project, so that a fact that two sessions hear at the
-- same moment becomes one row.
SELECT pg_advisory_xact_lock(hashtext('observed'), hashtext(current_pool()::text || %(scope)s))

-- name: sharing
-- Live rows of a session or of its project that share terms with a text (by its number), those that share most first,
-- then the newest. For each term only the pool's newest thousand rows count: a more frequent term says little. Rows are
-- looked up one by one until enough are visible; the OFFSETs force this plan.
SELECT asked.number, found.id
FROM jsonb_to_recordset(%(asked)s::jsonb) AS asked (number int, terms text[])
CROSS JOIN LATERAL (
    SELECT seen.id
    FROM (
        SELECT held.number
        FROM unnest(asked.terms) AS wanted (term)
        CROSS JOIN LATERAL (
            SELECT number FROM postings WHERE tier = 'm' AND term = wanted.term ORDER BY number DESC LIMIT 1000
        ) AS held
        GROUP BY held.number ORDER BY count(DISTINCT wanted.term) DESC, held.number DESC OFFSET 0
    ) AS counted
    CROSS JOIN LATERAL (
        SELECT m.id FROM memories m
        WHERE m.number = counted.number AND m.superseded_at IS NULL
          AND (m.session_id = %(session)s OR m.project = %(project)s::text)
          AND (m.valid_until IS NULL OR m.valid_until > %(now)s)
        OFFSET 0
    ) AS seen
    LIMIT %(limit)s
) AS found

-- name: same_words
-- Live rows of a session or of its project with exactly this content.
SELECT {memory} FROM memories m
WHERE content_hash = ANY (SELECT sha256(convert_to(words, 'UTF8')) FROM unnest(%(texts)s::text[]) AS words)
  AND superseded_at IS NULL AND (session_id = %(session)s OR project = %(project)s::text)
  AND (valid_until IS NULL OR valid_until > %(now)s)

-- name: confirm
-- Record that a person confirmed a live row which was written for them; return its id.
UPDATE memories SET trust = 'user'
WHERE id = %(id)s AND superseded_at IS NULL AND kind IN ('note', 'manual')
RETURNING id

-- name: lock_live
-- Lock rows that are about to be changed, and return those that are still live.
SELECT id FROM (SELECT id, superseded_at FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR NO KEY UPDATE) AS locked
WHERE superseded_at IS NULL

-- name: add_restatements
-- These rows were said again: raise their priority to that of the repetition, and their last use to its time.
UPDATE memories m
SET last_used_at = greatest(m.last_used_at, again.said_at),
    priority = (ARRAY ['high', 'medium', 'low'])[least(
        array_position(ARRAY ['high', 'medium', 'low'], m.priority),
        array_position(ARRAY ['high', 'medium', 'low'], again.priority))],
    tentative = m.tentative AND again.tentative
FROM jsonb_to_recordset(%(again)s::jsonb) AS again (id text, said_at timestamptz, priority text, tentative boolean)
WHERE m.id = again.id

-- name: add_sources
-- Add further sources to these rows.
INSERT INTO memory_sources (pool_id, memory_id, session_id, group_id, seqs, said_at)
SELECT current_pool(), id, %(session)s, %(group)s, seqs, said_at
FROM jsonb_to_recordset(%(again)s::jsonb) AS again (id text, seqs bigint[], said_at timestamptz)
ON CONFLICT (pool_id, memory_id, group_id) DO UPDATE
    SET seqs = ARRAY(SELECT DISTINCT unnest(memory_sources.seqs || excluded.seqs) ORDER BY 1)

-- name: inherit_sources
-- Copy the sources of a row to the row that restates all of it.
INSERT INTO memory_sources (pool_id, memory_id, session_id, group_id, seqs, said_at)
SELECT current_pool(), %(by_id)s, session_id, group_id, array_agg(DISTINCT seq ORDER BY seq), min(said_at)
FROM (
    SELECT session_id, group_id, unnest(source_seqs) AS seq, said_at FROM memories
    WHERE id = %(id)s AND group_id IS NOT NULL
    UNION ALL
    SELECT session_id, group_id, unnest(seqs), said_at FROM memory_sources WHERE memory_id = %(id)s
) AS heard
GROUP BY session_id, group_id
ON CONFLICT (pool_id, memory_id, group_id) DO UPDATE
    SET seqs = ARRAY(SELECT DISTINCT unnest(memory_sources.seqs || excluded.seqs) ORDER BY 1)

-- name: other_sources
-- The further sources of rows, in the order of their time.
SELECT memory_id, session_id, seqs FROM memory_sources WHERE memory_id = ANY (%(ids)s) ORDER BY said_at, group_id

-- name: said_in
-- The messages that some rows come from, directly or through the rows that they were condensed from.
-- Rows are looked up one by one; with joins, the planner may read all rows of all pools.
WITH RECURSIVE meant AS (
    SELECT id AS of_id, id, source_ids, session_id, source_seqs FROM memories WHERE id = ANY (%(ids)s)
    UNION
    SELECT meant.of_id, source.*
    FROM meant CROSS JOIN LATERAL (
        SELECT id, source_ids, session_id, source_seqs FROM memories WHERE id = ANY (meant.source_ids) OFFSET 0
    ) AS source
)
SELECT of_id, session_id, source_seqs FROM meant WHERE cardinality(source_seqs) > 0
UNION ALL
SELECT meant.of_id, again.session_id, again.seqs
FROM meant CROSS JOIN LATERAL (
    SELECT session_id, seqs FROM memory_sources WHERE memory_id = meant.id OFFSET 0
) AS again

-- name: taken_from
-- The rows that were taken from one of these messages of a session, or said again in one.
SELECT id FROM memories WHERE session_id = %(session)s AND source_seqs && %(seqs)s::bigint[]
UNION
SELECT memory_id FROM memory_sources WHERE session_id = %(session)s AND seqs && %(seqs)s::bigint[]

-- name: mark_used
-- Set the last use of rows that an agent really used.
UPDATE memories SET last_used_at = greatest(last_used_at, %(at)s) WHERE id = ANY (%(ids)s)

-- name: supersede
-- Supersede rows that are still live.
UPDATE memories SET superseded_by = new.by_id, superseded_at = %(now)s, outdated_at = new.said_at
FROM unnest(%(ids)s::text[], %(by_ids)s::text[], %(said)s::timestamptz[]) AS new (id, by_id, said_at)
WHERE memories.id = new.id AND superseded_at IS NULL
RETURNING memories.id

-- name: inherit_use
-- Give reflections the latest use of their sources, also one during the reflection.
UPDATE memories m
SET last_used_at = greatest(m.last_used_at, (SELECT max(s.last_used_at) FROM memories s WHERE s.id = ANY (m.source_ids)))
WHERE m.id = ANY (%(ids)s)

-- name: restore_replaced
-- Undo: the sources of a reflection's rows are live again, or superseded by the row that has superseded the reflection's
-- since. A source inherits the row's last use if the row was used after the reflection. A note that was written again
-- meanwhile stays superseded by its new version.
UPDATE memories m
SET superseded_by = coalesce(o.superseded_by, again.id),
    superseded_at = CASE WHEN o.superseded_by IS NULL AND again.id IS NOT NULL THEN m.superseded_at
                         ELSE o.superseded_at END,
    outdated_at = CASE WHEN o.superseded_by IS NULL THEN again.said_at ELSE o.outdated_at END,
    last_used_at = CASE
        WHEN o.last_used_at > (SELECT max(s.last_used_at) FROM memories s WHERE s.id = ANY (o.source_ids))
        THEN o.last_used_at ELSE m.last_used_at END
FROM memories o
JOIN memories replaced ON replaced.superseded_by = o.id
LEFT JOIN memories again ON again.external_id = replaced.external_id AND again.superseded_at IS NULL
WHERE o.id = ANY (%(output_ids)s) AND replaced.id = ANY (%(input_ids)s) AND m.id = replaced.id
RETURNING m.id

-- name: restore_dropped
-- Undo: rows that a reflection dropped are live again, unless they are notes that were written again meanwhile.
UPDATE memories m
SET superseded_by = again.id, superseded_at = CASE WHEN again.id IS NOT NULL THEN m.superseded_at END,
    outdated_at = again.said_at
FROM memories dropped
LEFT JOIN memories again ON again.external_id = dropped.external_id AND again.superseded_at IS NULL
WHERE dropped.superseded_by = %(reflection)s AND dropped.id <> ALL (%(output_ids)s) AND m.id = dropped.id
RETURNING m.id

-- name: supersede_outputs
-- Undo: the rows of a reflection are superseded, as if they had never been valid. A row that was said again since, or
-- has superseded another, has more than the reflection as its source, and stays.
UPDATE memories o SET superseded_by = %(reflection)s, superseded_at = %(now)s, outdated_at = '-infinity'
WHERE id = ANY (%(output_ids)s)
  AND NOT EXISTS (SELECT FROM memory_sources s WHERE s.memory_id = o.id)
  AND NOT EXISTS (SELECT FROM memories m WHERE m.superseded_by = o.id)
RETURNING id

-- name: leave_alone
-- Undo: exclude these rows from further reflections of the pool.
UPDATE memories SET left_alone = true WHERE id = ANY (%(input_ids)s)

-- name: to_reflect
-- The rows that a reflection of the pool reads, by project and time: observations, reflections of sessions, and notes
-- that are old enough. Pinned rows are left out, and so are rows of earlier reflections of the pool, undone or not.
SELECT {memory} FROM memories m
WHERE superseded_at IS NULL AND kind <> 'manual' AND (kind = 'note' OR session_id IS NOT NULL)
  AND said_at <= CASE kind WHEN 'note' THEN %(notes_until)s::timestamptz ELSE %(until)s END
  AND (valid_until IS NULL OR valid_until > %(now)s)
  AND (%(project)s::text IS NULL OR project = %(project)s)
  AND NOT left_alone
ORDER BY project, said_at, id
LIMIT %(limit)s

-- name: grows_old
-- Whether a row exists that a reflection of the pool will read when it is old enough.
SELECT EXISTS (
    SELECT FROM memories
    WHERE superseded_at IS NULL AND kind <> 'manual' AND (kind = 'note' OR session_id IS NOT NULL) AND NOT left_alone)

-- name: replaced_by
-- The rows that were superseded by some rows.
SELECT id FROM memories WHERE superseded_by = ANY (%(ids)s)

-- name: with_notes
-- Rows that end with a note (these are its patterns) and may quote another row. A person's own note is never changed. An
-- index has the rows that end with a bracket, as all of the patterns do.
SELECT {memory} FROM memories
WHERE content LIKE ANY (%(patterns)s) AND right(content, 1) = ')' AND kind IN ('observation', 'reflection')

-- name: reword
-- Give rows other words. Their numbers of terms and parts, by which the statistics of the index count, stay as they were.
WITH written AS (
    UPDATE memories m SET content = new.content, content_hash = sha256(convert_to(new.content, 'UTF8')),
                          tokens = new.tokens
    FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (id text, content text, tokens int)
    WHERE m.id = new.id
    RETURNING m.number
), gone AS (
    DELETE FROM postings p USING written w WHERE p.number = w.number
)
SELECT number FROM written

-- name: index_again
-- The keyword index of rows that were given other words.
INSERT INTO postings (pool_id, tier, term, number, part, frequency, length)
SELECT current_pool(), 'm', posting.term, m.number, part.place, posting.frequency::int, (part.it ->> 'length')::int
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (id text, parts jsonb)
JOIN memories m ON m.id = new.id
CROSS JOIN LATERAL jsonb_array_elements(new.parts) WITH ORDINALITY AS part (it, place)
CROSS JOIN LATERAL jsonb_each_text(part.it -> 'terms') AS posting (term, frequency)
ORDER BY posting.term, m.number, part.place

-- name: restore
-- Make rows live again that were superseded by some rows, unless they are notes that were written again meanwhile.
UPDATE memories m
SET superseded_by = again.id, superseded_at = CASE WHEN again.id IS NOT NULL THEN m.superseded_at END,
    outdated_at = again.said_at
FROM memories replaced
LEFT JOIN memories again ON again.external_id = replaced.external_id AND again.superseded_at IS NULL
WHERE replaced.superseded_by = ANY (%(by_ids)s) AND m.id = replaced.id
RETURNING m.id

-- name: lock_to_change
-- Lock rows that are about to be changed. NO KEY, so that rows which refer to them can be written meanwhile.
SELECT id FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR NO KEY UPDATE

-- name: lock_to_delete
-- Lock rows that are about to be deleted, after waiting for transactions that change one.
SELECT id FROM memories WHERE id = ANY (%(ids)s) ORDER BY id FOR UPDATE

-- name: with_sources_of
-- These rows with their sources, and the sources of those, over any number of steps.
WITH RECURSIVE meant AS (
    SELECT id, source_ids FROM memories WHERE id = ANY (%(ids)s)
    UNION
    SELECT m.id, m.source_ids FROM memories m JOIN meant ON m.id = ANY (meant.source_ids)
)
SELECT id FROM meant

-- name: drawn_from
-- These rows and all reflections made from them, over any number of steps.
WITH RECURSIVE drawn AS (
    SELECT id FROM memories WHERE id = ANY (%(ids)s)
    UNION
    SELECT l.memory_id FROM drawn JOIN memory_links l ON l.source_id = drawn.id
)
SELECT id FROM drawn

-- name: delete
-- Delete rows, and return the numbers of their vectors; their postings and queue entries are deleted with them.
DELETE FROM memories WHERE id = ANY (%(ids)s) RETURNING number

-- name: forget_in_reflections
-- Remove ids from the lists of reflections; the others keep their order.
UPDATE reflections
SET input_ids = ARRAY(SELECT id FROM unnest(input_ids) WITH ORDINALITY AS i (id, place)
                      WHERE id <> ALL (%(ids)s) ORDER BY place),
    output_ids = ARRAY(SELECT id FROM unnest(output_ids) WITH ORDINALITY AS o (id, place)
                       WHERE id <> ALL (%(ids)s) ORDER BY place),
    dropped_ids = ARRAY(SELECT id FROM unnest(dropped_ids) WITH ORDINALITY AS d (id, place)
                        WHERE id <> ALL (%(ids)s) ORDER BY place),
    -- The reason for a rejection may quote forgotten text.
    reason = CASE WHEN reason IS NOT NULL THEN 'forgotten with one of its rows' END
WHERE input_ids && %(ids)s OR output_ids && %(ids)s

-- name: lock_pins
-- One transaction at a time pins rows in this pool.
SELECT pg_advisory_xact_lock(hashtext('pins'), hashtext(current_pool()::text))

-- name: pinned_tokens
-- The tokens of pinned rows in the packs of one project, or in those of all.
SELECT coalesce(sum(tokens), 0)::bigint FROM memories
WHERE kind = 'manual' AND superseded_at IS NULL AND NOT expired AND project IS NOT DISTINCT FROM %(project)s

-- name: pinned
-- Pinned rows, oldest first.
SELECT {pack_row} FROM memories
WHERE kind = 'manual' AND superseded_at IS NULL AND NOT expired
  AND (project IS NULL OR %(project)s::text IS NULL OR project = %(project)s)
  AND (valid_until IS NULL OR valid_until > %(now)s)
ORDER BY created_at, id

-- name: own_pack_rows
-- The session's own live rows by the time when they were said, for its pack.
SELECT {pack_row} FROM memories
WHERE session_id = %(session)s AND kind IN ('observation', 'reflection') AND superseded_at IS NULL
  AND (valid_until IS NULL OR valid_until > %(now)s)
ORDER BY said_at, id

-- name: next_of_pool
-- The next rows of each (kind, priority) class of the whole pool by last use, without those of the session itself: one
-- index walk per class. Within a class the pack's score depends on last_used_at alone, so merging these walks gives the
-- pool's rows by score. A walk continues after its last row and ends at its floor. Expired rows are skipped until upkeep
-- removes them from the index.
SELECT walk.number, {pack_row}
FROM jsonb_to_recordset(%(walks)s::jsonb) AS walk (number int, of_kind text, of_priority text, used_by timestamptz,
                                                   after_id text, floor timestamptz)
CROSS JOIN LATERAL (
    SELECT {pack_row} FROM memories
    WHERE kind = walk.of_kind AND priority = walk.of_priority AND superseded_at IS NULL AND NOT expired
      AND last_used_at BETWEEN walk.floor AND walk.used_by AND (last_used_at < walk.used_by OR id > walk.after_id)
      AND (kind = 'note' OR session_id IS DISTINCT FROM %(session)s)
      AND (valid_until IS NULL OR valid_until > %(now)s)
    ORDER BY last_used_at DESC, id
    LIMIT %(limit)s
) AS page

-- name: next_of_project
-- The same for a session with a project: each class has one walk in the project and one among rows without a project
-- (an empty string here).
SELECT walk.number, {pack_row}
FROM jsonb_to_recordset(%(walks)s::jsonb) AS walk (number int, of_kind text, of_priority text, of_project text,
                                                   used_by timestamptz, after_id text, floor timestamptz)
CROSS JOIN LATERAL (
    SELECT {pack_row} FROM memories
    WHERE CASE WHEN project IS NULL THEN '' ELSE project END = walk.of_project
      AND kind = walk.of_kind AND priority = walk.of_priority AND superseded_at IS NULL AND NOT expired
      AND last_used_at BETWEEN walk.floor AND walk.used_by AND (last_used_at < walk.used_by OR id > walk.after_id)
      AND (kind = 'note' OR session_id IS DISTINCT FROM %(session)s)
      AND (valid_until IS NULL OR valid_until > %(now)s)
    ORDER BY last_used_at DESC, id
    LIMIT %(limit)s
) AS page

-- name: pools_with_expired
-- The pools with expired rows that are not marked yet.
SELECT pool_id::text FROM pools_with_expired_memories(%(now)s)

-- name: mark_expired
-- Mark some expired rows, so that packs skip them. Locked rows are skipped, so this never waits and cannot deadlock. The
-- array makes the planner look up rows by id.
UPDATE memories SET expired = true
WHERE id = ANY (ARRAY(
    SELECT id FROM memories
    WHERE valid_until <= %(now)s AND superseded_at IS NULL AND NOT expired
    ORDER BY valid_until LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED))
