-- name: containing
-- The values of a column that may contain some words; `{table}` and `{column}` are filled in as quoted identifiers.
SELECT {column} FROM {table} WHERE {column}::text ILIKE ANY (%(patterns)s)

-- name: all
-- Every value of a column; `{table}` and `{column}` are filled in as quoted identifiers.
SELECT {column} FROM {table} WHERE {column} IS NOT NULL

-- name: keyed
-- Every value of a column with the key of its row, as an array; `{key}` is filled in like the others.
SELECT jsonb_build_array({key}), {column} FROM {table} WHERE {column} IS NOT NULL

-- name: replace_text
-- Replace texts of a column, by the keys of their rows; each new value is the only item of an array.
UPDATE {table} SET {column} = new.it ->> 0
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (row_key jsonb, it jsonb)
WHERE jsonb_build_array({key}) = new.row_key

-- name: replace_list
-- Replace lists of texts of a column in the same way.
UPDATE {table} SET {column} = ARRAY (SELECT jsonb_array_elements_text(new.it -> 0))
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (row_key jsonb, it jsonb)
WHERE jsonb_build_array({key}) = new.row_key

-- name: replace_json
-- Replace JSON values of a column in the same way.
UPDATE {table} SET {column} = new.it -> 0
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (row_key jsonb, it jsonb)
WHERE jsonb_build_array({key}) = new.row_key

-- name: distinct
-- The different values of a column that may contain some words.
SELECT DISTINCT {column} FROM {table} WHERE {column} ILIKE ANY (%(patterns)s)

-- name: rename
-- Give values of a column other names. The caller has locked the rows.
UPDATE {table} AS t SET {column} = new.name
FROM unnest(%(old)s::text[], %(new)s::text[]) AS new (old, name) WHERE t.{column} = new.old
