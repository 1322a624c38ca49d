-- columns: passage
id, number, session_id, project, first_seq, last_seq, text, trust, tokens, said_from, said_to

-- name: wanted
-- Whether the pool has passages.
SELECT passages FROM pools WHERE id = current_pool()

-- name: lock_to_write
-- Lock before passages of this pool are written: switching them off waits, and then deletes these, too. An advisory
-- lock, since a lock on the pool's row would write to it with each message.
SELECT pg_advisory_xact_lock_shared(hashtext('passages'), hashtext(current_pool()::text))

-- name: lock_to_switch
-- Lock before passages are switched on or off: no passages of this pool are written meanwhile.
SELECT pg_advisory_xact_lock(hashtext('passages'), hashtext(current_pool()::text))

-- name: switch
-- Switch passages of the pool on or off.
UPDATE pools SET passages = %(wanted)s WHERE id = current_pool()

-- name: progress
-- How far a session's messages are cut into passages, and its last seq; the last passage, which may grow; how many
-- messages from its first one on are left out; and whether the pool has passages.
SELECT s.passages_seq, s.last_seq, s.project, open.id AS open_id, open.number AS open_number,
       open.first_seq AS open_first, open.last_seq AS open_last, open.content_hash AS open_hash,
       (SELECT passages FROM pools WHERE id = current_pool()) AS wanted,
       (SELECT count(*) FROM messages m
        WHERE m.session_id = s.id AND m.seq >= coalesce(open.first_seq, s.passages_seq + 1) AND m.left_out) AS left_out
FROM sessions s
LEFT JOIN LATERAL (
    SELECT p.id, p.number, p.first_seq, p.last_seq, p.content_hash
    FROM passages p WHERE p.session_id = s.id ORDER BY p.first_seq DESC LIMIT 1
) AS open ON true
WHERE s.id = %(session)s

-- name: to_cut
-- The messages of a session's last passage, and the next ones that are uncut; those between them have no text. One that is
-- left out of passages has an empty text. Their content is not read: passages are cut from the texts.
WITH seen AS (
    {progress}
), span AS (
    (SELECT m.* FROM messages m
     WHERE m.session_id = %(session)s
       AND m.seq BETWEEN (SELECT open_first FROM seen) AND (SELECT open_last FROM seen))
    UNION ALL
    (SELECT m.* FROM messages m
     WHERE m.session_id = %(session)s AND m.seq > (SELECT passages_seq FROM seen)
       AND (SELECT wanted FROM seen)
     ORDER BY m.seq LIMIT %(limit)s)
)
SELECT seq, external_id, role, trust, sent_at, '[]'::jsonb AS content, CASE WHEN left_out THEN '' ELSE text END AS text,
       tokens, shown_tokens
FROM span ORDER BY seq

-- name: advance_cut
-- Messages up to this seq are cut into passages.
UPDATE sessions SET passages_seq = %(seq)s WHERE id = %(session)s

-- name: behind
-- Sessions with uncut messages, by id.
SELECT id FROM sessions WHERE passages_seq < last_seq AND id > %(after)s ORDER BY id LIMIT %(limit)s

-- name: count_behind
-- How many sessions have uncut messages.
SELECT count(*) FROM sessions WHERE passages_seq < last_seq

-- name: insert
-- Write passages and their keyword index, and queue them for every space that is not retired. One within the limits of a
-- quarantine is in it from the start.
WITH new AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
        id text, first_seq bigint, last_seq bigint, text text, content_hash text, trust text, tokens int, terms int,
        parts jsonb, said_from timestamptz, said_to timestamptz)
), written AS (
    INSERT INTO passages (pool_id, id, session_id, project, first_seq, last_seq, text, content_hash, trust, tokens, parts,
                          terms, said_from, said_to, created_at, quarantine_id)
    SELECT current_pool(), id, %(session)s, %(project)s, first_seq, last_seq, text, decode(content_hash, 'hex'), trust,
           tokens, jsonb_array_length(parts), terms, said_from, said_to, %(now)s, (
               SELECT q.id FROM quarantines q
               WHERE q.lifted_at IS NULL
                 AND (q.session_id IS NULL OR q.session_id = %(session)s)
                 AND (q.project IS NULL OR q.project = %(project)s)
                 AND (q.client IS NULL OR q.client = (SELECT s.client FROM sessions s WHERE s.id = %(session)s))
                 AND (q.source IS NULL OR q.source = new.trust)
                 AND (q.since IS NULL OR new.said_to >= q.since)
                 AND (q.until IS NULL OR new.said_from <= q.until)
               ORDER BY q.created_at LIMIT 1)
    FROM new ORDER BY first_seq
    RETURNING id, number
), indexed AS (
    INSERT INTO postings (pool_id, tier, term, number, part, frequency, length)
    SELECT current_pool(), 'p', posting.term, number, part.place, posting.frequency::int, (part.it ->> 'length')::int
    FROM written JOIN new USING (id)
    CROSS JOIN LATERAL jsonb_array_elements(new.parts) WITH ORDINALITY AS part (it, place)
    CROSS JOIN LATERAL jsonb_each_text(part.it -> 'terms') AS posting (term, frequency)
    ORDER BY posting.term, number, part.place
), queued AS (
    INSERT INTO embedding_attempts (pool_id, space, tier, number, urgency, not_before)
    SELECT current_pool(), s.name, 'p', number, 0, %(now)s
    FROM written CROSS JOIN embedding_spaces s WHERE s.state <> 'retired'
)
SELECT count(*) FROM written

-- name: count
-- How many passages the pool has.
SELECT count(*) FROM passages

-- name: delete_from
-- Delete a session's passages that begin at a seq or later, and return the numbers of their vectors.
WITH held AS (
    SELECT id FROM passages WHERE session_id = %(session)s AND first_seq >= %(seq)s ORDER BY id FOR UPDATE
)
DELETE FROM passages p USING held WHERE p.id = held.id RETURNING p.number

-- name: delete
-- Delete one passage.
DELETE FROM passages WHERE id = %(id)s

-- name: delete_over
-- Delete the passages that contain one of these messages; return the numbers of their vectors, ids and spans. One
-- statement for all, so that locks are taken in one order.
WITH held AS (
    SELECT id FROM passages p
    WHERE session_id = ANY (%(sessions)s::text[])
      AND EXISTS (SELECT FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS message (session_id, seq)
                  WHERE message.session_id = p.session_id AND seq BETWEEN p.first_seq AND p.last_seq)
    ORDER BY id FOR UPDATE
)
DELETE FROM passages p USING held WHERE p.id = held.id
RETURNING p.number, p.id, p.session_id, p.first_seq, p.last_seq

-- name: delete_some
-- Delete some passages of the pool, and return the numbers of their vectors.
WITH held AS (
    SELECT id FROM passages ORDER BY id LIMIT %(limit)s FOR UPDATE
)
DELETE FROM passages p USING held WHERE p.id = held.id RETURNING p.number

-- name: start_over
-- Mark the messages of some sessions as uncut. Locks are taken in the order of ids, as everywhere.
UPDATE sessions SET passages_seq = 0
WHERE id IN (SELECT id FROM sessions WHERE passages_seq > 0 ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE)

-- name: outdated
-- Those of some passages with facts that have been superseded or have expired, as was known at a moment, and whether all
-- have. A fact that was condensed into a reflection is valid as long as the reflection is. The OFFSETs let rows be looked
-- up one by one; with joins, the planner may read all rows of all pools.
WITH RECURSIVE kept AS (
    SELECT p.id, m.superseded_at IS NOT NULL AND (m.outdated_at > %(as_of)s) IS NOT TRUE AS replaced, m.superseded_by,
           (m.valid_until > %(moment)s) IS NOT FALSE AS valid
    FROM passages p
    CROSS JOIN LATERAL (
        SELECT m.id FROM memories m
        WHERE m.session_id = p.session_id AND m.said_at BETWEEN p.said_from AND p.said_to
          AND EXISTS (SELECT FROM unnest(m.source_seqs) AS seq WHERE seq BETWEEN p.first_seq AND p.last_seq)
        UNION
        SELECT s.memory_id FROM memory_sources s
        WHERE s.session_id = p.session_id
          AND EXISTS (SELECT FROM unnest(s.seqs) AS seq WHERE seq BETWEEN p.first_seq AND p.last_seq)
    ) AS heard
    JOIN memories m ON m.id = heard.id
    WHERE p.id = ANY (%(ids)s)
    UNION
    SELECT kept.id, by.superseded_at IS NOT NULL AND (by.outdated_at > %(as_of)s) IS NOT TRUE, by.superseded_by,
           kept.valid
    FROM kept CROSS JOIN LATERAL (
        SELECT superseded_at, outdated_at, superseded_by FROM memories
        WHERE id = kept.superseded_by AND kind = 'reflection' OFFSET 0
    ) AS by
    WHERE kept.replaced
)
SELECT kept.id, NOT bool_or(kept.valid AND (NOT kept.replaced OR by.id IS NULL))
FROM kept
LEFT JOIN LATERAL (SELECT id, kind FROM memories WHERE id = kept.superseded_by OFFSET 0) AS by ON true
GROUP BY kept.id
-- A fact without a superseding row is live, or was dropped by a reflection.
HAVING NOT bool_and(kept.valid AND (NOT kept.replaced OR by.id IS NULL OR by.kind = 'reflection'))

-- name: get
-- Passages by id.
SELECT {passage} FROM passages WHERE id = ANY (%(ids)s)
