-- name: lock
-- One transaction at a time imports into this pool. It is taken before all other locks, and only by imports.
SELECT pg_advisory_xact_lock(hashtext('import'), hashtext(current_pool()::text))

-- name: known_sessions
-- The sessions that have one of these ids, or one of these pairs of client and external id.
SELECT s.id, s.client, s.external_id, s.created_at
FROM unnest(%(ids)s::text[]) AS asked (id) JOIN sessions s ON s.id = asked.id
UNION
SELECT s.id, s.client, s.external_id, s.created_at
FROM unnest(%(clients)s::text[], %(external_ids)s::text[]) AS asked (client, external_id)
JOIN sessions s ON s.client = asked.client AND s.external_id = asked.external_id

-- name: insert_sessions
-- Write sessions without messages, with their events. Their packs are frozen anew: a file may contain any text.
WITH new AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
        id text, client text, external_id text, project text, cwd text, timezone text, effective_context int,
        last_received_at timestamptz, reflect_at_tokens bigint, pack_version int, current_task text,
        suggested_continuation text, thread_title text, created_at timestamptz, kept_by text, events jsonb)
), events AS (
    INSERT INTO session_events (pool_id, session_id, dedupe_key, kind, received_at)
    SELECT current_pool(), new.id, event.dedupe_key, event.kind, event.received_at
    FROM new
    CROSS JOIN LATERAL jsonb_to_recordset(new.events) AS event (dedupe_key text, kind text, received_at timestamptz)
)
INSERT INTO sessions (pool_id, id, client, external_id, project, cwd, timezone, effective_context, last_received_at,
                      reflect_at_tokens, pack_version, current_task, suggested_continuation, thread_title, created_at,
                      begun_at, kept_by)
SELECT current_pool(), id, client, external_id, project, cwd, timezone, effective_context, last_received_at,
       reflect_at_tokens, pack_version, current_task, suggested_continuation, thread_title, created_at, created_at,
       coalesce(kept_by, 'client')
FROM new

-- name: add_events
-- Add new events of existing sessions.
INSERT INTO session_events (pool_id, session_id, dedupe_key, kind, received_at)
SELECT current_pool(), session_id, dedupe_key, kind, received_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    session_id text, dedupe_key text, kind text, received_at timestamptz)
ORDER BY session_id, kind, dedupe_key
ON CONFLICT (pool_id, session_id, kind, dedupe_key) DO NOTHING

-- name: catch_up
-- Update the task, continuation and title of sessions of which the file has observed more than this pool.
UPDATE sessions s
SET reflect_at_tokens = new.reflect_at_tokens, current_task = new.current_task,
    suggested_continuation = new.suggested_continuation, thread_title = new.thread_title
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    id text, observed_seq bigint, reflect_at_tokens bigint, current_task text, suggested_continuation text,
    thread_title text)
WHERE s.id = new.id AND s.observed_seq < new.observed_seq

-- name: known_messages
-- The messages of a session in a span, and those with one of these external ids.
SELECT seq, external_id, content_hash FROM messages
WHERE session_id = %(session)s AND seq BETWEEN %(first)s AND %(last)s
UNION ALL
SELECT seq, external_id, content_hash FROM messages
WHERE session_id = %(session)s AND external_id = ANY (%(external_ids)s) AND seq NOT BETWEEN %(first)s AND %(last)s

-- name: known_groups
-- Those of these groups that exist, and the messages they cover.
SELECT id, session_id, first_seq, last_seq FROM observation_groups WHERE id = ANY (%(ids)s)

-- name: insert_groups
-- Write groups.
INSERT INTO observation_groups (pool_id, id, session_id, first_seq, last_seq, first_external_id, last_external_id, kind,
                                cwd, observer, current_task, suggested_continuation, thread_title, input_tokens,
                                output_tokens, merged, replaced, refused, created_at)
SELECT current_pool(), id, session_id, first_seq, last_seq, first_external_id, last_external_id, kind, cwd, observer,
       current_task, suggested_continuation, thread_title, input_tokens, output_tokens, merged, replaced, refused,
       created_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    id text, session_id text, first_seq bigint, last_seq bigint, first_external_id text, last_external_id text,
    kind text, cwd text, observer text, current_task text, suggested_continuation text, thread_title text,
    input_tokens bigint, output_tokens bigint, merged int, replaced int, refused jsonb, created_at timestamptz)

-- name: cover
-- Move the observer's cursor of sessions over the groups that were written, which begin at the cursor.
UPDATE sessions s
SET observed_seq = new.last_seq,
    unobserved_tokens = s.unobserved_tokens - (
        SELECT sum(m.tokens) FROM messages m
        WHERE m.session_id = s.id AND m.seq > s.observed_seq AND m.seq <= new.last_seq)
FROM unnest(%(ids)s::text[], %(last_seqs)s::bigint[]) AS new (id, last_seq)
WHERE s.id = new.id

-- name: existing_parents
-- Those of these sessions and groups that exist.
SELECT id FROM sessions WHERE id = ANY (%(ids)s)
UNION ALL
SELECT id FROM observation_groups WHERE id = ANY (%(ids)s)

-- name: known_memories
-- Those of these memories that exist, whether they equal the file's (except for values that can change, such as the name
-- of a project, which may have been forgotten since), and whether they are live.
SELECT m.id,
       (m.content, m.author, m.category, m.session_id, m.group_id, m.source_seqs, m.source_ids, m.said_at,
        m.refers_from, m.refers_to, m.valid_until, m.reflection_id, m.external_id, m.facet, m.created_at)
       IS NOT DISTINCT FROM
       (new.content, new.author, new.category, new.session_id, new.group_id, new.source_seqs,
        new.source_ids, new.said_at, new.refers_from, new.refers_to, new.valid_until, new.reflection_id,
        new.external_id, new.facet, new.created_at)
       -- A note can be pinned.
       AND (m.kind = new.kind OR (m.kind IN ('note', 'manual') AND new.kind IN ('note', 'manual'))) AS same,
       m.superseded_at IS NULL AS live
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    id text, kind text, content text, author text, category text, session_id text, group_id text,
    source_seqs bigint[], source_ids text[], said_at timestamptz, refers_from timestamptz, refers_to timestamptz,
    valid_until timestamptz, reflection_id text, external_id text, facet text, created_at timestamptz)
JOIN memories m ON m.id = new.id

-- name: superseders
-- Those of these memories and reflections that exist.
SELECT id FROM memories WHERE id = ANY (%(ids)s)
UNION ALL
SELECT id FROM reflections WHERE id = ANY (%(ids)s)

-- name: supersede
-- Supersede live rows as in the file. The caller has locked them.
UPDATE memories m
SET superseded_by = new.superseded_by, superseded_at = new.superseded_at, outdated_at = new.outdated_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    id text, superseded_by text, superseded_at timestamptz, outdated_at timestamptz)
WHERE m.id = new.id AND m.superseded_at IS NULL

-- name: add_restatements
-- These rows were also said in the file: raise their priority and their last use to those in the file. The caller has
-- locked them.
UPDATE memories m
SET last_used_at = greatest(m.last_used_at, new.last_used_at),
    priority = (ARRAY ['high', 'medium', 'low'])[least(
        array_position(ARRAY ['high', 'medium', 'low'], m.priority),
        array_position(ARRAY ['high', 'medium', 'low'], new.priority))],
    tentative = m.tentative AND new.tentative
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (id text, last_used_at timestamptz, priority text, tentative boolean)
WHERE m.id = new.id

-- name: known_sources
-- The groups in which these memories were said again.
SELECT memory_id, group_id FROM memory_sources WHERE memory_id = ANY (%(ids)s)

-- name: insert_sources
-- Add further sources to memories.
INSERT INTO memory_sources (pool_id, memory_id, session_id, group_id, seqs, said_at)
SELECT current_pool(), memory_id, session_id, group_id, seqs, said_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    memory_id text, session_id text, group_id text, seqs bigint[], said_at timestamptz)
ORDER BY memory_id, group_id
ON CONFLICT (pool_id, memory_id, group_id) DO NOTHING

-- name: known_reflections
-- Those of these reflections that exist, with the values that cannot change.
SELECT id, scope, session_id, project, reflector, created_at FROM reflections WHERE id = ANY (%(ids)s)

-- name: insert_reflections
-- Write reflections.
INSERT INTO reflections (pool_id, id, scope, session_id, project, reflector, state, level, reason, input_ids, output_ids,
                         dropped_ids, tokens_before, tokens_after, input_tokens, output_tokens, created_at, undone_at)
SELECT current_pool(), id, scope, session_id, project, reflector, state, level, reason, input_ids, output_ids,
       dropped_ids, tokens_before, tokens_after, input_tokens, output_tokens, created_at, undone_at
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (
    id text, scope text, session_id text, project text, reflector text, state text, level int, reason text,
    input_ids text[], output_ids text[], dropped_ids text[], tokens_before int, tokens_after int, input_tokens bigint,
    output_tokens bigint, created_at timestamptz, undone_at timestamptz)
