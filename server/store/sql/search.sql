-- name: keyword
-- BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza, 2009) over the postings of the query's terms. The document
-- frequency is counted from the same postings, so it is never stale. `coverage` is the share of the query's
-- information that a row holds, a term that no row has counting in full.
WITH asked AS (
    SELECT DISTINCT term FROM unnest(%(terms)s::text[]) AS term
), pool AS (
    SELECT count(*)::float8 AS rows, greatest(avg(terms), 1)::float8 AS mean_terms FROM memories
), found AS (
    SELECT p.term, p.memory_id, p.frequency FROM postings p WHERE p.term = ANY (%(terms)s)
), weighed AS (
    SELECT asked.term, ln(1 + (greatest(pool.rows - df.rows, 0) + 0.5) / (df.rows + 0.5)) AS weight
    FROM asked
    CROSS JOIN pool
    CROSS JOIN LATERAL (SELECT count(*)::float8 AS rows FROM found WHERE found.term = asked.term) AS df
), scored AS (
    SELECT m.id, m.content,
           sum(w.weight * f.frequency * 2.2 / (f.frequency + 1.2 * (0.25 + 0.75 * m.terms / pool.mean_terms)))
               AS score,
           sum(w.weight) AS matched
    FROM found f
    JOIN weighed w USING (term)
    JOIN visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s,
                          %(as_of)s, %(with_superseded)s) m ON m.id = f.memory_id
    CROSS JOIN pool
    GROUP BY m.id, m.content
)
SELECT id, score::float8, (matched / (SELECT sum(weight) FROM weighed))::float8 AS coverage
FROM scored
ORDER BY score DESC, id
LIMIT %(limit)s

-- name: vector
-- The nearest rows by cosine, exactly, among those that may be seen. A vector of an older text does not count.
SELECT m.id, (1 - (v.embedding <=> %(vector)s::halfvec))::float8 AS cosine
FROM {vectors} v
JOIN visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s, %(as_of)s,
                      %(with_superseded)s) m ON m.id = v.memory_id AND m.content_hash = v.content_hash
ORDER BY v.embedding <=> %(vector)s::halfvec, m.id
LIMIT %(limit)s

-- name: cosines
-- How near some rows are that the other search found.
SELECT v.memory_id, (1 - (v.embedding <=> %(vector)s::halfvec))::float8
FROM {vectors} v WHERE v.memory_id = ANY (%(ids)s)
