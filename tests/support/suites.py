"""Suites of evals run in this process, against servers that live here, too: nothing is started, no model is loaded."""

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.embedded import Cluster
from evals import suites
from evals.case_files import OWN
from evals.scoring.meaning import Meaning
from evals.serving import Server
from tests.support.databases import cloned
from tests.support.model_server import ModelServer, model_server
from tests.support.serving import serving


@contextmanager
def portal() -> Generator[BlockingPortal]:
    """Yield a loop in a thread of its own, in which servers answer while a suite waits for them."""
    with start_blocking_portal() as running:
        yield running


@contextmanager
def scripted_model(loop: BlockingPortal) -> Generator[ModelServer]:
    """Yield a model whose answers are scripted."""
    with loop.wrap_async_context_manager(model_server()) as model:
        yield model


def first_cases(folder: Path, suite: str, count: int) -> Path:
    """Write the first cases of a suite into a file of their own."""
    lines = (OWN / f"{suite}.jsonl").read_text(encoding="utf-8").splitlines()[:count]
    (folder / f"{suite}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / f"{suite}.jsonl"


@contextmanager
def server_here(loop: BlockingPortal, cluster: Cluster, **settings: str) -> Generator[Server]:
    """Yield a server of this process, with a database of its own and without an embedder."""
    with cloned(cluster) as name:
        read = Settings.from_environment({"ESKER_EMBEDDER": "none", **settings})
        parts = make_parts(read, Database(cluster.url(database=name)), system_clock)
        with loop.wrap_async_context_manager(serving(parts)) as listening, Server(listening) as server:
            yield server


def serve_here(loop: BlockingPortal, cluster: Cluster, meaning: Meaning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have suites use servers of this process, each with a database of its own and without an embedder."""

    def connected(url: str | None, key: str | None, **settings: str) -> AbstractContextManager[Server]:
        assert (url, key) == (None, None)
        return server_here(loop, cluster, **settings)

    monkeypatch.setattr(suites, "connected", connected)
    monkeypatch.setattr(suites, "Meaning", lambda: meaning)
