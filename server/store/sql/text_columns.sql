-- name: containing
-- The values of a column that may contain some words; `{table}` and `{column}` are filled in as quoted identifiers.
SELECT {column} FROM {table} WHERE {column}::text ILIKE ANY (%(patterns)s)

-- name: all
-- Every value of a column; `{table}` and `{column}` are filled in as quoted identifiers.
SELECT {column} FROM {table} WHERE {column} IS NOT NULL
