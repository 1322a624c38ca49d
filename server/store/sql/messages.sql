-- name: known
-- Which of these are there already, and with what content.
SELECT external_id, content_hash FROM messages
WHERE session_id = %(session)s AND external_id = ANY (%(external_ids)s)

-- name: tool_names
-- The names of tools that were called a little earlier, for results that come in a later batch.
SELECT DISTINCT block ->> 'id', block ->> 'name'
FROM messages, jsonb_array_elements(content) AS block
WHERE session_id = %(session)s AND seq > %(after)s
  AND block ->> 'type' = 'tool_use' AND block ->> 'id' = ANY (%(calls)s)

-- name: insert
-- Append a batch behind seq `after`, in the order given.
INSERT INTO messages (pool_id, session_id, seq, external_id, role, trust, sent_at, received_at, content,
                      content_hash, text, tokens, text_tokens)
SELECT current_pool(), %(session)s, %(after)s + place, external_id, role, trust, sent_at, %(now)s, content,
       content_hash, text, tokens, text_tokens
FROM unnest(%(external_ids)s::text[], %(roles)s::text[], %(trusts)s::text[], %(sent)s::timestamptz[],
            %(contents)s::jsonb[], %(hashes)s::bytea[], %(texts)s::text[], %(tokens)s::int[],
            %(text_tokens)s::int[])
     WITH ORDINALITY AS new (external_id, role, trust, sent_at, content, content_hash, text, tokens, text_tokens,
                             place)

-- name: unobserved
-- The oldest unobserved messages, until their text passes a number of tokens.
SELECT seq, external_id, role, trust, sent_at, content, text, tokens, text_tokens
FROM (
    SELECT m.*, sum(m.text_tokens) OVER (ORDER BY m.seq) - m.text_tokens AS before
    FROM messages m
    WHERE m.session_id = %(session)s AND m.seq > %(after)s
) AS backlog
WHERE before <= %(tokens)s
ORDER BY seq
LIMIT %(limit)s

-- name: blank
-- Forget what was said in these messages; their places stay, so that coverage stays true.
UPDATE messages
SET content = '[{"type": "text", "text": "[forgotten]"}]', content_hash = '\x', text = '', text_tokens = 0
WHERE session_id = %(session)s AND seq = ANY (%(seqs)s)
