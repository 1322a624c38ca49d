-- name: versions
-- The versions of Postgres and pgvector.
SELECT current_setting('server_version_num')::int / 10000 AS postgres,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector

-- name: serving
-- The last migration that was applied, the last one that a server must know to work with it, and whether nothing can be
-- written, as on a standby.
SELECT coalesce(max(version), 0) AS version, coalesce(max(needs), 0) AS needs,
       current_setting('transaction_read_only')::boolean AS read_only
FROM schema_migrations

-- name: role
-- The rights of the role that serves requests; all must be false.
SELECT current_user AS name, rolsuper AS superuser, rolbypassrls AS bypasses,
       EXISTS (SELECT FROM pg_class WHERE relowner = r.oid) AS owns
FROM pg_roles r WHERE rolname = current_user

-- name: unguarded
-- Tables with a pool_id on which row-level security is not forced.
SELECT c.relname AS name
FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'pool_id' AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
  AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY 1

-- name: failing_jobs
-- Jobs of the pool that failed, and whether they are dead.
SELECT kind, subject, last_error, state = 'dead' FROM jobs
WHERE last_error IS NOT NULL AND error_kind NOT IN ('SpendCapReached', 'PriceUnknown') ORDER BY state = 'dead' DESC, subject LIMIT 20

-- name: paused_jobs
-- Jobs of the pool that wait for the daily cap: kind of error, error and number.
SELECT error_kind, max(last_error), count(*) FROM jobs
WHERE state = 'ready' AND error_kind IN ('SpendCapReached', 'PriceUnknown') AND run_after > %(now)s
GROUP BY error_kind ORDER BY error_kind

-- name: dead_embeddings
-- Rows of the pool that cannot be embedded.
SELECT coalesce((SELECT id FROM memories m WHERE m.number = a.number), (SELECT id FROM passages p WHERE p.number = a.number)),
       a.last_error
FROM embedding_attempts a WHERE a.dead ORDER BY a.number LIMIT 20

-- name: overdue_embeddings
-- How many rows of the pool are overdue for embedding.
SELECT count(*) FROM embedding_attempts WHERE NOT dead AND not_before < %(moment)s

-- name: pool_counts
-- How much the pool holds, and how much work waits.
SELECT coalesce(live.by_kind, '{}') AS memories,
       -- All rows are counted in an index, and so are the live ones; the superseded ones would have to be read.
       (SELECT count(*) FROM memories) - coalesce(live.rows, 0) AS superseded,
       (SELECT count(*) FROM passages) AS passages,
       counted.sessions, counted.messages, counted.unobserved_tokens,
       (SELECT count(*) FROM jobs WHERE state <> 'dead') AS jobs,
       (SELECT count(*) FROM jobs WHERE state = 'dead') AS failed_jobs,
       counted.last_message_at,
       (SELECT max(created_at) FROM memories) AS last_memory_at
FROM (SELECT count(*) AS sessions, coalesce(sum(last_seq), 0)::bigint AS messages,
             coalesce(sum(unobserved_tokens), 0)::bigint AS unobserved_tokens, max(last_received_at) AS last_message_at
      FROM sessions) AS counted
CROSS JOIN (SELECT jsonb_object_agg(kind, rows) AS by_kind, sum(rows)::bigint AS rows
            FROM (SELECT kind, count(*) AS rows FROM memories WHERE superseded_at IS NULL GROUP BY kind) AS kinds) AS live

-- name: live_figures
-- How much work waits in the pool, and how many rows were written after a moment; the page asks for it again and again.
SELECT (SELECT coalesce(sum(unobserved_tokens), 0)::bigint FROM sessions WHERE unobserved_tokens > 0) AS unobserved_tokens,
       (SELECT count(*) FROM embedding_attempts WHERE NOT dead) AS pending,
       (SELECT count(*) FROM jobs WHERE state <> 'dead') AS jobs,
       (SELECT count(*) FROM jobs WHERE state = 'dead') AS failed_jobs,
       (SELECT count(*) FROM (SELECT FROM memories WHERE created_at > %(since)s LIMIT %(most)s) AS new) AS new_memories
