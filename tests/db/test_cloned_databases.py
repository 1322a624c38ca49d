"""The databases of tests are made and dropped whatever the servers of other tests do."""

from contextlib import closing

import psycopg

from esker.server.db.embedded import OWNER, Cluster
from tests.support.databases import cloned

LONG = b"SELECT repeat('x', 1000) FROM generate_series(1, 100000)"
UNREAD = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'ClientWrite'"


def test_a_database_is_made_and_dropped_beside_a_connection_that_does_not_read(cluster: Cluster) -> None:
    with (
        cloned(cluster) as name,
        psycopg.connect(cluster.url(OWNER, name), autocommit=True) as looking,
        closing(psycopg.connect(cluster.url(OWNER, name))) as stalled,
    ):
        stalled.pgconn.send_query(LONG)
        while not looking.execute(UNREAD).fetchall():
            pass
        with cloned(cluster) as other:
            assert looking.execute("SELECT FROM pg_database WHERE datname = %s", [other]).rowcount == 1
