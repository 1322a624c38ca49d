"""The listening socket and the database of `esker serve`.

This module imports nothing of the server itself, which takes most of the start: the database starts meanwhile.
"""

import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from esker.server.core.config.local_token import own_token
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import Misconfigured
from esker.server.core.stop_signals import stop_signals
from esker.server.db.data_dir import explained, holder
from esker.server.db.embedded import Cluster, embedded, prepare
from esker.server.db.migrate import pending


@dataclass(frozen=True, slots=True)
class ServerResources:
    """The listening socket and the database of a server; `cluster` is the embedded Postgres, if it is used.

    `local_token` is in the data directory, which a server on an outside database does not have.
    """

    settings: Settings
    listener: socket.socket
    url: str
    database_url: str
    cluster: Cluster | None
    local_token: str | None = None


@contextmanager
def listening(settings: Settings) -> Generator[socket.socket]:
    """Yield a listening socket. Raises Misconfigured when the address is in use or not an address of this machine."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Only with the protocol named does asyncio switch off Nagle's delay (40 ms) for accepted connections.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            _raise_cannot_listen(settings, error)
        except (TypeError, ValueError) as error:  # the name cannot be encoded
            raise Misconfigured(
                f"{settings.host!r} is not the address of a machine.", hint="Set ESKER_HOST, or --host, to 127.0.0.1."
            ) from error
        listener.listen(1024)
        yield listener


def _raise_cannot_listen(settings: Settings, error: OSError) -> NoReturn:
    other = None if settings.database_url else holder(settings.data_dir)
    if other and other.role == "serve":
        raise Misconfigured(
            f"Esker already runs on {settings.data_dir} (process {other.pid} at {other.url}).",
            hint="Use that one, stop it, or give this one its own --data-dir and --port.",
        )
    raise Misconfigured(
        f"Esker cannot listen on {settings.host} port {settings.port}: {error.strerror}.",
        hint="Choose another with --port or ESKER_PORT.",
    )


@contextmanager
def server_resources(settings: Settings, listener: socket.socket) -> Generator[ServerResources]:
    """Yield a server's resources; the database has the current schema, an embedded one until the block ends."""
    host, port = listener.getsockname()[:2]
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if settings.database_url:
        database_url = settings.database_url.get_secret_value()
        _require_schema(settings.direct_database or database_url)
        yield ServerResources(settings, listener, url, database_url, None)
        return
    with embedded(settings.data_dir, "serve", url=url, archive_dir=settings.archive_dir) as cluster:
        prepare(cluster)
        with explained(settings.data_dir):
            token = own_token(settings.data_dir)
        try:
            yield ServerResources(settings, listener, url, cluster.url(), cluster, token)
        finally:
            # A second Ctrl-C must not prevent Postgres from being stopped.
            for number in stop_signals():
                signal.signal(number, signal.SIG_IGN)


def _require_schema(database_url: str) -> None:
    if missing := pending(database_url):
        raise Misconfigured(
            f"The database lacks {counted(len(missing), 'migration')}, beginning with {missing[0].version:04d}.",
            hint="Run `esker migrate`.",
        )
