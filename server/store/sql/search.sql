-- columns: around
SELECT m.number AS of_number, m.tokens AS of_tokens, n.id, n.number, n.tokens
FROM memories m
CROSS JOIN LATERAL (
    (SELECT id, number, tokens FROM {memory_seen} AS n
     WHERE n.session_id = m.session_id AND n.said_at <= m.said_at AND (n.said_at, n.id) < (m.said_at, m.id)
     ORDER BY said_at DESC, id DESC LIMIT 1)
    UNION ALL
    (SELECT id, number, tokens FROM {memory_seen} AS n
     WHERE n.session_id = m.session_id AND n.said_at >= m.said_at AND (n.said_at, n.id) > (m.said_at, m.id)
     ORDER BY said_at, id LIMIT 1)
) AS n
WHERE m.number = ANY (%(numbers)s) AND m.session_id IS NOT NULL AND m.kind = 'note'
-- columns: words_of_new
, wanted AS (
    SELECT DISTINCT number FROM around WHERE number <> ALL (%(known)s)
), words AS (
    SELECT number, (max(score) / 1e7 / %(ideal)s)::float8 AS score
    FROM (
        SELECT number, part, {score} AS score
        FROM (SELECT number, 0.9 / %(mean_terms)s::float8 AS slope FROM wanted OFFSET 0) AS unscored
        CROSS JOIN unnest(%(terms)s::text[], %(weights)s::float8[]) AS asked (term, weight)
        CROSS JOIN LATERAL ({posting}) AS held
        GROUP BY number, part
    ) AS parts
    GROUP BY number
)
-- columns: evidence
, figures AS (
    SELECT weights, counts, mean_terms, ideal, known, unknown, is_enough, is_exact,
           by_keyword.may_have_neighbours OR beside.may_have_neighbours AS may_have_neighbours
    FROM by_keyword CROSS JOIN beside WHERE id IS NULL
), wanted AS (
    SELECT number FROM by_keyword WHERE id IS NOT NULL UNION SELECT number FROM by_vector
), words AS (
    SELECT number, (max(score) / 1e7 / max(ideal))::float8 AS score
    FROM (
        SELECT number, part, ideal, {score} AS score
        FROM figures
        CROSS JOIN LATERAL unnest(%(terms)s::text[], weights) AS asked (term, weight)
        CROSS JOIN LATERAL (SELECT 0.9 / mean_terms AS slope) AS sloping
        CROSS JOIN (
            SELECT number FROM by_vector EXCEPT SELECT number FROM by_keyword WHERE id IS NOT NULL OFFSET 0
        ) AS unscored
        CROSS JOIN LATERAL ({posting}) AS held
        GROUP BY number, part, ideal
    ) AS parts
    GROUP BY number
), {cosines}, found AS (
    SELECT number, max(id) AS id, max(score) AS score, max(cosine) AS cosine, bool_or(named) AS named,
           bool_or(keyword) AS keyword, bool_or(vector) AS vector
    FROM (
        SELECT number, id, score, NULL::float8 AS cosine, named, true AS keyword, NULL::boolean AS vector
        FROM by_keyword WHERE id IS NOT NULL
        UNION ALL SELECT number, id, NULL, NULL, NULL, NULL, true FROM by_vector
        UNION ALL SELECT number, NULL, score, NULL, NULL, NULL, NULL FROM words
        UNION ALL SELECT number, NULL, NULL, cosine, NULL, NULL, NULL FROM cosines
    ) AS parts
    GROUP BY number
)
SELECT NULL AS number, NULL AS id, NULL AS score, NULL AS cosine, NULL AS named, NULL AS keyword, NULL AS vector,
       figures.*, (SELECT count(*) FROM by_vector) AS nearest
FROM figures
UNION ALL
SELECT found.*, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM found
-- columns: cosines
cosines AS (
    -- By the nearest part, less a correction for texts with many parts.
    SELECT number, (max(1 - (embedding <=> %(vector)s::halfvec)) - %(by_chance)s * ln(count(*)))::float8 AS cosine
    FROM {vectors} WHERE tier = %(tier)s AND number = ANY (ARRAY(SELECT number FROM wanted)) GROUP BY number
)
-- columns: posting
SELECT part, frequency, length FROM postings
WHERE tier = %(tier)s AND term = asked.term AND number = unscored.number OFFSET 0
-- columns: weights
size AS (
    -- At least 100 parts are assumed: a word in all three texts of a tiny pool is still rare in general.
    SELECT greatest(coalesce(sum(parts), 0), 100)::float8 AS parts,
           greatest(coalesce(sum(terms)::float8 / nullif(sum(parts), 0), 1), 1) AS mean_terms
    FROM tier_sizes WHERE tier = %(tier)s
), counted AS (
    -- A term is known if either tier contains it.
    SELECT asked.term, asked.word, asked.place, held.parts,
           held.parts > 0 OR (
               SELECT true FROM postings WHERE tier IN ('m', 'p') AND term = asked.term LIMIT 1
           ) IS TRUE AS is_known
    FROM unnest(%(terms)s::text[], %(words)s::int[], %(counts)s::float8[])
        WITH ORDINALITY AS asked (term, word, parts, place)
    CROSS JOIN LATERAL (
        SELECT coalesce(asked.parts, (
            SELECT count(*) FROM postings WHERE tier = %(tier)s AND term = asked.term
        )) AS parts OFFSET 0
    ) AS held
), by_weight AS (
    SELECT term, word, place, counted.parts, counted.parts > 0 AS there, is_known, 0.9 / size.mean_terms AS slope,
           ln(1 + (greatest(size.parts - counted.parts, 0) + 0.5) / (counted.parts + 0.5)) AS weight,
           term = ANY (%(names)s::text[]) AND counted.parts <= %(max_parts)s AS is_rare_name,
           rarer, rarer < %(enough)s OR rarer + counted.parts <= %(most)s AS is_read
    FROM (SELECT *, sum(parts) OVER (ORDER BY parts, place) - parts AS rarer FROM counted) AS counted
    CROSS JOIN size
), weighed AS MATERIALIZED (
    -- Texts are `wanted` by the terms that are read. Of these, a term is late if those before have many more postings, and
    -- if all from it on, the commonest ones, weigh less than the one before.
    SELECT *, is_read AND coalesce(bool_or(is_light) OVER (ORDER BY parts, place), false) AS is_late
    FROM (
        SELECT *, %(may_be_late)s AND rarer >= 1.5 * wanted AND
                  2.2 * sum(weight) OVER (ORDER BY parts DESC, place DESC)
                  < lag(weight) OVER (ORDER BY parts, place) AS is_light
        FROM (
            SELECT *, CASE WHEN bool_and(is_read) OVER () THEN %(limit)s::int ELSE %(looked_up)s::int END AS wanted
            FROM by_weight
        ) AS by_weight
    ) AS by_weight
), asked_words AS (
    -- A word weighs as much as its rarest form that occurs. Unknown terms of one or two characters may not be words:
    -- they may span two words of a text without spaces, or be cut off by an apostrophe.
    SELECT coalesce(max(weight) FILTER (WHERE there), max(weight)) AS weight, bool_or(is_known) AS is_known,
           NOT bool_or(is_known) AND max(length(term)) > 2 AS is_unknown
    FROM weighed GROUP BY word
), ideal AS (
    -- Unknown words have the highest weight, and all the same.
    SELECT greatest(sum(weight ORDER BY weight DESC) FILTER (WHERE place <= %(rarest)s) * 2.2, 1e-9) AS score,
           coalesce(sum(weight ORDER BY weight DESC) FILTER (WHERE is_known), 0) AS known,
           coalesce(max(weight) * least(count(*) FILTER (WHERE is_unknown), %(max_unknown)s), 0) AS unknown
    FROM (SELECT *, row_number() OVER (ORDER BY weight DESC) AS place FROM asked_words) AS ranked
), asked AS MATERIALIZED (
    SELECT *, CASE WHEN has_late THEN least(8 * wanted, %(ranked)s) ELSE %(ranked)s END AS kept
    FROM (
        SELECT coalesce(array_agg(weight ORDER BY place), ARRAY[]::float8[]) AS weights,
               coalesce(array_agg(parts ORDER BY place), ARRAY[]::float8[]) AS counts,
               (SELECT mean_terms FROM size) AS mean_terms,
               coalesce(bool_and(is_read), true) AS is_read,
               bool_and(is_read) AND sum(parts) <= %(ranked)s AS is_whole,
               coalesce(bool_or(is_late), false) AS has_late,
               coalesce(sum(2.2e7 * weight + 1) FILTER (WHERE is_late), 0) AS most_late,
               coalesce(max(wanted), %(limit)s::int) AS wanted
        FROM weighed
    ) AS of_terms
)
-- columns: score
sum((2.2e7::float8 * weight * frequency / (frequency + 0.3::float8 + slope * length))::int)
-- columns: memory_seen
visible_memories(%(session)s, %(project)s, %(kinds)s, %(priorities)s, %(tags)s, %(since)s, %(until)s, %(as_of)s,
                 %(moment)s, %(with_superseded)s)
-- columns: passage_seen
visible_passages(%(session)s, %(project)s, %(since)s, %(until)s, %(as_of)s)
-- columns: beside_memory
beside AS (
    SELECT EXISTS (
        SELECT FROM memories AS t WHERE t.number = ANY (ARRAY(SELECT number FROM by_vector)) AND {memory_neighbours}
    ) AS may_have_neighbours
)
-- columns: beside_passage
beside AS (SELECT {passage_neighbours} AS may_have_neighbours)
-- columns: memory_neighbours
t.session_id IS NOT NULL AND t.kind = 'note'
-- columns: passage_neighbours
false
-- columns: memory_table
memories
-- columns: passage_table
passages
-- columns: memory_mark
'm'
-- columns: passage_mark
'p'

-- name: size_{tier}
-- How many parts the texts of a tier have, and how many of them are in a session or a project. A project also sees texts
-- without a project; both are counted up to a limit above which the exact number does not matter.
SELECT '{tier}' AS tier, (
    SELECT coalesce(sum(parts), 0)::bigint FROM tier_sizes WHERE tier = {{tier}_mark}
) AS in_tier, CASE
    WHEN %(session)s::text IS NOT NULL THEN (
        SELECT coalesce(sum(parts), 0)
        FROM (SELECT parts FROM {{tier}_table} WHERE session_id = %(session)s LIMIT %(most)s) AS counted)
    WHEN %(project)s::text IS NOT NULL THEN (
        SELECT coalesce(sum(parts), 0)
        FROM ((SELECT parts FROM {{tier}_table} WHERE project = %(project)s LIMIT %(most)s)
              UNION ALL
              (SELECT parts FROM {{tier}_table} WHERE project IS NULL LIMIT %(most)s)) AS counted)
END AS in_scope

-- name: sizes_of_pool
-- How many parts the texts of each tier have, if the scope is the whole pool.
SELECT coalesce(sum(parts) FILTER (WHERE tier = 'm'), 0)::bigint AS memory,
       coalesce(sum(parts) FILTER (WHERE tier = 'p'), 0)::bigint AS passage
FROM tier_sizes

-- name: sizes
-- The same of both tiers, and how many of them are in the scope.
{size_memory} UNION ALL {size_passage}

-- name: keyword_{tier}
-- The best texts by BM25 (k1 = 1.2, b = 0.75; Robertson and Zaragoza, 2009; its document frequencies weigh as in Lucene,
-- by the logarithm of 1 + …, which is never negative) over the postings of the query's terms, each by its best part. The
-- document frequency is counted from the same postings, unless `counts` has it. A score is a share of the highest possible
-- score for the query's rarest words, each once; `words` has the word that each term is a form of. Scores are summed as
-- integers, so that they do not depend on the order. The weights of the terms are returned for `keyword_scores`.
-- Terms are read from the rarest on, as long as there are few postings in all; the scores of the others are looked up
-- only in the best texts found so far (the strategy "continue" of Moffat and Zobel, 1996: approximate). `is_enough`: as
-- many texts were found as are looked up, or nothing was left out. Late terms are looked up in the best parts, too, but
-- that is exact if the last wanted text scores more than any part that was left out can (as in MaxScore; Turtle and Flood,
-- 1995): `is_exact`. The row without an id has the figures of the whole search, and the others have the texts.
-- `may_have_neighbours`: one of the texts is a note of a session.
-- Rows are looked up one by one, best first, until enough are visible; the OFFSETs force this plan. Before its first
-- ANALYZE of a new pool the planner takes ten thousand rows for thirty, and would join each with each.
WITH {weights}, first AS MATERIALIZED (
    SELECT number, part, {score} AS score
    FROM (SELECT term, weight, slope FROM weighed WHERE is_read AND NOT is_late OFFSET 0) AS read
    CROSS JOIN LATERAL (
        SELECT number, part, frequency, length FROM postings WHERE tier = %(tier)s AND term = read.term OFFSET 0
    ) AS held
    GROUP BY number, part ORDER BY 3 DESC, number DESC LIMIT (SELECT kept FROM asked)
), scored AS (
    SELECT number, part, score + CASE WHEN (SELECT has_late FROM asked) THEN (
        SELECT coalesce({score}, 0)
        FROM (SELECT * FROM weighed WHERE is_late OFFSET 0) AS late
        CROSS JOIN LATERAL (
            SELECT frequency, length FROM postings
            WHERE tier = %(tier)s AND term = late.term AND number = first.number AND part = first.part OFFSET 0
        ) AS held
    ) ELSE 0 END AS score
    FROM first
), ranked AS (
    -- A text is ranked by its best part, whose place is in the lowest 16 bits.
    SELECT number, max(score << 16 | part) AS best FROM scored GROUP BY number
), best AS MATERIALIZED (
    SELECT seen.id, seen.may_have_neighbours, ranked.number, ranked.part, ranked.score
    FROM (
        SELECT number, best & 65535 AS part, best >> 16 AS score FROM ranked ORDER BY 3 DESC, number DESC OFFSET 0
    ) AS ranked
    CROSS JOIN LATERAL (
        SELECT t.id, {{tier}_neighbours} AS may_have_neighbours FROM {{tier}_seen} AS t
        WHERE t.number = ranked.number OFFSET 0
    ) AS seen
    ORDER BY ranked.score DESC, ranked.number DESC
    LIMIT (SELECT wanted FROM asked)
), found AS (
    SELECT id, number, best.score + rest.score AS score, may_have_neighbours, EXISTS (
               SELECT FROM (SELECT term FROM weighed WHERE is_rare_name OFFSET 0) AS name
               CROSS JOIN LATERAL (
                   SELECT FROM postings WHERE tier = %(tier)s AND term = name.term AND number = best.number OFFSET 0
               ) AS held
           ) AS named
    FROM best
    CROSS JOIN LATERAL (
        SELECT coalesce({score}, 0) AS score
        FROM (SELECT * FROM weighed WHERE NOT is_read OFFSET 0) AS unread
        CROSS JOIN LATERAL (
            SELECT frequency, length FROM postings
            WHERE tier = %(tier)s AND term = unread.term AND number = best.number AND part = best.part OFFSET 0
        ) AS held
    ) AS rest
    ORDER BY 3 DESC, number DESC LIMIT %(limit)s
)
SELECT NULL AS id, NULL AS number, NULL AS score, NULL AS named, weights, counts, mean_terms, ideal.score AS ideal,
       known, unknown, is_whole OR is_full AS is_enough,
       NOT has_late OR (is_full AND last > most_late + least) AS is_exact,
       (SELECT bool_or(may_have_neighbours) FROM found) IS TRUE AS may_have_neighbours
FROM asked CROSS JOIN ideal
CROSS JOIN LATERAL (SELECT count(*) >= wanted AS is_full, min(score) AS last FROM best) AS looked_up
CROSS JOIN LATERAL (SELECT CASE WHEN count(*) < kept THEN 0 ELSE min(score) END AS least FROM first) AS left_out
UNION ALL
SELECT id, number, (found.score / 1e7 / ideal.score)::float8, named, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM found CROSS JOIN ideal

-- name: keyword_{tier}_in_scope
-- The same if few rows of the pool are visible: looking up those is cheaper than skipping all others, and all terms are
-- read. (IS TRUE prevents a join, so that rows are always looked up in a hash.)
WITH {weights}, best AS MATERIALIZED (
    SELECT number, part, {score} AS score, bool_or(is_rare_name) AS named
    FROM (SELECT * FROM weighed OFFSET 0) AS read
    CROSS JOIN LATERAL (
        SELECT number, part, frequency, length FROM postings
        WHERE tier = %(tier)s AND term = read.term
          AND (number IN (SELECT seen.number FROM {{tier}_seen} AS seen)) IS TRUE OFFSET 0
    ) AS held
    GROUP BY number, part ORDER BY 3 DESC, number DESC LIMIT %(looked_up)s
), found AS (
    SELECT t.id, number, max(best.score) AS score, bool_or(best.named) AS named,
           bool_or(t.may_have_neighbours) AS may_have_neighbours
    FROM best
    CROSS JOIN LATERAL (
        SELECT id, {{tier}_neighbours} AS may_have_neighbours FROM {{tier}_table} AS t
        WHERE t.number = best.number OFFSET 0
    ) AS t
    GROUP BY t.id, number ORDER BY 3 DESC, number DESC LIMIT %(limit)s
)
SELECT NULL AS id, NULL AS number, NULL AS score, NULL AS named, weights, counts, mean_terms, ideal.score AS ideal,
       known, unknown, true AS is_enough, true AS is_exact,
       (SELECT bool_or(may_have_neighbours) FROM found) IS TRUE AS may_have_neighbours
FROM asked CROSS JOIN ideal
UNION ALL
SELECT id, number, (found.score / 1e7 / ideal.score)::float8, named, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM found CROSS JOIN ideal

-- name: vector_{tier}
-- The nearest visible texts by cosine, exactly. A text with several parts may occur several times. A vector of an older
-- version of a text is ignored. Rows are looked up as in keyword search.
SELECT seen.id, near.number, (1 - near.distance)::float8 AS score
FROM (
    SELECT number, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} WHERE tier = {{tier}_mark} ORDER BY distance, number DESC OFFSET 0
) AS near
CROSS JOIN LATERAL (
    SELECT t.id FROM {{tier}_seen} AS t
    WHERE t.number = near.number AND t.content_hash = near.content_hash OFFSET 0
) AS seen
ORDER BY near.distance, near.number DESC
LIMIT %(limit)s

-- name: only_as_indexed
-- Make the next statement of this transaction read rows in index order. Postgres overestimates the cost of an index of
-- large vectors, and would sort all of them.
SELECT set_config('enable_sort', 'off', true)

-- name: in_any_way
-- Let the planner choose again.
SELECT set_config('enable_sort', 'on', true)

-- name: near_{tier}
-- The nearest texts by cosine, approximately, by the index of the tier: an iterative scan (see server/db/database.py)
-- continues until enough visible texts are found, or two thousand were read. Their order is nearly that of the distances.
-- The pool is a constant, without which the index cannot be used; the exact statement has none, and never uses it.
SELECT seen.id, near.number, (1 - near.distance)::float8 AS score
FROM (
    SELECT number, content_hash, embedding <=> %(vector)s::halfvec AS distance
    FROM {vectors} WHERE pool_id = {pool} AND tier = {{tier}_mark} ORDER BY embedding <=> %(vector)s::halfvec LIMIT 2000
) AS near
CROSS JOIN LATERAL (
    SELECT t.id FROM {{tier}_seen} AS t
    WHERE t.number = near.number AND t.content_hash = near.content_hash OFFSET 0
) AS seen
LIMIT %(limit)s

-- name: filtered_{tier}
-- The nearest visible texts by cosine, exactly, reading visible rows first, then their vectors. For filters that leave
-- few rows, where vector_{tier} would read nearly every row of the pool before it has enough.
SELECT seen.id, seen.number, (1 - near.distance)::float8 AS score
FROM (SELECT t.id, t.number, t.content_hash FROM {{tier}_seen} AS t OFFSET 0) AS seen
CROSS JOIN LATERAL (
    SELECT v.embedding <=> %(vector)s::halfvec AS distance FROM {vectors} v
    WHERE v.tier = {{tier}_mark} AND v.number = seen.number AND v.content_hash = seen.content_hash OFFSET 0
) AS near
ORDER BY near.distance, seen.number DESC
LIMIT %(limit)s

-- name: candidates_{tier}
-- The texts that either search finds, with the evidence of both for each: the score of its words, and the cosine of its
-- nearest part. The row without a number has the figures of the whole search; `nearest` counts parts.
WITH by_keyword AS MATERIALIZED ({keyword_{tier}}), by_vector AS MATERIALIZED ({vector_{tier}}), {beside_{tier}}
{evidence}

-- name: candidates_{tier}_near
-- The same, with the approximate search.
WITH by_keyword AS MATERIALIZED ({keyword_{tier}}), by_vector AS MATERIALIZED ({near_{tier}}), {beside_{tier}}
{evidence}

-- name: candidates_{tier}_near_in_scope
-- The same, with the approximate search, if few rows of the pool are visible.
WITH by_keyword AS MATERIALIZED ({keyword_{tier}_in_scope}), by_vector AS MATERIALIZED ({near_{tier}}), {beside_{tier}}
{evidence}

-- name: candidates_{tier}_filtered
-- The same if few rows of the pool are visible.
WITH by_keyword AS MATERIALIZED ({keyword_{tier}_in_scope}), by_vector AS MATERIALIZED ({filtered_{tier}}), {beside_{tier}}
{evidence}

-- name: neighbours
-- The visible memories just before and just after some notes in their sessions, with the scores of their words unless
-- they are `known`.
WITH around AS MATERIALIZED ({around}) {words_of_new}
SELECT around.*, words.score AS keyword, NULL::float8 AS cosine FROM around LEFT JOIN words USING (number)

-- name: neighbours_near
-- The same, with the cosines of their nearest parts.
WITH around AS MATERIALIZED ({around}) {words_of_new}, {cosines}
SELECT around.*, words.score AS keyword, cosines.cosine
FROM around LEFT JOIN words USING (number) LEFT JOIN cosines USING (number)

-- name: within_memory
-- The latest memories that were said in a window, and those that refer to a part of it.
(SELECT m.id FROM {memory_seen} AS m
 WHERE m.said_at BETWEEN %(start)s AND %(end)s ORDER BY m.said_at DESC LIMIT %(limit)s)
UNION
(SELECT m.id FROM {memory_seen} AS m
 WHERE m.refers_from <= %(end)s AND coalesce(m.refers_to, m.refers_from) >= %(start)s
 ORDER BY m.refers_from DESC LIMIT %(limit)s)

-- name: within_passage
-- The latest passages of which a part was said in a window.
SELECT p.id FROM {passage_seen} AS p
WHERE p.said_to >= %(start)s AND p.said_from <= %(end)s ORDER BY p.said_to DESC LIMIT %(limit)s

-- name: near_pairs
-- Pairs of memories with at least a given cosine.
WITH asked AS MATERIALIZED (
    SELECT m.id, v.embedding
    FROM memories m JOIN {vectors} v ON v.tier = 'm' AND v.number = m.number AND v.part = 0
    WHERE m.id = ANY (%(ids)s)
)
SELECT one.id, other.id, (1 - (one.embedding <=> other.embedding))::float8
FROM asked AS one JOIN asked AS other ON one.id < other.id
WHERE one.embedding <=> other.embedding <= 1 - %(least)s::float8
