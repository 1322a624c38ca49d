-- columns: passage
id, number, session_id, project, first_seq, last_seq, text, trust, tokens, said_from, said_to

-- name: wanted
-- Whether the pool has passages.
SELECT passages FROM pools WHERE id = current_pool()

-- name: progress
-- How far a session's messages were looked at, how far they go, from where on they have to be looked at (the last
-- passage may grow), and how many of those are left out.
SELECT s.passages_seq, s.last_seq, s.project, open.first_seq,
       (SELECT count(*) FROM messages m
        WHERE m.session_id = s.id AND m.seq >= open.first_seq AND m.left_out) AS left_out
FROM sessions s
CROSS JOIN LATERAL (
    SELECT coalesce(max(p.first_seq), s.passages_seq + 1) AS first_seq FROM passages p WHERE p.session_id = s.id
) AS open
WHERE s.id = %(session)s

-- name: reach
-- Messages up to here were looked at.
UPDATE sessions SET passages_seq = %(seq)s WHERE id = %(session)s

-- name: behind
-- Sessions with messages that were not looked at.
SELECT id FROM sessions WHERE passages_seq < last_seq ORDER BY id LIMIT %(limit)s

-- name: insert
-- Write passages with the terms that they are found by, queue them for every space that is kept, and return how many.
WITH new AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
        id text, first_seq bigint, last_seq bigint, text text, content_hash text, trust text, tokens int, terms int,
        parts jsonb, said_from timestamptz, said_to timestamptz)
), written AS (
    INSERT INTO passages (pool_id, id, session_id, project, first_seq, last_seq, text, content_hash, trust, tokens, parts,
                          terms,                          said_from, said_to, created_at)
    SELECT current_pool(), id, %(session)s, %(project)s, first_seq, last_seq, text, decode(content_hash, 'hex'), trust,
           tokens, jsonb_array_length(parts), terms, said_from, said_to, %(now)s
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

-- name: delete_from
-- Delete a session's passages that begin at a message or behind it, and return the numbers of their vectors.
DELETE FROM passages WHERE session_id = %(session)s AND first_seq >= %(seq)s RETURNING number

-- name: delete_over
-- Delete a session's passages that show one of these messages, and return their spans and the numbers of their vectors.
DELETE FROM passages
WHERE session_id = %(session)s
  AND EXISTS (SELECT FROM unnest(%(seqs)s::bigint[]) AS seq WHERE seq BETWEEN first_seq AND last_seq)
RETURNING number, first_seq, last_seq

-- name: delete_some
-- Delete passages of the pool, so many at once, and return the numbers of their vectors.
DELETE FROM passages WHERE id IN (SELECT id FROM passages ORDER BY id LIMIT %(limit)s) RETURNING number

-- name: start_over
-- Nothing was looked at.
UPDATE sessions SET passages_seq = 0 WHERE passages_seq > 0

-- name: outdated
-- Those of some passages of which all that was kept has been replaced by something else, or has expired.
SELECT p.id
FROM passages p
CROSS JOIN LATERAL (
    SELECT (m.valid_until > %(moment)s) IS NOT FALSE
           AND (m.superseded_at IS NULL OR by.kind IS NULL OR by.kind = 'reflection') AS holds
    FROM memories m LEFT JOIN memories by ON by.id = m.superseded_by
    WHERE m.session_id = p.session_id AND m.said_at BETWEEN p.said_from AND p.said_to
      AND EXISTS (SELECT FROM unnest(m.source_seqs) AS seq WHERE seq BETWEEN p.first_seq AND p.last_seq)
) AS kept
WHERE p.id = ANY (%(ids)s)
GROUP BY p.id HAVING NOT bool_or(kept.holds)

-- name: get
-- Passages by id.
SELECT {passage} FROM passages WHERE id = ANY (%(ids)s)
