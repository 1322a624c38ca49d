"""Connections, tenancy, statements, migrations, and the embedded Postgres."""
