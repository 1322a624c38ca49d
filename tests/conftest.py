"""Fixtures: a real Postgres, an empty database for each test, an app on a real socket, the real embedding model."""

import gc
import logging
import os
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import httpx2
import hypothesis
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.records import Principal
from esker.server.db.database import Database
from esker.server.db.embedded import Cluster, embedded
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.usecases.authenticate import SCOPES, require_pool
from esker.server.usecases.parts import Parts
from evals.scoring.meaning import Meaning
from tests.support.bundled_model import BundledModel
from tests.support.clock import FakeClock
from tests.support.forked_run import ForkedRun
from tests.support.forks import fork_children, parent_of_commands
from tests.support.kept_servers import KeptDatabase, KeptServer, KeptServers
from tests.support.logs import kept_log, kept_records
from tests.support.made import FAST, begin_run, beside, end_run, first_database, made_at, shared_folder
from tests.support.model_server import ModelServer, model_server
from tests.support.properties import draw_once
from tests.support.waiting import PATIENCE

_COLLECTED_TOGETHER = 20_000
"""New objects after which the garbage collector looks at them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of these tests."""
    parser.addoption("--data", default="../shared/data", help="Where other people's data sets are.")
    parser.getgroup("general")._addoption("-n", dest="processes", type=int, default=1, help="Processes that run tests.")
    parser.addoption("--full", action="store_true", help="Run the fault loops at full length.")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Set how many examples a property has that does not say, and prepare what the processes of a run share."""
    hypothesis.settings.load_profile("full" if config.getoption("--full") else "short")
    begin_run()
    fork_children(parent_of_commands)
    # A copy of a database is some 1,500 files, which a disk takes several times as long for as memory.
    config.option.basetemp = config.option.basetemp or str(shared_folder() / "t")
    if config.option.processes > 1:
        config.pluginmanager.register(ForkedRun(config, config.option.processes))
        if config.args_source is config.ArgsSource.TESTPATHS:
            # One core would have nothing to do while the tests are collected.
            beside(parent_of_commands, draw_once, first_database)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the collector the modules and tests, which live until the end: it would walk them again and again.

    Afterwards it looks at the objects of tests less often, which costs memory that a test process has.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(_COLLECTED_TOGETHER)
        gc.enable()


def pytest_unconfigure() -> None:
    """Remove what the processes of the run shared."""
    end_run()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what takes long to the full run, and end with short files, so that no process is left with a long one."""
    if not config.getoption("--full"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="--full runs it"))
    items.sort(key=lambda item: item.path.parent.name == "unit")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests of interleavings their seeds."""
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(500 if metafunc.config.getoption("--full") else 5))


# Nothing here speaks TLS, but each client would read all certificates of the system. A directory is read when needed.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = "/nowhere"

# How long an example takes depends on what else the machine does; benchmarks measure speed.
hypothesis.settings.register_profile("short", deadline=None, max_examples=40)
hypothesis.settings.register_profile("full", deadline=None, max_examples=300)

# Without autovacuum, what the planner knows of a table does not depend on when a test runs.
SETTINGS = {**FAST, "autovacuum": "off", "max_connections": "200"}


@pytest.fixture(scope="session")
def cluster() -> Generator[Cluster]:
    """A Postgres for this test process, with a migrated database to clone."""
    with (
        tempfile.TemporaryDirectory(prefix="esker-test-", dir=shared_folder()) as directory,
        embedded(Path(made_at(Path(directory, "d"))), "serve", settings=SETTINGS) as running,
    ):
        yield running


@pytest.fixture(scope="session")
async def kept_servers(cluster: Cluster) -> AsyncGenerator[KeptServers]:
    """The servers of this test process, started on first use."""
    servers = KeptServers(cluster)
    yield servers
    await servers.close()


@pytest.fixture
async def database_alone(kept_servers: KeptServers) -> KeptDatabase:
    """An empty database without a server."""
    return await kept_servers.alone()


@pytest.fixture
async def new_database(cluster: Cluster) -> AsyncGenerator[KeptDatabase]:
    """A database of this test alone, for tests that depend on the sizes of its files."""
    database = await KeptDatabase.made(cluster)
    yield database
    await database.stack.aclose()


@pytest.fixture
def kept_database(request: pytest.FixtureRequest) -> KeptDatabase:
    """An empty database: that of the test's server, if it uses one."""
    if servers := [name for name in ("kept_server", "scripted_server") if name in request.fixturenames]:
        return request.getfixturevalue(servers[0]).database
    return request.getfixturevalue("database_alone")


@pytest.fixture
def database_url(kept_database: KeptDatabase) -> str:
    """The test's database, as the app role sees it."""
    return kept_database.url


@pytest.fixture
def owner_url(cluster: Cluster, database_url: str) -> str:
    """The same database as its owner sees it."""
    return database_url.replace("esker_app@", "esker@")


@pytest.fixture
def clock() -> FakeClock:
    """A clock that moves when told to."""
    return FakeClock()


@pytest.fixture
def settings() -> Settings:
    """The defaults, without an embedder."""
    return Settings.from_environment({"ESKER_EMBEDDER": "none"})


@pytest.fixture
def database(kept_database: KeptDatabase) -> Database:
    """The test's database, open."""
    return kept_database.open


@pytest.fixture
async def parts(database: Database, clock: FakeClock, settings: Settings) -> AsyncGenerator[Parts]:
    """The parts of a server whose database is open: extractive observer and reflector, no embedder."""
    made = make_parts(settings, database, clock)
    yield made
    await made.processes.close()


@pytest.fixture
async def who(parts: Parts) -> Principal:
    """A principal with all scopes in the default pool."""
    pool = await require_pool(parts, "default")
    return Principal(pool.id, pool.name, "test", frozenset(SCOPES))


@pytest.fixture
async def pool_id(who: Principal) -> str:
    """The id of the default pool."""
    return who.pool_id


@pytest.fixture
async def kept_server(kept_servers: KeptServers) -> KeptServer:
    """A server on a real socket with an empty database, the system's clock and its own job runner."""
    return await kept_servers.get({"ESKER_EMBEDDER": "none"})


@pytest.fixture
async def client(kept_server: KeptServer) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of the server."""
    async with httpx2.AsyncClient(base_url=kept_server.url, timeout=PATIENCE) as connected:
        yield connected


@pytest.fixture(scope="session")
async def kept_model() -> AsyncGenerator[ModelServer]:
    """The scripted model of this test process."""
    async with model_server() as model:
        yield model


@pytest.fixture
def model(kept_model: ModelServer) -> ModelServer:
    """A scripted model that was asked nothing yet."""
    kept_model.forget()
    return kept_model


@pytest.fixture
async def scripted_server(kept_servers: KeptServers, model: ModelServer) -> KeptServer:
    """A server like `kept_server` that asks the scripted model."""
    server = await kept_servers.get(model.environment())
    # A server that still ran a job of the last test may have asked until now.
    model.forget()
    return server


@pytest.fixture
async def scripted_client(scripted_server: KeptServer) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client of the server with the scripted model."""
    async with httpx2.AsyncClient(base_url=scripted_server.url, timeout=PATIENCE) as connected:
        yield connected


@pytest.fixture(scope="session")
def minilm() -> LocalEmbedder:
    """The bundled embedding model; loaded on first use, kept for the session."""
    return BundledModel()


@pytest.fixture(scope="session")
def loads_library() -> None:
    """Mark tests that load the library of embedding models in another way."""


@pytest.fixture(scope="session")
def meaning() -> Meaning:
    """The bundled model, as scorers ask it."""
    return Meaning(threads=1)


@pytest.fixture(scope="session")
def transcripts(request: pytest.FixtureRequest) -> Path:
    """Other people's transcripts; tests of them are skipped where they are not there."""
    folder = Path(str(request.config.getoption("--data"))) / "transcripts"
    if not folder.is_dir():
        pytest.skip(f"there are no transcripts in {folder}")
    return folder


@pytest.fixture
def logged() -> Generator[list[str]]:
    """Everything that is logged at debug level, formatted with its traceback."""
    with kept_log() as lines:
        yield lines


@pytest.fixture
def log_records() -> Generator[list[logging.LogRecord]]:
    """Every record that is logged at its logger's usual level."""
    with kept_records() as records:
        yield records
