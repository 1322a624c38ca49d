"""The measured server: a child process with `esker serve` on a temporary data directory."""

import os
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from esker.server.app import make_parts
from esker.server.core.announcement import read_announcement
from esker.server.core.child_command import child_command
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, embedded
from esker.server.db.statements import Statements
from esker.server.usecases.authenticate import require_pool
from esker.server.usecases.parts import Parts

SQL = Statements(Path(__file__).parent / "sql/bench.sql")

MODEL = Settings().embedder
"""The default of ESKER_EMBEDDER on this system."""
WITHOUT_MODEL = {"ESKER_EMBEDDER": "none", "ESKER_WORKER": "false", "ESKER_LOG_LEVEL": "warning"}

_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class BenchServer:
    """A server (`client` talks to it) and its database, both for use cases (`parts`) and as its owner (`owner`).

    `pool_id` is the pool in which `client` works. `empty` talks to a server whose routes do nothing.
    """

    client: httpx2.AsyncClient
    empty: httpx2.AsyncClient
    parts: Parts
    owner: AsyncConnection[TupleRow]
    pool_id: str

    async def rows(self, statement: str, values: Mapping[str, Any] | None = None) -> list[TupleRow]:
        """Run one of our statements as the owner and return its rows."""
        cursor = await self.owner.execute(SQL[statement], values)
        return await cursor.fetchall() if cursor.description else []


def with_model(setting: str) -> Mapping[str, str]:
    """Return the settings of a server and worker that embed with the model of `setting`."""
    return {"ESKER_EMBEDDER": setting, "ESKER_LOG_LEVEL": "warning"}


async def ask(client: httpx2.AsyncClient, path: str, body: Any) -> httpx2.Response:
    """Return the answer to a request. Raises httpx2.HTTPStatusError for an error status."""
    return (await client.post(path, json=body)).raise_for_status()


@asynccontextmanager
async def started_server(environment: Mapping[str, str]) -> AsyncGenerator[BenchServer]:
    """Run a server, an empty one and their Postgres during the block; all their files are removed at the end.

    `environment` has the server's settings; it has its own worker, if it has a model.
    """
    with tempfile.TemporaryDirectory(prefix="esker-bench-", ignore_cleanup_errors=True) as name:
        directory = Path(name) / "data"
        serve = ["esker", "serve", "--port", "0", "--json", "--until-stdin-closes"]
        with (
            _process(environment, *serve, "--data-dir", str(directory)) as url,
            _process(environment, "esker.server.bench.empty_server") as empty_url,
            embedded(directory, "command") as cluster,
        ):
            parts = make_parts(Settings.from_environment(environment), Database(cluster.url()))
            owner_url = cluster.url(OWNER)
            async with (
                parts.database,
                await AsyncConnection.connect(owner_url, autocommit=True) as owner,
                httpx2.AsyncClient(base_url=url, timeout=_SECONDS) as client,
                httpx2.AsyncClient(base_url=empty_url, timeout=_SECONDS) as empty,
            ):
                yield BenchServer(client, empty, parts, owner, (await require_pool(parts, "default")).id)


@contextmanager
def _process(environment: Mapping[str, str], module: str, *arguments: str) -> Generator[str]:
    """Run a module that prints JSON with its `url` and ends when its input closes; yield the url."""
    command = child_command(module, *arguments)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ESKER_")}
    with subprocess.Popen(
        command, env={**kept, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None  # it is a pipe
            yield read_announcement(process.stdout)["url"]
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
