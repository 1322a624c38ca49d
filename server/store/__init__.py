"""SQL verbs: each takes a connection inside a pool and returns core records; statements are in `sql/*.sql`."""
