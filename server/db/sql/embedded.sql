-- name: database_exists
-- Tell whether a database is there.
SELECT 1 FROM pg_database WHERE datname = %(name)s

-- name: create_database
-- Make the database; `{name}` is filled in as a quoted identifier.
CREATE DATABASE {name}

-- name: let_app_role_in
-- The app role logs in by itself, so that a connection of the server never was anything else.
ALTER ROLE esker_app LOGIN
