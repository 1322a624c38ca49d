-- columns: memory_seen
visible_memories(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, %(moment)s, false)

-- columns: is_live
superseded_at IS NULL AND (valid_until IS NULL OR valid_until > %(moment)s)

-- name: sample_memories
-- A sample of visible rows; the same seed gives the same sample.
SELECT t.id, 'memory' AS tier, t.content, t.said_at FROM {memory_seen} AS t
ORDER BY md5(t.id || %(seed)s::text), t.id LIMIT %(limit)s

-- name: sample_passages
-- A sample of passages; the same seed gives the same sample.
SELECT p.id, 'passage' AS tier, p.text AS content, p.said_to AS said_at FROM passages p
ORDER BY md5(p.id || %(seed)s::text), p.id LIMIT %(limit)s

-- name: term_frequencies
-- How many texts of a tier contain each of some terms, counted up to a limit.
SELECT asked.term, held.texts
FROM unnest(%(terms)s::text[]) AS asked (term)
CROSS JOIN LATERAL (
    SELECT count(*) AS texts FROM (
        SELECT FROM postings WHERE tier = %(tier)s AND term = asked.term AND part <= 1 LIMIT %(most)s) AS counted
) AS held

-- name: same_passages
-- For each of these passages, all passages with identical text.
SELECT p.id, array_agg(o.id) FROM passages p JOIN passages o ON o.content_hash = p.content_hash
WHERE p.id = ANY (%(ids)s) GROUP BY p.id

-- name: messages
-- How many messages the pool has, how many are in a group, in the unobserved tail of their session, and in neither.
SELECT coalesce(sum(last_seq), 0)::bigint AS messages, coalesce(sum(covered), 0)::bigint AS covered,
       coalesce(sum(last_seq - observed_seq), 0)::bigint AS waiting,
       coalesce(sum(observed_seq - covered), 0)::bigint AS lost
FROM (
    SELECT s.last_seq, s.observed_seq,
           (SELECT coalesce(sum(g.last_seq - g.first_seq + 1), 0) FROM observation_groups g WHERE g.session_id = s.id)
               AS covered
    FROM sessions s
) AS counted

-- name: rows
-- How many rows the pool has: live, superseded, expired, expired but not marked so yet, and stale (live, of low priority
-- and unused for a while).
SELECT count(*) AS rows,
       count(*) FILTER (WHERE {is_live}) AS live,
       count(*) FILTER (WHERE superseded_at IS NOT NULL) AS superseded,
       count(*) FILTER (WHERE superseded_at IS NULL AND valid_until <= %(moment)s) AS expired,
       count(*) FILTER (WHERE superseded_at IS NULL AND valid_until <= %(moment)s AND NOT expired) AS unmarked,
       count(*) FILTER (WHERE {is_live} AND priority = 'low' AND kind <> 'manual' AND greatest(last_used_at, created_at) < %(before)s) AS stale
FROM memories

-- name: rows_by_age
-- How many live rows of each kind were said in the last week, month, quarter and year, and earlier.
SELECT kind, width_bucket(extract(epoch FROM %(moment)s - said_at) / 86400, ARRAY[7, 30, 91, 365]::float8[]) AS age,
       count(*) AS live
FROM memories WHERE {is_live}
GROUP BY 1, 2 ORDER BY 1, 2

-- name: orphaned_rows
-- Live rows whose sources have all been deleted: the messages of an observation, the rows of a reflection.
SELECT m.id FROM memories m
WHERE {is_live} AND (
    m.kind = 'observation' AND NOT EXISTS (
        SELECT FROM messages t WHERE t.session_id = m.session_id AND t.seq = ANY (m.source_seqs))
    AND NOT EXISTS (
        SELECT FROM memory_sources a JOIN messages t ON t.session_id = a.session_id AND t.seq = ANY (a.seqs)
        WHERE a.memory_id = m.id)
    OR m.kind = 'reflection' AND NOT EXISTS (SELECT FROM memories s WHERE s.id = ANY (m.source_ids)))
ORDER BY m.id

-- name: vector_tables
-- Every space that has a table in this database, with its state and model in the pool, if the pool has it.
SELECT substr(c.relname, length('embeddings_') + 1) AS space, s.state, s.model
FROM pg_class c LEFT JOIN embedding_spaces s ON 'embeddings_' || s.name = c.relname
WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
  AND c.relname LIKE 'embeddings\_%%' AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 1

-- name: vectors_in
-- How many vectors the pool has in a space, how many have no text, and how many belong to an older version of theirs.
SELECT count(*) AS vectors,
       count(*) FILTER (WHERE m.id IS NULL AND p.id IS NULL) AS orphaned,
       count(*) FILTER (WHERE coalesce(m.content_hash, p.content_hash) <> v.content_hash) AS outdated
FROM {vectors} v
LEFT JOIN memories m ON v.tier = 'm' AND m.number = v.number
LEFT JOIN passages p ON v.tier = 'p' AND p.number = v.number

-- name: largest_projects
-- The projects with the most live rows; rows without a project count as one.
SELECT project, count(*) AS live FROM memories WHERE {is_live}
GROUP BY project ORDER BY live DESC, project NULLS LAST LIMIT %(limit)s
