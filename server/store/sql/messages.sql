-- columns: message
seq, external_id, role, trust, sent_at, content, text, tokens, shown_tokens

-- name: hashes
-- Which of these messages are stored, with the hashes of their content.
SELECT external_id, content_hash FROM messages
WHERE session_id = %(session)s AND external_id = ANY (%(external_ids)s)

-- name: observed
-- Which of these messages are in an observation group.
SELECT m.external_id FROM messages m JOIN sessions s ON s.pool_id = m.pool_id AND s.id = m.session_id
WHERE m.session_id = %(session)s AND m.external_id = ANY (%(external_ids)s) AND m.seq <= s.observed_seq

-- name: contents
-- The content of the messages of a session whose ids begin in some way.
SELECT content FROM messages WHERE session_id = %(session)s AND starts_with(external_id, %(beginning)s)

-- name: words
-- The messages of a session whose ids begin in some way, in their order: those with calls or results without content.
SELECT external_id, role, CASE
  WHEN content @? '$[*] ? (@.type == "tool_use" || @.type == "tool_result")' THEN NULL ELSE content
END
FROM messages WHERE session_id = %(session)s AND starts_with(external_id, %(beginning)s)
ORDER BY seq

-- name: turn_ids
-- The ids of turns of words in some sessions, which the gateway made of these words, without those that have had another
-- id since such a turn was forgotten: that is the beginning of its tombstone.
SELECT DISTINCT m.external_id FROM messages m
WHERE m.session_id = ANY (%(sessions)s) AND m.external_id ~ '^gw_[0-9a-f]{32}$'
  AND NOT m.content @? '$[*] ? (@.type == "tool_use" || @.type == "tool_result")'
  AND NOT EXISTS (
    SELECT FROM tombstones t WHERE encode(substring(t.digest FROM 1 FOR 16), 'hex') = substr(m.external_id, 4))

-- name: elsewhere
-- Which of these messages other sessions of the client have, with the hashes of their content.
SELECT m.external_id, m.content_hash
FROM messages m JOIN sessions s ON s.pool_id = m.pool_id AND s.id = m.session_id
WHERE m.external_id = ANY (%(external_ids)s) AND m.session_id <> %(session)s
  AND s.client = (SELECT own.client FROM sessions own WHERE own.id = %(session)s)

-- name: lock_copies
-- Let no other session of the client store copies until this transaction ends.
SELECT pg_advisory_xact_lock(hashtext('copies'), hashtext(current_pool()::text || %(client)s))

-- name: tool_names
-- The names of tools that were called a little earlier, for results that arrive in a later batch.
SELECT called.id, called.name
FROM messages, jsonb_each_text(calls) AS called (id, name)
WHERE session_id = %(session)s AND called.id = ANY (%(calls)s)
  AND seq > coalesce(%(before)s::bigint, (SELECT last_seq FROM sessions WHERE id = %(session)s)) - %(distance)s

-- name: insert
-- Append a batch after seq `after`, in the given order, from one JSON document. Only imported messages have a
-- `received_at` or `left_out`.
INSERT INTO messages (pool_id, session_id, seq, external_id, role, trust, sent_at, received_at, content,
                      content_hash, calls, text, tokens, shown_tokens, left_out)
SELECT current_pool(), %(session)s, %(after)s + place, external_id, role, trust, sent_at, coalesce(received_at, %(now)s),
       content, decode(content_hash, 'hex'), calls, text, tokens, shown_tokens, coalesce(left_out, false)
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    place int, external_id text, role text, trust text, sent_at timestamptz, received_at timestamptz, content jsonb,
    content_hash text, calls jsonb, text text, tokens int, shown_tokens int, left_out boolean)

-- name: list
-- Messages, verbatim and in order, after a seq.
SELECT {message} FROM messages
WHERE session_id = %(session)s AND seq > %(after)s
ORDER BY seq
LIMIT %(limit)s

-- name: before
-- Messages before a seq, latest first.
SELECT {message} FROM messages
WHERE session_id = %(session)s AND seq < %(before)s
ORDER BY seq DESC
LIMIT %(limit)s

-- name: searchable
-- Messages after a seq without their content, and with an empty text for those that are left out of passages.
SELECT seq, external_id, role, trust, sent_at, '[]'::jsonb AS content, CASE WHEN left_out THEN '' ELSE text END AS text,
       tokens, shown_tokens
FROM messages
WHERE session_id = %(session)s AND seq > %(after)s
ORDER BY seq
LIMIT %(limit)s

-- name: leave_out
-- Keep messages out of passages.
UPDATE messages SET left_out = true WHERE session_id = %(session)s AND seq = ANY (%(seqs)s)

-- name: unobserved
-- The oldest unobserved messages of a session, until their text exceeds a number of tokens.
SELECT {message}
FROM (
    SELECT *, sum(shown_tokens) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - shown_tokens AS before
    FROM messages
    WHERE session_id = %(session)s AND seq > (SELECT observed_seq FROM sessions WHERE id = %(session)s)
    ORDER BY seq
    LIMIT %(limit)s
) AS backlog
WHERE before <= %(tokens)s
ORDER BY seq

-- name: around
-- Cited messages, and on either side of each the nearest that have text or were forgotten, in order. A message that was
-- forgotten in part counts as forgotten: its other words would show what is missing. Messages without text are skipped,
-- within a limit. Messages are looked up one by one with `>=`: with `=`, the planner may read the whole session through
-- the index of external ids.
WITH cited AS (
    SELECT DISTINCT session_id, seq FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS c (session_id, seq)
), shown AS (
    SELECT session_id, seq FROM cited
    UNION
    SELECT cited.session_id, near.seq
    FROM cited CROSS JOIN LATERAL (
        (SELECT m.seq FROM messages m
         WHERE m.session_id = cited.session_id AND m.seq BETWEEN cited.seq - %(reach)s AND cited.seq - 1
           AND (m.text <> '' OR m.content_hash = '\x')
         ORDER BY m.seq DESC LIMIT %(around)s)
        UNION ALL
        (SELECT m.seq FROM messages m
         WHERE m.session_id = cited.session_id AND m.seq BETWEEN cited.seq + 1 AND cited.seq + %(reach)s
           AND (m.text <> '' OR m.content_hash = '\x')
         ORDER BY m.seq LIMIT %(around)s)
    ) AS near
)
SELECT session_id, message.*
FROM shown CROSS JOIN LATERAL (
    SELECT m.seq, m.external_id, m.role, m.trust, m.sent_at, left(m.text, %(characters)s) AS text,
           length(m.text) > %(characters)s AS truncated, m.content_hash = '\x' OR m.left_out AS forgotten
    FROM messages m
    WHERE m.session_id = shown.session_id AND m.seq >= shown.seq
    ORDER BY m.seq LIMIT 1
) AS message
ORDER BY session_id, seq

-- name: replace_content
-- Give messages other content, by their seqs, except those that are forgotten.
UPDATE messages m
SET content = new.content, content_hash = decode(new.content_hash, 'hex'), calls = new.calls, text = new.text
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (seq bigint, content jsonb, content_hash text, calls jsonb, text text)
WHERE m.session_id = %(session)s AND m.seq = new.seq AND m.content_hash <> '\x'

-- name: blank
-- Forget the words of these messages; the rows stay, so that coverage stays complete.
UPDATE messages
SET content = '[{"type": "text", "text": "[forgotten]"}]', content_hash = '\x', calls = '{}', text = '',
    shown_tokens = 0
WHERE session_id = %(session)s AND seq = ANY (%(seqs)s)

-- name: count_spoken
-- How many messages of a session a person wrote, counted up to a limit.
SELECT count(*) FROM (
    SELECT FROM messages WHERE session_id = %(session)s AND role = 'user' AND trust = 'user' AND text <> ''
    LIMIT %(limit)s
) AS spoken
