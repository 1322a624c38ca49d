-- columns: memory_table
memories
-- columns: passage_table
passages
-- columns: memory_mark
'm'
-- columns: passage_mark
'p'

-- name: count_{tier}
-- How many texts a tier has.
SELECT count(*) FROM {{tier}_table}

-- name: count_messages
-- How many messages there are.
SELECT count(*) FROM messages

-- name: vectors_of_{tier}
-- Unit vectors around fifty directions for all texts of a tier. How they are spread changes no size.
INSERT INTO {vectors} (pool_id, tier, number, part, content_hash, embedding, created_at)
SELECT t.pool_id, {{tier}_mark}, t.number, 0, t.content_hash,
       (SELECT l2_normalize(array_agg(random_normal() + 2 * sin(i * (1 + mod(t.number, 50))))::halfvec)
        FROM generate_series(1, 384) AS i WHERE t.number IS NOT NULL), now()
FROM {{tier}_table} AS t

-- name: table_sizes
-- The rows of each large table, and the bytes of it and of its indexes.
SELECT relname, reltuples::bigint, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_total_relation_size(oid) > 1000000
ORDER BY pg_total_relation_size(oid) DESC

-- name: index_sizes
-- The bytes of each large index.
SELECT relname, pg_relation_size(oid) FROM pg_class
WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 1000000
ORDER BY pg_relation_size(oid) DESC

-- name: database_size
-- The bytes of the database.
SELECT pg_database_size(current_database())

-- name: written
-- The bytes of the log that were ever written.
SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn
