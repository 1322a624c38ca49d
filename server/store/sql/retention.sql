-- name: get
-- The days for which the pool keeps each kind of text.
SELECT keep_messages_days, keep_images_days, keep_passages_days, keep_memories_days
FROM pools WHERE id = current_pool()

-- name: set
-- Set the days for which the pool keeps each kind of text.
UPDATE pools SET keep_messages_days = %(messages_days)s, keep_images_days = %(images_days)s,
                 keep_passages_days = %(passages_days)s, keep_memories_days = %(memories_days)s
WHERE id = current_pool()

-- name: pools
-- The pools that do not keep everything for ever.
SELECT pool_id::text FROM pools_with_retention()

-- name: old_messages
-- Some observed messages that were said before a time and still have their words.
SELECT m.session_id, m.seq
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE least(m.sent_at, m.received_at) < %(before)s AND m.content_hash <> '\x' AND m.seq <= s.observed_seq
LIMIT %(limit)s

-- name: old_images
-- Some observed messages that were said before a time and may have images; one has at least `tokens` tokens.
-- About `bytes` stored bytes are returned at a time.
SELECT session_id, seq FROM (
    SELECT m.session_id, m.seq, sum(pg_column_size(m.content)) OVER (ORDER BY m.session_id, m.seq ROWS UNBOUNDED PRECEDING)
                                - pg_column_size(m.content) AS bytes_before
    FROM messages m JOIN sessions s ON s.id = m.session_id
    WHERE (m.session_id, m.seq) > (%(after_session)s, %(after_seq)s::bigint) AND m.tokens >= %(tokens)s
      AND least(m.sent_at, m.received_at) < %(before)s AND m.content_hash <> '\x' AND m.seq <= s.observed_seq
      AND (m.content::text LIKE '%%"type": "image%%' OR m.content::text LIKE '%%"type": "input_image"%%')
    ORDER BY m.session_id, m.seq
    LIMIT %(limit)s
) AS old WHERE bytes_before < %(bytes)s ORDER BY session_id, seq

-- name: contents
-- The contents of some messages that still have their words.
SELECT session_id, seq, content
FROM messages JOIN unnest(%(session_ids)s::text[], %(seqs)s::bigint[]) AS old (session_id, seq) USING (session_id, seq)
WHERE content_hash <> '\x'

-- name: replace_content
-- Replace the content of messages. They keep the hash of what was sent, so that sending it again changes nothing.
UPDATE messages m SET content = new.content
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (session_id text, seq bigint, content jsonb)
WHERE m.session_id = new.session_id AND m.seq = new.seq AND m.content_hash <> '\x'

-- name: delete_old_passages
-- Delete some passages that were said or cut before a time, and return their ids and the numbers of their vectors. A
-- client may have said them with a time to come.
WITH held AS (
    SELECT id FROM passages WHERE least(said_to, created_at) < %(before)s ORDER BY id LIMIT %(limit)s FOR UPDATE
)
DELETE FROM passages p USING held WHERE p.id = held.id RETURNING p.id, p.number

-- name: old_memories
-- Some memories of a kind that were said or written before a time. A client may have said it with a time to come.
SELECT id FROM memories WHERE kind = %(kind)s AND least(said_at, created_at) < %(before)s ORDER BY id LIMIT %(limit)s
