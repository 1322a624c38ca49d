-- name: tiers_to_change
-- Tiers of all pools that are large enough for an index and have none, or have one and are too small for it.
SELECT pool_id::text, space, tier::text, indexed FROM vector_tiers_to_change(%(large)s, %(small)s)

-- name: tiers_to_probe
-- The tiers whose index has not been compared with the exact search since a time.
SELECT pool_id::text, space, tier::text FROM vector_tiers_to_probe(%(since)s)

-- name: lowest_agreement
-- The lowest agreement of any index, in all pools.
SELECT lowest_agreement() AS lowest_agreement

-- name: allow_minutes
-- Raise the limits of this transaction for building an index, which waits for writers.
SELECT set_config('statement_timeout', '1h', true), set_config('lock_timeout', '1min', true)

-- name: count_vectors
-- How many vectors a tier has, counted up to a limit.
SELECT count(*) FROM (SELECT FROM {vectors} WHERE tier = %(tier)s LIMIT %(most)s) AS counted

-- name: create_index
-- Make the index of a tier; false if it exists, or if another one is being made.
SELECT create_vector_index(%(space)s, %(tier)s)

-- name: drop_index
-- Drop the index of a tier.
SELECT drop_vector_index(%(space)s, %(tier)s)

-- name: some_vectors
-- A sample of a tier's vectors, used as queries; the same seed gives the same sample.
SELECT number, embedding FROM {vectors}
WHERE tier = %(tier)s AND part = 0
ORDER BY md5(number::text || %(seed)s::text)
LIMIT %(limit)s

-- name: record_probe
-- Record how well an index agreed with the exact search.
INSERT INTO vector_probes (pool_id, space, tier, probed_at, questions, agreement)
SELECT current_pool(), %(space)s, %(tier)s, %(now)s, %(questions)s, %(agreement)s
ON CONFLICT (pool_id, space, tier) DO UPDATE
    SET probed_at = excluded.probed_at, questions = excluded.questions, agreement = excluded.agreement

-- name: probes
-- The last probes of the pool's indexes in the active space.
SELECT p.tier::text, p.probed_at, p.questions, p.agreement, vector_index(p.pool_id, p.space, p.tier)
FROM vector_probes p JOIN embedding_spaces s ON s.name = p.space AND s.state = 'active'
WHERE to_regclass(vector_index(p.pool_id, p.space, p.tier)) IS NOT NULL
ORDER BY p.tier
