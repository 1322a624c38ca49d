-- name: keyword
-- BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza, 2009) over the postings of the query's terms. The document
-- frequency is counted from the same postings, so it is never stale. `coverage` is the share of the query's
-- information that a row holds, a term that no row has counting in full.
-- Nothing is joined but single rows, and rows are looked up one by one, best first, until enough may be seen; the
-- OFFSETs keep the planner from another way. Before its first ANALYZE of a pool that was just filled it takes ten
-- thousand rows for thirty, and would compare each with each.
WITH pool AS (
    SELECT count(*)::float8 AS rows, greatest(avg(terms), 1)::float8 AS mean_terms FROM memories
), found AS MATERIALIZED (
    SELECT p.term, p.memory_id, p.frequency, p.length,
           ln(1 + (greatest(pool.rows - p.rows, 0) + 0.5) / (p.rows + 0.5)) AS weight
    FROM (
        SELECT term, memory_id, frequency, length, count(*) OVER (PARTITION BY term)::float8 AS rows
        FROM postings WHERE term = ANY (%(terms)s)
    ) AS p CROSS JOIN pool
), known AS (
    SELECT count(*) AS terms, coalesce(sum(weight), 0) AS weight FROM (SELECT DISTINCT term, weight FROM found) AS t
), asked AS (
    SELECT known.weight + (cardinality(%(terms)s::text[]) - known.terms) * ln(1 + (pool.rows + 0.5) / 0.5) AS weight
    FROM known CROSS JOIN pool
), scored AS MATERIALIZED (
    SELECT memory_id, sum(weight) AS matched,
           sum(weight * frequency * 2.2 / (frequency + 1.2 * (0.25 + 0.75 * length / pool.mean_terms))) AS score
    FROM found CROSS JOIN pool
    GROUP BY memory_id
)
SELECT ranked.memory_id AS id, (ranked.matched / (SELECT weight FROM asked))::float8 AS coverage
FROM (SELECT * FROM scored ORDER BY score DESC, memory_id OFFSET 0) AS ranked
CROSS JOIN LATERAL (
    SELECT FROM visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s,
                                 %(as_of)s, %(moment)s, %(with_superseded)s) AS m
    WHERE m.id = ranked.memory_id OFFSET 0
) AS seen
ORDER BY ranked.score DESC, ranked.memory_id
LIMIT %(limit)s

-- name: vector
-- The nearest rows by cosine, exactly, among those that may be seen. A vector of an older text does not count. Rows are
-- looked up as in the search by keyword.
SELECT near.memory_id AS id, (1 - near.distance)::float8 AS cosine
FROM (
    SELECT memory_id, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} ORDER BY distance, memory_id OFFSET 0
) AS near
CROSS JOIN LATERAL (
    SELECT FROM visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s,
                                 %(as_of)s, %(moment)s, %(with_superseded)s) AS m
    WHERE m.id = near.memory_id AND m.content_hash = near.content_hash OFFSET 0
) AS seen
ORDER BY near.distance, near.memory_id
LIMIT %(limit)s

-- name: cosines
-- How near some rows are that the other search found.
SELECT v.memory_id, (1 - (v.embedding <=> %(vector)s::halfvec))::float8
FROM {vectors} v WHERE v.memory_id = ANY (%(ids)s)

-- name: near_pairs
-- Which of some rows are near each other.
SELECT one.memory_id, other.memory_id, (1 - (one.embedding <=> other.embedding))::float8
FROM {vectors} one JOIN {vectors} other ON one.memory_id < other.memory_id
WHERE one.memory_id = ANY (%(ids)s) AND other.memory_id = ANY (%(ids)s)
  AND one.embedding <=> other.embedding <= 1 - %(least)s::float8
