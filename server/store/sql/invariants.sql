-- name: take_time
-- Let the statements of this transaction, which read whole tables, take as long as they need.
SELECT set_config('statement_timeout', '0', true), set_config('work_mem', '64MB', true)

-- name: spaces
-- Every space that has a table in this database.
SELECT substr(relname, length('embeddings_') + 1) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE 'embeddings\_%%'
  AND has_table_privilege(oid, 'SELECT')
ORDER BY 1

-- name: messages_once_in_order
-- Sessions whose messages are not numbered from 1 to the last one, without gaps.
SELECT s.id FROM sessions s
LEFT JOIN (
    SELECT session_id, count(*) AS stored, min(seq) AS first, max(seq) AS last FROM messages GROUP BY session_id
) AS m ON m.session_id = s.id
WHERE s.last_seq <> coalesce(m.stored, 0) OR m.first <> 1 OR m.last <> s.last_seq
ORDER BY s.id

-- name: messages_covered_once
-- Sessions in which a message is neither in the unobserved tail nor in exactly one group.
SELECT s.id FROM sessions s
LEFT JOIN (
    SELECT session_id, max(last_seq) AS last, sum(last_seq - first_seq + 1) AS covered,
           bool_and(first_seq = before + 1) AS unbroken
    FROM (
        SELECT session_id, first_seq, last_seq,
               lag(last_seq, 1, 0::bigint) OVER (PARTITION BY session_id ORDER BY first_seq) AS before
        FROM observation_groups
    ) AS ordered GROUP BY session_id
) AS g ON g.session_id = s.id
WHERE coalesce(g.covered, 0) <> s.observed_seq OR coalesce(g.last, 0) <> s.observed_seq OR NOT g.unbroken
ORDER BY s.id

-- name: counters_of_sessions
-- Sessions whose token counters are not the sums over their messages.
SELECT s.id FROM sessions s
LEFT JOIN LATERAL (
    SELECT sum(tokens) AS total, sum(tokens) FILTER (WHERE seq > s.observed_seq) AS unobserved
    FROM messages m WHERE m.session_id = s.id
) AS m ON true
WHERE s.total_tokens <> coalesce(m.total, 0) OR s.unobserved_tokens <> coalesce(m.unobserved, 0)
   OR s.observed_seq > s.last_seq OR s.passages_seq > s.last_seq
ORDER BY s.id

-- name: facts_have_sources
-- Memories whose sources are not messages of their group, or that are drawn from nothing.
SELECT m.id FROM memories m LEFT JOIN observation_groups g ON g.id = m.group_id
WHERE m.kind = 'observation' AND (cardinality(m.source_seqs) = 0 OR g.id IS NULL OR g.session_id <> m.session_id
                                  OR EXISTS (SELECT FROM unnest(m.source_seqs) AS seq
                                             WHERE seq NOT BETWEEN g.first_seq AND g.last_seq))
   OR m.kind = 'reflection' AND cardinality(m.source_ids) = 0
UNION
SELECT a.memory_id FROM memory_sources a LEFT JOIN observation_groups g ON g.id = a.group_id
WHERE g.id IS NULL OR g.session_id <> a.session_id
   OR EXISTS (SELECT FROM unnest(a.seqs) AS seq WHERE seq NOT BETWEEN g.first_seq AND g.last_seq)
UNION
SELECT m.id FROM memories m CROSS JOIN unnest(m.source_ids) AS source_id
WHERE m.kind = 'reflection'
  AND NOT EXISTS (SELECT FROM memory_links l WHERE l.source_id = source_id AND l.memory_id = m.id)
ORDER BY 1

-- name: superseded_by_something
-- Memories that were replaced by a memory, a reflection or a quarantine that does not exist.
SELECT m.id FROM memories m
WHERE m.superseded_by IS NOT NULL AND NOT CASE left(m.superseded_by, 4)
          WHEN 'mem_' THEN EXISTS (SELECT FROM memories o WHERE o.id = m.superseded_by)
          WHEN 'ref_' THEN EXISTS (SELECT FROM reflections r WHERE r.id = m.superseded_by)
          WHEN 'qua_' THEN EXISTS (SELECT FROM quarantines q WHERE q.id = m.superseded_by)
          ELSE true END
ORDER BY m.id

-- name: packs_as_frozen
-- Sessions with a pack whose bytes are not those of its hash, or with a version that was never given out.
SELECT p.session_id FROM packs p JOIN sessions s ON s.id = p.session_id
WHERE encode(sha256(convert_to(p.text, 'UTF8')), 'hex') <> p.sha256 OR p.version > s.pack_version
UNION
SELECT f.session_id FROM former_packs f JOIN sessions s ON s.id = f.session_id
WHERE f.version > s.pack_version
   OR EXISTS (SELECT FROM packs p WHERE p.session_id = f.session_id AND p.version = f.version)
ORDER BY 1

-- name: packs_show_nothing_forgotten
-- Sessions with a pack, now or before, that shows a memory which does not exist.
SELECT DISTINCT p.session_id
FROM (SELECT session_id, memory_ids || left_out_ids AS ids FROM packs
      UNION ALL SELECT session_id, memory_ids FROM former_packs) AS p
CROSS JOIN unnest(p.ids) AS shown
WHERE NOT EXISTS (SELECT FROM memories m WHERE m.id = shown)
ORDER BY 1

-- name: keywords_of_texts
-- Memories and passages without keywords, and numbers of keywords without a text.
SELECT m.id FROM memories m
WHERE m.terms > 0 AND NOT EXISTS (SELECT FROM postings p WHERE p.number = m.number)
UNION ALL
SELECT a.id FROM passages a
WHERE a.terms > 0 AND NOT EXISTS (SELECT FROM postings p WHERE p.number = a.number)
UNION ALL
SELECT DISTINCT p.number::text FROM postings p
WHERE NOT CASE p.tier WHEN 'm' THEN EXISTS (SELECT FROM memories m WHERE m.number = p.number)
                      ELSE EXISTS (SELECT FROM passages a WHERE a.number = p.number) END
ORDER BY 1

-- name: counters_of_tiers
-- Tiers of search whose counters are not the sums over their texts.
SELECT CASE real.tier WHEN 'm' THEN 'memories' ELSE 'passages' END
FROM (
    SELECT 'm'::"char" AS tier, coalesce(sum(parts), 0) AS parts, coalesce(sum(terms), 0) AS terms FROM memories
    UNION ALL
    SELECT 'p', coalesce(sum(parts), 0), coalesce(sum(terms), 0) FROM passages
) AS real
LEFT JOIN (SELECT tier, sum(parts) AS parts, sum(terms) AS terms FROM tier_sizes GROUP BY tier) AS kept USING (tier)
WHERE real.parts <> coalesce(kept.parts, 0) OR real.terms <> coalesce(kept.terms, 0)
ORDER BY 1

-- name: leases
-- Jobs and rows of the queue of vectors whose state and lease do not agree.
SELECT concat_ws(' ', kind, subject) FROM jobs
WHERE (state = 'running') <> (lease_token IS NOT NULL) OR (lease_token IS NULL) <> (lease_until IS NULL)
   OR state = 'dead' AND last_error IS NULL
UNION ALL
SELECT concat_ws(' ', space, number) FROM embedding_attempts
WHERE (lease_token IS NULL) <> (lease_until IS NULL) OR dead AND lease_token IS NOT NULL
ORDER BY 1

-- name: queue_of_texts
-- Entries in the queue of vectors that belong to no text, or to a space that the pool does not have.
SELECT concat_ws(' ', a.space, a.number) FROM embedding_attempts a
WHERE NOT CASE a.tier WHEN 'm' THEN EXISTS (SELECT FROM memories m WHERE m.number = a.number)
                      ELSE EXISTS (SELECT FROM passages p WHERE p.number = a.number) END
   OR NOT EXISTS (SELECT FROM embedding_spaces e WHERE e.name = a.space)
ORDER BY 1

-- name: dimension_of_spaces
-- Spaces whose table is missing, or made for vectors of another dimension.
SELECT e.name FROM embedding_spaces e
LEFT JOIN pg_attribute a ON a.attrelid = to_regclass('embeddings_' || e.name) AND a.attname = 'embedding'
WHERE a.atttypmod IS DISTINCT FROM e.dimension
ORDER BY 1

-- name: vectors_of_texts
-- Numbers of vectors without a text, in one space.
SELECT DISTINCT v.number::text FROM {vectors} v
WHERE NOT CASE v.tier WHEN 'm' THEN EXISTS (SELECT FROM memories m WHERE m.number = v.number)
                      ELSE EXISTS (SELECT FROM passages p WHERE p.number = v.number) END
ORDER BY 1

-- name: texts_have_vectors
-- Memories and passages with neither a current vector in the active space nor a place in its queue.
SELECT t.id
FROM embedding_spaces e
CROSS JOIN (
    SELECT 'm'::"char" AS tier, id, number, content_hash FROM memories
    UNION ALL
    SELECT 'p', id, number, content_hash FROM passages
) AS t
WHERE e.name = %(space)s AND e.state = 'active'
  AND NOT EXISTS (
    SELECT FROM {vectors} v
    WHERE v.tier = t.tier AND v.number = t.number AND v.part = 0 AND v.content_hash = t.content_hash OFFSET 0)
  AND NOT EXISTS (SELECT FROM embedding_attempts a WHERE a.space = e.name AND a.number = t.number OFFSET 0)
ORDER BY 1
