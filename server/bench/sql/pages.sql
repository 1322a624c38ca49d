-- name: add_sessions
-- Sessions of five clients, most of them in a project, each with its messages and with a group for every twenty.
INSERT INTO sessions (pool_id, id, client, external_id, project, timezone, effective_context, last_seq, observed_seq,
                      passages_seq, total_tokens, thread_title, created_at, begun_at, last_received_at, last_sent_at)
SELECT %(pool)s::uuid, 'ses_' || lpad(n::text, 9, '0'), 'client-' || mod(n, 5), 'session-' || n,
       CASE WHEN mod(n, 5) > 0 THEN 'project-' || mod(n, 40) END, 'UTC', 200000, %(messages)s::bigint, %(messages)s::bigint,
       %(messages)s::bigint, 30 * %(messages)s::bigint, 'Session ' || n, began_at, began_at, began_at, began_at
FROM generate_series(0, %(sessions)s::bigint - 1) AS n
CROSS JOIN LATERAL (SELECT %(now)s::timestamptz - n * interval '3 hours' AS began_at) AS drawn

-- name: add_messages
-- The messages of the sessions, in turn of a user and an assistant.
INSERT INTO messages (pool_id, session_id, seq, external_id, role, trust, sent_at, received_at, content, content_hash,
                      text, tokens, shown_tokens)
SELECT s.pool_id, s.id, seq, 'message-' || seq, said.by, said.by, s.begun_at, s.begun_at,
       jsonb_build_array(jsonb_build_object('type', 'text', 'text', made.content)),
       sha256(convert_to(made.content, 'UTF8')), made.content, 30, 30
FROM sessions s CROSS JOIN generate_series(1, s.last_seq) AS seq
CROSS JOIN LATERAL (SELECT CASE mod(seq, 2) WHEN 1 THEN 'user' ELSE 'assistant' END AS by) AS said
JOIN jsonb_to_recordset(%(sentences)s::jsonb) AS made (place bigint, content text)
  ON made.place = mod(seq * 7919 + right(s.id, 9)::bigint, jsonb_array_length(%(sentences)s::jsonb))
WHERE s.pool_id = %(pool)s::uuid

-- name: add_groups
-- A group for every twenty messages of a session.
INSERT INTO observation_groups (pool_id, id, session_id, first_seq, last_seq, first_external_id, last_external_id,
                                observer, input_tokens, output_tokens, created_at)
SELECT s.pool_id, 'grp_' || right(s.id, 9) || '_' || place, s.id, 20 * place + 1, least(20 * place + 20, s.last_seq),
       'message-' || (20 * place + 1), 'message-' || least(20 * place + 20, s.last_seq), 'bench', 600, 100, s.begun_at
FROM sessions s CROSS JOIN generate_series(0, (s.last_seq - 1) / 20) AS place
WHERE s.pool_id = %(pool)s::uuid

-- name: add_memories
-- One row a message: of five rows three are observations, one is of a reflection and one is a note; one observation in
-- three was superseded by a row of a reflection. Each is a sentence with its number.
INSERT INTO memories (pool_id, id, kind, priority, category, trust, content, content_hash, author, session_id, group_id,
                      project, source_seqs, source_ids, tokens, terms, parts, said_at, last_used_at, superseded_by,
                      superseded_at, outdated_at, reflection_id, created_at)
SELECT s.pool_id, 'mem_' || lpad(n::text, 9, '0'), kind,
       (ARRAY ['high', 'medium', 'medium', 'medium', 'low', 'low'])[1 + mod(n * 7919, 6)], 'fact', 'user',
       made.content || ' ' || n, sha256(convert_to(made.content || n, 'UTF8')), 'bench', s.id,
       CASE kind WHEN 'observation' THEN 'grp_' || right(s.id, 9) || '_' || (seq - 1) / 20 END, s.project,
       CASE kind WHEN 'observation' THEN ARRAY [seq] ELSE '{}' END,
       CASE kind WHEN 'reflection' THEN ARRAY ['mem_' || lpad((n - 1)::text, 9, '0')] ELSE '{}' END,
       made.tokens, made.terms, 1, s.begun_at + seq * interval '1 second', s.begun_at,
       CASE WHEN replaced THEN 'mem_' || lpad((n + 1)::text, 9, '0') END, CASE WHEN replaced THEN s.begun_at END,
       CASE WHEN replaced THEN s.begun_at END,
       CASE kind WHEN 'reflection' THEN 'ref_' || right(s.id, 9) END, s.begun_at + seq * interval '1 second'
FROM sessions s CROSS JOIN generate_series(1, s.last_seq) AS seq
CROSS JOIN LATERAL (SELECT right(s.id, 9)::bigint * s.last_seq + seq AS n) AS counted
CROSS JOIN LATERAL (
    SELECT CASE mod(seq, 5) WHEN 3 THEN 'reflection' WHEN 4 THEN 'note' ELSE 'observation' END AS kind,
           mod(seq, 5) = 2 AS replaced
) AS drawn
JOIN jsonb_to_recordset(%(sentences)s::jsonb) AS made (place bigint, content text, tokens int, terms int)
  ON made.place = mod(n, jsonb_array_length(%(sentences)s::jsonb))
WHERE s.pool_id = %(pool)s::uuid

-- name: add_postings
-- The keyword index of the rows.
INSERT INTO postings (pool_id, tier, term, number, part, frequency, length)
SELECT m.pool_id, 'm', posting.key, m.number, 1, posting.value::int, m.terms
FROM memories m
JOIN jsonb_to_recordset(%(sentences)s::jsonb) AS made (place bigint, frequencies jsonb)
  ON made.place = mod(right(m.id, 9)::bigint, jsonb_array_length(%(sentences)s::jsonb))
CROSS JOIN jsonb_each_text(made.frequencies) AS posting
WHERE m.pool_id = %(pool)s::uuid

-- name: add_reflections
-- A reflection of each session, with the rows that it condensed and those that it wrote.
INSERT INTO reflections (pool_id, id, scope, session_id, project, reflector, input_ids, output_ids, tokens_before,
                         tokens_after, input_tokens, output_tokens, created_at)
SELECT m.pool_id, 'ref_' || right(m.session_id, 9), 'session', m.session_id, m.project, 'bench',
       array_agg(m.id) FILTER (WHERE m.kind = 'observation'), array_agg(m.id) FILTER (WHERE m.kind = 'reflection'),
       2000, 1000, 2000, 1000, min(m.created_at)
FROM memories m WHERE m.pool_id = %(pool)s::uuid GROUP BY m.pool_id, m.session_id, m.project

-- name: add_audit
-- An entry of the audit trail for each row.
INSERT INTO audit (pool_id, at, actor, action, target)
SELECT pool_id, created_at, 'bench', 'memory.list', id FROM memories WHERE pool_id = %(pool)s::uuid

-- name: some_ids
-- An observation of a session, with its reflection, from the middle of the pool.
SELECT m.id, m.session_id, 'ref_' || right(m.session_id, 9), m.content FROM memories m
WHERE m.pool_id = %(pool)s::uuid AND m.kind = 'observation' AND m.superseded_at IS NULL
ORDER BY m.id OFFSET (SELECT count(*) / 5 FROM memories WHERE pool_id = %(pool)s::uuid) LIMIT 1
