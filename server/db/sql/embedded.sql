-- name: database_exists
-- Whether a database exists.
SELECT 1 FROM pg_database WHERE datname = %(name)s

-- name: create_database
-- Make the database; `{name}` is filled in as a quoted identifier.
CREATE DATABASE {name}

-- name: let_app_role_in
-- Let the app role log in, so that a connection of the server never has another role.
ALTER ROLE esker_app LOGIN

-- name: checkpoint
-- Write all pages that are in memory alone, so that the server can stop quickly.
CHECKPOINT
