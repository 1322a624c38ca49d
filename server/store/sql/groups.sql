-- name: insert
-- Record the messages that one observer call covered, and its results. Their ids are read here, since a client's id that
-- was forgotten while the observer worked has another name now.
INSERT INTO observation_groups (pool_id, id, session_id, first_seq, last_seq, first_external_id, last_external_id,
                                cwd, observer, current_task, suggested_continuation, thread_title, input_tokens,
                                output_tokens, merged, replaced, refused, created_at)
SELECT current_pool(), %(id)s, %(session)s, %(first_seq)s, %(last_seq)s, first.external_id, last.external_id, %(cwd)s,
       %(observer)s, %(current_task)s, %(suggested_continuation)s, %(thread_title)s, %(input_tokens)s, %(output_tokens)s,
       %(merged)s, %(replaced)s, %(refused)s, %(now)s
FROM messages first JOIN messages last ON last.session_id = first.session_id AND last.seq = %(last_seq)s
WHERE first.session_id = %(session)s AND first.seq = %(first_seq)s

-- name: of_session
-- The groups of a session, in order.
SELECT id, first_seq, last_seq, first_external_id, last_external_id, kind, cwd, observer, created_at
FROM observation_groups WHERE session_id = %(session)s ORDER BY first_seq

-- name: summaries
-- The groups of a session, newest first, with their results.
SELECT g.id, g.first_seq, g.last_seq, g.first_external_id, g.last_external_id, g.kind, g.observer, g.input_tokens,
       g.output_tokens, m.observations, m.observation_tokens, g.merged, g.replaced, g.refused, g.created_at
FROM observation_groups g
CROSS JOIN LATERAL (
    SELECT count(*) AS observations, coalesce(sum(tokens), 0)::bigint AS observation_tokens
    FROM memories WHERE group_id = g.id
) AS m
WHERE g.session_id = %(session)s ORDER BY g.first_seq DESC

-- name: count
-- How many groups and observations a session has, superseded ones included, and how many messages the groups cover.
SELECT (SELECT count(*) FROM observation_groups WHERE session_id = %(session)s),
       (SELECT coalesce(sum(last_seq - first_seq + 1), 0) FROM observation_groups WHERE session_id = %(session)s),
       (SELECT count(*) FROM memories WHERE session_id = %(session)s AND kind = 'observation')

-- name: since
-- The groups that cover messages after a seq, with their memories and the counts of other facts.
SELECT g.id, g.observer, ARRAY(SELECT m.id FROM memories m WHERE m.group_id = g.id ORDER BY m.id) AS memory_ids,
       g.merged, g.replaced, g.refused
FROM observation_groups g WHERE g.session_id = %(session)s AND g.first_seq > %(after)s ORDER BY g.first_seq
