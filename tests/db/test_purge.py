"""After a purge, forgotten words are in no file of the database."""

import secrets
import tempfile
from collections.abc import Generator
from pathlib import Path

import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.facts.forgetting import ForgetRequest, Selection
from esker.server.core.records import Principal
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster, embedded
from esker.server.db.postmaster import former_log
from esker.server.db.purge import purge
from esker.server.usecases.authenticate import SCOPES, require_pool
from esker.server.usecases.forget import forget
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, remember
from tests.support.databases import dump
from tests.support.made import FAST, made_at, shared_folder


@pytest.fixture
def own_cluster() -> Generator[Cluster]:
    """A Postgres of this test alone, whose files can be searched."""
    with (
        tempfile.TemporaryDirectory(prefix="esker-purge-", dir=shared_folder()) as directory,
        embedded(Path(made_at(Path(directory, "d"))), "serve", settings=FAST) as running,
    ):
        yield running


def files_with(directory: Path, word: str) -> list[str]:
    """Return the files below a directory that contain a word in any of the cases in which it was written."""
    forms = {form.encode() for form in (word, word.lower(), word.capitalize())}
    return [
        path.name
        for path in directory.rglob("*")
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


async def test_a_purged_word_is_in_no_dump_and_in_no_file(own_cluster: Cluster, settings: Settings) -> None:
    word = f"Q{secrets.token_hex(8)}"
    async with Database(own_cluster.url()) as database:
        parts = make_parts(settings, database)
        pool = await require_pool(parts, "default")
        who = Principal(pool.id, pool.name, "test", frozenset(SCOPES))
        session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
        told = [IncomingMessage(f"m{n}", "user", f"Part {n}: the vault is called {word}.") for n in range(40)]
        await ingest(parts, who.pool_id, session.id, told)
        await remember(parts, who, [Note(f"The {n}th name of the vault is {word}.") for n in range(40)])
        await get_pack(parts, who.pool_id, session.id)
        with psycopg.connect(own_cluster.url(OWNER), autocommit=True) as connection:
            connection.execute("ANALYZE")
        receipt = await forget(parts, who, ForgetRequest(Selection(words=[word])))
        assert (receipt.memories, receipt.messages, receipt.left) == (40, 40, {})
        assert files_with(own_cluster.directory, word)
        former_log(own_cluster.directory / "log").write_text(f"An older error quotes {word}.")
        purged = purge(own_cluster.url(OWNER), own_cluster.directory / "log")
        assert purged.wal_files
        assert files_with(own_cluster.directory, word) == []
        assert word.lower() not in dump(own_cluster.url(OWNER)).lower()
        kept = await remember(parts, who, [Note("The cellar is dry.")])
        assert [hit.id for hit in (await recall(parts, who.pool_id, RecallRequest("dry cellar"))).hits] == kept


def test_the_log_is_recycled_again_after_a_purge(own_cluster: Cluster) -> None:
    purge(own_cluster.url(OWNER), None)
    with psycopg.connect(own_cluster.url(OWNER)) as connection:
        assert connection.execute("SELECT setting FROM pg_file_settings WHERE name = 'wal_recycle'").fetchall() == []


def test_a_login_that_may_not_see_the_log_rewrites_its_tables_alone(own_cluster: Cluster) -> None:
    with psycopg.connect(own_cluster.url(OWNER), autocommit=True) as connection:
        connection.execute(
            "CREATE ROLE plain LOGIN; CREATE TABLE own_table (x text); ALTER TABLE own_table OWNER TO plain"
        )
    purged = purge(own_cluster.url("plain"), None)
    assert (purged.tables, purged.wal_files) == (1, None)
