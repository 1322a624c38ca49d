-- name: memories
-- The memories within some limits that may contain some words; a limit that is NULL is none.
SELECT m.id
FROM memories m LEFT JOIN sessions s ON s.id = m.session_id
WHERE (%(patterns)s::text[] IS NULL OR m.content ILIKE ANY (%(patterns)s) OR m.external_id ILIKE ANY (%(patterns)s)
       OR m.tags::text ILIKE ANY (%(patterns)s))
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(project)s::text IS NULL OR m.project = %(project)s)
  AND (%(client)s::text IS NULL OR s.client = %(client)s)
  AND (%(source)s::text IS NULL OR %(source)s IN (m.trust, m.author))
  AND (%(since)s::timestamptz IS NULL OR m.said_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR m.said_at <= %(until)s)

-- name: messages
-- The messages within some limits that may contain some words, without those that are forgotten already.
SELECT m.session_id, m.seq, m.role, m.sent_at, m.text, CASE WHEN %(patterns)s::text[] IS NULL THEN '[]' ELSE m.content END
FROM messages m JOIN sessions s ON s.id = m.session_id
WHERE m.content_hash <> '\x'
  AND (%(patterns)s::text[] IS NULL OR m.text ILIKE ANY (%(patterns)s) OR m.content::text ILIKE ANY (%(patterns)s))
  AND (%(session_id)s::text IS NULL OR m.session_id = %(session_id)s)
  AND (%(project)s::text IS NULL OR s.project = %(project)s)
  AND (%(client)s::text IS NULL OR s.client = %(client)s)
  AND (%(source)s::text IS NULL OR m.trust = %(source)s)
  AND (%(since)s::timestamptz IS NULL OR m.sent_at >= %(since)s)
  AND (%(until)s::timestamptz IS NULL OR m.sent_at <= %(until)s)
ORDER BY m.session_id, m.seq

-- name: some_messages
-- Some messages by session and seq, without those that are forgotten already.
SELECT m.session_id, m.seq, m.role, m.sent_at, m.text, '[]'::jsonb
FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS asked (session_id, seq)
JOIN messages m ON m.session_id = asked.session_id AND m.seq = asked.seq
WHERE m.content_hash <> '\x'
ORDER BY m.session_id, m.seq

-- name: replies
-- The first message with words that an assistant wrote after each of some messages, before the user's next one.
SELECT DISTINCT ON (reply.session_id, reply.seq) reply.session_id, reply.seq, reply.role, reply.sent_at, reply.text,
       '[]'::jsonb
FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS asked (session_id, seq)
CROSS JOIN LATERAL (
    SELECT m.* FROM messages m
    WHERE m.session_id = asked.session_id AND m.seq > asked.seq AND m.text <> '' AND m.role IN ('user', 'assistant')
    ORDER BY m.seq LIMIT 1
) AS reply
WHERE reply.role = 'assistant'

-- name: after
-- The next messages with words after the first of some messages in each of their sessions.
SELECT later.session_id, later.seq, later.role, later.sent_at, later.text, '[]'::jsonb
FROM (SELECT session_id, min(seq) AS seq FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS asked (session_id, seq)
      GROUP BY session_id) AS first
CROSS JOIN LATERAL (
    SELECT m.* FROM messages m
    WHERE m.session_id = first.session_id AND m.seq > first.seq AND m.text <> ''
    ORDER BY m.seq LIMIT %(limit)s
) AS later

-- name: sharing
-- Other memories with one of these terms, the newest of each term.
SELECT id, kind, content FROM memories
WHERE id <> ALL (%(ids)s) AND number = ANY (ARRAY(
    SELECT DISTINCT held.number
    FROM unnest(%(terms)s::text[]) AS wanted (term)
    CROSS JOIN LATERAL (
        SELECT number FROM postings WHERE tier = 'm' AND term = wanted.term ORDER BY number DESC LIMIT %(limit)s
    ) AS held
))

-- name: other_memories
-- The memories that stay and may contain some words: of a person's words, notes, and earlier ones. Later memories of an
-- agent's or a tool's words have them from the fact, if it `spreads`. At most `limit` of them; NULL: all.
SELECT id, kind, content FROM memories
WHERE id <> ALL (%(ids)s) AND content ILIKE ANY (%(patterns)s)
  AND (trust = 'user' OR kind IN ('note', 'manual') OR said_at < %(since)s OR NOT %(spreads)s)
LIMIT %(limit)s

-- name: said_in_other_sessions
-- Whether an earlier message of another session may contain some words.
SELECT EXISTS (SELECT FROM messages WHERE (%(until)s::timestamptz IS NULL OR sent_at < %(until)s)
                                      AND session_id <> ALL (%(sessions)s) AND text ILIKE ANY (%(patterns)s))

-- name: notes
-- The sessions with their own or their groups' tasks, continuations and titles that may contain some words.
SELECT session_id, note
FROM (
    SELECT id AS session_id, unnest(ARRAY [current_task, suggested_continuation, thread_title]) AS note FROM sessions
    UNION
    SELECT session_id, unnest(ARRAY [current_task, suggested_continuation, thread_title]) FROM observation_groups
) AS noted
WHERE note ILIKE ANY (%(patterns)s)
ORDER BY session_id, note

-- name: notes_of
-- The tasks, continuations and titles of sessions, and of their groups that cover some messages.
SELECT note
FROM (
    SELECT unnest(ARRAY [current_task, suggested_continuation, thread_title]) AS note
    FROM sessions WHERE id = ANY (%(sessions)s::text[])
    UNION
    SELECT unnest(ARRAY [g.current_task, g.suggested_continuation, g.thread_title])
    FROM unnest(%(sessions)s::text[], %(seqs)s::bigint[]) AS asked (session_id, seq)
    JOIN observation_groups g ON g.session_id = asked.session_id AND asked.seq BETWEEN g.first_seq AND g.last_seq
) AS noted
WHERE note IS NOT NULL
ORDER BY note

-- name: forget_notes
-- Delete the tasks, continuations and titles of sessions, and of their groups that contain some of these notes.
WITH of_groups AS (
    UPDATE observation_groups SET current_task = NULL, suggested_continuation = NULL, thread_title = NULL
    WHERE session_id = ANY (%(sessions)s)
      AND ARRAY [current_task, suggested_continuation, thread_title] && %(notes)s::text[]
)
UPDATE sessions SET current_task = NULL, suggested_continuation = NULL, thread_title = NULL
WHERE id = ANY (%(sessions)s)
  AND ARRAY [current_task, suggested_continuation, thread_title] && %(notes)s::text[]

-- name: in_places
-- The memories whose project may contain some words, and the sessions whose project, directory or clients' ids may.
SELECT id, NULL FROM memories WHERE project ILIKE ANY (%(patterns)s)
UNION ALL
SELECT NULL, id FROM sessions
WHERE project ILIKE ANY (%(patterns)s) OR cwd ILIKE ANY (%(patterns)s) OR external_id ILIKE ANY (%(patterns)s)
UNION ALL
SELECT NULL, session_id FROM observation_groups WHERE cwd ILIKE ANY (%(patterns)s)
UNION ALL
SELECT NULL, session_id FROM messages WHERE external_id ILIKE ANY (%(patterns)s)
UNION ALL
SELECT NULL, session_id FROM session_events WHERE dedupe_key ILIKE ANY (%(patterns)s)
