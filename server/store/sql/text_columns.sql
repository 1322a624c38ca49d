-- name: containing
-- The values of a column that may contain some words; `{table}` and `{column}` are filled in as quoted identifiers.
SELECT {column} FROM {table} WHERE {column}::text ILIKE ANY (%(patterns)s)

-- name: next
-- The next values of a column with the keys of their rows, in the order of these, up to a number of rows and a number
-- of stored bytes. `{key}` and `{is_next}` are filled in like the others.
SELECT jsonb_build_array({key}), value FROM (
    SELECT {key}, {column} AS value, sum(pg_column_size({column})) OVER (ORDER BY {key} ROWS UNBOUNDED PRECEDING)
                                     - pg_column_size({column}) AS bytes_before
    FROM {table} WHERE {column} IS NOT NULL AND {is_next} ORDER BY {key} LIMIT %(rows)s
) AS batch WHERE bytes_before < %(bytes)s ORDER BY {key}

-- name: lock
-- Lock rows in the order of their keys, so that two transactions that write them wait for each other instead of
-- deadlocking.
SELECT FROM {table} AS held JOIN (
    SELECT {key} FROM jsonb_populate_recordset(NULL::{table}, %(old)s::jsonb)
) AS old USING ({key}) ORDER BY {key} FOR NO KEY UPDATE OF held

-- name: replace
-- Replace values of a column that are still the same as when they were read; both lists are in the same order.
UPDATE {table} AS t SET {column} = new.{column}
FROM ROWS FROM (jsonb_array_elements(%(old)s::jsonb), jsonb_array_elements(%(new)s::jsonb)) AS pair (was, becomes),
     jsonb_populate_record(NULL::{table}, was) AS old, jsonb_populate_record(NULL::{table}, becomes) AS new
WHERE ({key_of_t}) = ({key_of_old}) AND t.{column} IS NOT DISTINCT FROM old.{column}

-- name: distinct
-- The different values of a column that may contain some words.
SELECT DISTINCT {column} FROM {table} WHERE {column} ILIKE ANY (%(patterns)s)

-- name: rename
-- Give values of a column other names, in all rows that have them.
UPDATE {table} AS t SET {column} = new.name
FROM unnest(%(old)s::text[], %(new)s::text[]) AS new (old, name) WHERE t.{column} = new.old

-- name: make_way
-- Give another name to rows that have one of the new names already, if a row beside them, with the same key, gets it.
UPDATE {table} AS t SET {column} = t.{column} || '-' || left(gen_random_uuid()::text, 8)
WHERE ({key_of_t}, t.{column}) IN (
    SELECT {key}, new.name FROM {table}
    JOIN unnest(%(old)s::text[], %(new)s::text[]) AS new (old, name) ON {column} = new.old
)

-- name: bound_clients
-- The clients to which keys are bound.
SELECT DISTINCT client FROM api_keys WHERE client IS NOT NULL
