-- columns: session
id, client, external_id, project, cwd, timezone, effective_context, last_seq, observed_seq, total_tokens,
unobserved_tokens, last_received_at, reflect_at_tokens, pack_version, current_task, suggested_continuation, thread_title,
created_at, begun_at, last_sent_at, kept_by

-- name: upsert
-- Find or make the session of a client. A missing project or cwd is filled in; a given time zone or effective context
-- replaces the stored one.
INSERT INTO sessions
    (pool_id, id, client, external_id, project, cwd, timezone, effective_context, created_at, begun_at, kept_by)
VALUES (current_pool(), %(id)s, %(client)s, %(external_id)s, %(project)s, %(cwd)s, coalesce(%(timezone)s::text, 'UTC'),
        coalesce(%(effective_context)s::int, %(default_context)s::int), %(now)s, %(now)s, %(kept_by)s)
ON CONFLICT (pool_id, client, external_id) DO UPDATE
    SET project = coalesce(sessions.project, excluded.project), cwd = coalesce(sessions.cwd, excluded.cwd),
        timezone = coalesce(%(timezone)s::text, sessions.timezone),
        effective_context = coalesce(%(effective_context)s::int, sessions.effective_context)
RETURNING {session}

-- name: get
-- One session.
SELECT {session}
FROM sessions WHERE id = %(id)s

-- name: several
-- Some sessions.
SELECT {session}
FROM sessions WHERE id = ANY (%(ids)s)

-- name: lock
-- Sessions, locked in the order of their ids. NO KEY, so that rows which refer to a session can be written meanwhile.
SELECT {session}
FROM sessions WHERE id = ANY (%(ids)s) ORDER BY id FOR NO KEY UPDATE

-- name: list
-- Sessions, the latest first, after a cursor in that order.
SELECT {session}
FROM sessions
WHERE (%(external_id)s::text IS NULL OR external_id = %(external_id)s)
  AND (%(project)s::text IS NULL OR project = %(project)s)
  AND (NOT %(unobserved)s OR unobserved_tokens > 0)
  AND (NOT %(unreflected)s OR EXISTS (
      SELECT FROM memories m WHERE m.session_id = sessions.id AND m.kind = 'observation' AND m.superseded_at IS NULL))
  AND (%(begun_at)s::timestamptz IS NULL OR (begun_at, id) < (%(begun_at)s, %(before)s))
ORDER BY begun_at DESC, id DESC
LIMIT %(limit)s

-- name: latest_with_task
-- The session with the latest message among those with a task, of a project or of all.
SELECT {session}
FROM sessions
WHERE (%(project)s::text IS NULL OR project = %(project)s)
  AND (current_task IS NOT NULL OR suggested_continuation IS NOT NULL)
  AND quarantine_id IS NULL
ORDER BY last_sent_at DESC NULLS LAST, id DESC
LIMIT 1

-- name: unobserved_tokens
-- The tokens of unobserved messages, in one session or in all.
SELECT coalesce(sum(unobserved_tokens), 0)::bigint FROM sessions
WHERE unobserved_tokens > 0 AND (%(session)s::text IS NULL OR id = %(session)s)

-- name: extend
-- Count messages that were added.
UPDATE sessions
SET last_seq = last_seq + %(messages)s,
    total_tokens = total_tokens + %(tokens)s,
    unobserved_tokens = unobserved_tokens + %(tokens)s,
    last_received_at = greatest(last_received_at, %(now)s),
    begun_at = least(begun_at, %(first_sent_at)s),
    last_sent_at = greatest(last_sent_at, %(last_sent_at)s)
WHERE id = %(id)s

-- name: cover
-- Move the observer's cursor over a span, but only from where it started.
UPDATE sessions
SET observed_seq = %(last_seq)s,
    unobserved_tokens = unobserved_tokens - (
        SELECT sum(tokens) FROM messages
        WHERE session_id = %(id)s AND seq BETWEEN %(first_seq)s AND %(last_seq)s),
    current_task = coalesce(%(current_task)s, current_task),
    suggested_continuation = coalesce(%(suggested_continuation)s, suggested_continuation),
    thread_title = coalesce(%(thread_title)s, thread_title)
WHERE id = %(id)s AND observed_seq = %(first_seq)s - 1 AND last_seq >= %(last_seq)s
RETURNING observed_seq

-- name: reflect_at
-- Set how many tokens of live observations trigger the next automatic reflection; NULL: the usual trigger.
UPDATE sessions SET reflect_at_tokens = %(tokens)s WHERE id = %(id)s

-- name: latest_event
-- The key of the latest event of a kind.
SELECT dedupe_key FROM session_events
WHERE session_id = %(session)s AND kind = %(kind)s
ORDER BY received_at DESC LIMIT 1

-- name: add_event
-- Store an event; returns no row if it is stored already.
INSERT INTO session_events (pool_id, session_id, dedupe_key, kind, received_at)
VALUES (current_pool(), %(session)s, %(key)s, %(kind)s, %(now)s)
ON CONFLICT (pool_id, session_id, kind, dedupe_key) DO NOTHING
RETURNING dedupe_key
