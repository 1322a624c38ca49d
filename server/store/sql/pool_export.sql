-- name: counts
-- The number of lines of each type.
SELECT (SELECT count(*) FROM sessions) AS session,
       (SELECT count(*) FROM messages) AS message,
       (SELECT count(*) FROM observation_groups) AS "group",
       (SELECT count(*) FROM memories) AS memory,
       (SELECT count(*) FROM reflections) AS reflection

-- name: sessions
-- Every session, oldest first: its id, and its line with its events and its current pack.
SELECT line.id, row_to_json(line)::text
FROM (
    SELECT 'session' AS type, s.id, s.client, s.external_id, s.project, s.cwd, s.timezone, s.effective_context,
           s.last_seq, s.observed_seq, s.last_received_at, s.reflect_at_tokens, s.pack_version, s.current_task,
           s.suggested_continuation, s.thread_title, s.created_at, s.kept_by,
           (SELECT coalesce(json_agg(row_to_json(event) ORDER BY event.received_at, event.kind, event.dedupe_key), '[]')
            FROM (SELECT e.kind, e.dedupe_key, e.received_at FROM session_events e WHERE e.session_id = s.id) AS event
           ) AS events,
           (SELECT row_to_json(pack)
            FROM (SELECT p.version, p.text, p.sha256, p.tokens, p.memory_ids, p.pins_left, p.reason, p.created_at,
                         p.reasons, p.left_out_ids, p.left_out
                  FROM packs p WHERE p.session_id = s.id AND p.version = s.pack_version) AS pack
           ) AS pack
    FROM sessions s
    ORDER BY s.created_at, s.id
) AS line

-- name: messages
-- The messages of a session in order: the seq and the line of each, with the passages that end with it.
SELECT line.seq, row_to_json(line)::text
FROM (
    SELECT 'message' AS type, session_id, seq, external_id, role, trust, sent_at, received_at, content,
           encode(content_hash, 'hex') AS content_hash, calls, text, tokens, shown_tokens, left_out,
           coalesce(marks.passages, '[]') AS passages
    FROM messages LEFT JOIN (
        SELECT last_seq, json_agg(json_build_object('id', id, 'first_seq', first_seq) ORDER BY first_seq) AS passages
        FROM passages WHERE session_id = %(session)s GROUP BY last_seq
    ) AS marks ON marks.last_seq = messages.seq
    WHERE session_id = %(session)s
    ORDER BY seq
) AS line

-- name: groups
-- The observation groups of a session in order: the last seq that each covers, and its line.
SELECT line.last_seq, row_to_json(line)::text
FROM (
    SELECT 'group' AS type, id, session_id, first_seq, last_seq, first_external_id, last_external_id, kind, cwd,
           observer, current_task, suggested_continuation, thread_title, input_tokens, output_tokens, merged, replaced,
           refused, created_at
    FROM observation_groups WHERE session_id = %(session)s
    ORDER BY first_seq
) AS line

-- name: memories
-- Every memory with its further sources, oldest first; as it was before the first of the quarantines that changed it.
SELECT row_to_json(line)::text
FROM (
    SELECT 'memory' AS type, m.id, m.kind, m.priority, m.category, m.trust, m.content, m.author, m.session_id,
           m.group_id, m.project, m.tags, m.source_seqs, m.source_ids, m.said_at, m.refers_from, m.refers_to,
           m.valid_until, m.last_used_at,
           CASE WHEN k.memory_id IS NULL THEN m.superseded_by ELSE k.superseded_by END AS superseded_by,
           CASE WHEN k.memory_id IS NULL THEN m.superseded_at ELSE k.superseded_at END AS superseded_at,
           CASE WHEN k.memory_id IS NULL THEN m.outdated_at ELSE k.outdated_at END AS outdated_at, m.reflection_id,
           m.external_id, m.left_alone, m.tentative, m.facet, m.created_at,
           (SELECT coalesce(json_agg(row_to_json(source) ORDER BY source.said_at, source.group_id), '[]')
            FROM (SELECT o.session_id, o.group_id, o.seqs, o.said_at FROM memory_sources o WHERE o.memory_id = m.id
            ) AS source) AS sources
    FROM memories m
    LEFT JOIN (SELECT DISTINCT ON (memory_id) memory_id, superseded_by, superseded_at, outdated_at
               FROM quarantined_memories ORDER BY memory_id, quarantine_id
    ) AS k ON k.memory_id = m.id
    ORDER BY m.created_at, m.id
) AS line

-- name: reflections
-- Every reflection, oldest first, those that changed nothing or were undone included.
SELECT row_to_json(line)::text
FROM (
    SELECT 'reflection' AS type, id, scope, session_id, project, reflector, state, level, reason, input_ids, output_ids,
           dropped_ids, tokens_before, tokens_after, input_tokens, output_tokens, created_at, undone_at
    FROM reflections
    ORDER BY id
) AS line
