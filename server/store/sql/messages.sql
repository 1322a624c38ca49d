-- columns: message
seq, external_id, role, trust, sent_at, content, text, tokens, shown_tokens

-- name: known
-- Which of these are there already, and with what content.
SELECT external_id, content_hash FROM messages
WHERE session_id = %(session)s AND external_id = ANY (%(external_ids)s)

-- name: tool_names
-- The names of tools that were called a little earlier, for results that come in a later batch.
SELECT called.id, called.name
FROM messages, jsonb_each_text(calls) AS called (id, name)
WHERE session_id = %(session)s AND seq > %(after)s AND called.id = ANY (%(calls)s)

-- name: insert
-- Append a batch behind seq `after`, in the order given. It comes as one JSON document.
INSERT INTO messages (pool_id, session_id, seq, external_id, role, trust, sent_at, received_at, content,
                      content_hash, calls, text, tokens, shown_tokens)
SELECT current_pool(), %(session)s, %(after)s + place, external_id, role, trust, sent_at, %(now)s, content,
       decode(content_hash, 'hex'), calls, text, tokens, shown_tokens
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    place int, external_id text, role text, trust text, sent_at timestamptz, content jsonb, content_hash text,
    calls jsonb, text text, tokens int, shown_tokens int)

-- name: list
-- Messages, verbatim and in order, behind a seq.
SELECT {message} FROM messages
WHERE session_id = %(session)s AND seq > %(after)s
ORDER BY seq
LIMIT %(limit)s

-- name: searchable
-- The same with nothing in those that are left out of passages.
SELECT seq, external_id, role, trust, sent_at, content, CASE WHEN left_out THEN '' ELSE text END AS text, tokens,
       shown_tokens
FROM messages
WHERE session_id = %(session)s AND seq > %(after)s
ORDER BY seq
LIMIT %(limit)s

-- name: leave_out
-- Keep messages out of passages.
UPDATE messages SET left_out = true WHERE session_id = %(session)s AND seq = ANY (%(seqs)s)

-- name: unobserved
-- The oldest unobserved messages, until their text passes a number of tokens.
SELECT {message}
FROM (
    SELECT *, sum(shown_tokens) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - shown_tokens AS before
    FROM messages
    WHERE session_id = %(session)s AND seq > %(after)s
    ORDER BY seq
    LIMIT %(limit)s
) AS backlog
WHERE before <= %(tokens)s
ORDER BY seq

-- name: blank
-- Forget what was said in these messages; their places stay, so that coverage stays true.
UPDATE messages
SET content = '[{"type": "text", "text": "[forgotten]"}]', content_hash = '\x', calls = '{}', text = '',
    shown_tokens = 0
WHERE session_id = %(session)s AND seq = ANY (%(seqs)s)

-- name: count_spoken
-- How many messages of a session are a person's own, counted up to a limit.
SELECT count(*) FROM (
    SELECT FROM messages WHERE session_id = %(session)s AND role = 'user' AND trust = 'user' AND text <> ''
    LIMIT %(limit)s
) AS spoken
