"""Backups: one file with everything, which a restore checks before it takes the place of what is stored."""

import asyncio
import json
import stat
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from pathlib import Path

import httpx2
import psycopg
import pytest

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Conflict, Misconfigured, Unavailable
from esker.server.db import dumps, restoring
from esker.server.db.backup_folder import BackupFolder
from esker.server.db.database import Database
from esker.server.db.embedded import OWNER, Cluster
from esker.server.db.migrate import migrate
from tests.support.api import opened, said
from tests.support.databases import cloned, contents
from tests.support.invariants import broken
from tests.support.made import made_at
from tests.support.pool_files import fill
from tests.support.processes import esker
from tests.support.reflecting import scripted


@pytest.fixture(scope="module")
async def filled(cluster: Cluster) -> AsyncGenerator[str]:
    """The name of a database whose pool has some of everything, without a server."""
    with cloned(cluster) as name:
        async with scripted(cluster.url(database=name)) as (client, model):
            await fill(client, model)
        yield name


@pytest.fixture
def empty(cluster: Cluster) -> Generator[str]:
    """An empty database, as its owner."""
    with cloned(cluster, template="template1") as name:
        yield cluster.url(OWNER, name)


def _restore(path: Path, url: str, *options: str) -> dict[str, object]:
    done = esker("restore", str(path), "--json", *options, ESKER_DATABASE_URL=url)
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


def test_a_restore_into_an_empty_database_gives_back_everything(
    cluster: Cluster, filled: str, empty: str, tmp_path: Path
) -> None:
    url = cluster.url(OWNER, filled)
    done = esker("backup", str(tmp_path), "--json", ESKER_DATABASE_URL=url)
    path = Path(json.loads(done.stdout)["path"])
    assert (path.parent, stat.S_IMODE(path.stat().st_mode), path.stat().st_size) == (
        tmp_path,
        0o600,
        json.loads(done.stdout)["bytes"],
    )
    report = _restore(path, empty)
    assert report["migrations"] == []
    assert contents(empty) == contents(url)


def test_an_embedded_database_is_restored_into_an_empty_directory(tmp_path: Path) -> None:
    first, second = {"ESKER_DATA_DIR": made_at(tmp_path / "a")}, {"ESKER_DATA_DIR": str(tmp_path / "b")}
    key = json.loads(esker("key", "create", "laptop", "--json", **first).stdout)["id"]
    path = tmp_path / "file.dump"
    assert esker("backup", str(path), **first).returncode == 0
    again = esker("backup", str(path), **first)
    assert (again.returncode, "--replace" in again.stderr) == (1, True)
    assert esker("restore", str(path), **second).returncode == 0
    assert [one["id"] for one in json.loads(esker("key", "list", "--json", **second).stdout)] == [key]
    assert json.loads(esker("migrate", "--json", **second).stdout) == {"applied": []}


async def test_what_was_decided_since_the_backup_outlives_a_restore(cluster: Cluster, tmp_path: Path) -> None:
    """Forgotten rows, words, messages and sessions, revoked keys, and versions of packs."""
    with cloned(cluster) as name:
        url, path = cluster.url(OWNER, name), tmp_path / "file.dump"
        async with scripted(cluster.url(database=name)) as (client, _):
            kept = await _told(client)
            _key(url)
            await asyncio.to_thread(dumps.dump, url, path, lambda done, total: None)
            before = await _decided(client, kept)
            with psycopg.connect(url) as connection:
                connection.execute("UPDATE api_keys SET revoked_at = now()")
        report = await asyncio.to_thread(_restore, path, url, "--replace")
        text = "\n".join(contents(url)).lower()
        assert [word for word in ("zebra", "walrus", "otter", "heron") if word in text] == []
        assert "rhine" in text
        [again] = report["forgotten"].values()  # type: ignore[attr-defined]
        assert again["left"] == {}
        assert (again["memories"] > 0, again["messages"] > 0) == (True, True)
        with psycopg.connect(url) as connection:
            revoked = connection.execute("SELECT name FROM api_keys WHERE revoked_at IS NOT NULL").fetchall()
            version = connection.execute("SELECT pack_version FROM sessions WHERE id = %s", [kept["session"]])
            assert (revoked, version.fetchone()) == ([("lost",)], (before,))
        async with Database(cluster.url(database=name)) as database:
            assert await broken(make_parts(Settings.from_environment({"ESKER_EMBEDDER": "none"}), database)) == []


def _key(url: str) -> None:
    """Make a key that the pool does not require yet."""
    with psycopg.connect(url) as connection:
        connection.execute("SET LOCAL session_replication_role = replica")
        connection.execute(
            "INSERT INTO api_keys (pool_id, id, name, prefix, key_hash, scopes, created_at)"
            " SELECT id, 'key_1', 'lost', 'esk_', sha256('x'), '{read}', now() FROM pools"
        )


async def _told(client: httpx2.AsyncClient) -> dict[str, str]:
    """Fill a pool with what stays and with what will be forgotten; return ids by name."""
    session = await opened(client, "stays")
    lines = ("Our river is the Rhine.", "The walrus is in the harbour.", "Bring the boat.")
    await said(client, session, *(_message(n, text) for n, text in enumerate(lines)))
    gone = await opened(client, "goes", cwd="/home/me/heron")
    await said(client, gone, _message(0, "The heron stands in the pond."))
    zebra = (await client.post("/v1/memories", json={"content": "The zebra lives in the cellar."})).json()["id"]
    await client.post("/v1/memories", json={"content": "The bridge over the Rhine is closed."})
    otter = (await client.post("/v1/memories", json={"content": "Otters live in the mill of the Rhine."})).json()["id"]
    await client.get(f"/v1/sessions/{session}/pack")
    return {"session": session, "gone": gone, "zebra": zebra, "otter": otter}


def _message(number: int, text: str) -> dict[str, str]:
    return {"external_id": f"m{number}", "role": "user", "content": text}


async def _decided(client: httpx2.AsyncClient, ids: dict[str, str]) -> int:
    """Forget some of it; return the version of the last pack."""
    await client.post("/v1/forget", json={"ids": [ids["zebra"], ids["otter"]]})
    await client.post("/v1/forget", json={"words": ["walrus"]})
    await client.post("/v1/forget", json={"words": ["heron"], "session_id": ids["gone"]})
    pack = (await client.get(f"/v1/sessions/{ids['session']}/pack")).json()
    return int(pack["version"])


def test_nothing_is_replaced_without_being_told_or_while_it_is_in_use(
    cluster: Cluster, filled: str, tmp_path: Path
) -> None:
    with cloned(cluster, filled) as name:
        url, path = cluster.url(OWNER, name), tmp_path / "file.dump"
        dumps.dump(url, path, lambda done, total: None)
        before = contents(url)
        refused = esker("restore", str(path), ESKER_DATABASE_URL=url)
        assert (refused.returncode, "--replace" in refused.stderr) == (1, True)
        with psycopg.connect(url), pytest.raises(Conflict, match="in use by 1 other"):
            restoring.require_replaceable(url, replace=True)
        assert contents(url) == before


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign"])
def test_a_damaged_backup_changes_nothing(cluster: Cluster, filled: str, tmp_path: Path, damage: str) -> None:
    with cloned(cluster, filled) as name:
        url, path = cluster.url(OWNER, name), tmp_path / "file.dump"
        dumps.dump(url, path, lambda done, total: None)
        whole = path.read_bytes()
        middle = len(whole) * 3 // 4
        damaged = {
            "cut": whole[:middle],
            "changed": whole[:middle] + bytes(999) + whole[middle + 999 :],
            "foreign": b"x",
        }
        path.write_bytes(damaged[damage])
        before = contents(url)
        refused = esker("restore", str(path), "--replace", ESKER_DATABASE_URL=url)
        assert (refused.returncode, str(path) in refused.stderr.replace("\n", "")) == (1, True)
        assert contents(url) == before
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT FROM pg_database WHERE datname ~ 'restoring'").fetchall() == []
        assert esker("restore", str(path), "--data-dir", str(tmp_path / "new")).returncode == 1
        assert not (tmp_path / "new").exists(), "a file is checked before a database is made for it"


def test_a_backup_that_breaks_an_invariant_is_not_put_in_place(cluster: Cluster, filled: str, tmp_path: Path) -> None:
    path = tmp_path / "file.dump"
    with cloned(cluster, filled) as name:
        url = cluster.url(OWNER, name)
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE packs SET text = text || 'x'")
        dumps.dump(url, path, lambda done, total: None)
    with cloned(cluster, filled) as name:
        url = cluster.url(OWNER, name)
        before = contents(url)
        refused = esker("restore", str(path), "--replace", ESKER_DATABASE_URL=url)
        assert (refused.returncode, "not the bytes that were frozen" in refused.stderr) == (1, True)
        assert contents(url) == before
        _restore(path, url, "--replace", "--despite-violations")
        assert contents(url) != before


def test_a_restore_that_was_killed_between_its_renamings_is_finished(cluster: Cluster, filled: str) -> None:
    admin = cluster.url(OWNER, "postgres")
    with cloned(cluster, filled) as name:
        url = cluster.url(OWNER, name)
        assert not restoring.finish(url, admin)
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} RENAME TO {name}_replaced")  # type: ignore[arg-type]
            connection.execute(f"CREATE DATABASE {name}_restoring TEMPLATE {name}_replaced")  # type: ignore[arg-type]
        assert restoring.finish(url, admin)
        assert restoring.exists(admin, name)
        assert not restoring.exists(admin, f"{name}_replaced")


def test_a_restore_that_loses_its_connection_blames_no_backup_and_can_be_repeated(
    cluster: Cluster, filled: str, empty: str, tmp_path: Path
) -> None:
    path = tmp_path / "file.dump"
    dumps.dump(cluster.url(OWNER, filled), path, lambda done, total: None)

    def cut(done: int, total: int) -> None:
        with psycopg.connect(empty, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )

    with pytest.raises(Unavailable, match="connection to the database was lost") as refused:
        restoring.play(path, empty, cut)
    assert "Run the same command again" in (refused.value.hint or "")
    assert restoring.is_free(empty)
    restoring.play(path, empty, lambda done, total: None)


def test_a_folder_gets_one_backup_at_a_time_and_keeps_as_many_as_asked_for(
    cluster: Cluster, filled: str, tmp_path: Path
) -> None:
    url = cluster.url(OWNER, filled)
    for day in (1, 2, 3):
        (tmp_path / f"esker-2026010{day}T000000Z.dump").touch()
    with BackupFolder(tmp_path, timedelta(0), 1).held():
        refused = esker("backup", str(tmp_path), ESKER_DATABASE_URL=url)
    assert (refused.returncode, "Another backup is being written" in refused.stderr) == (1, True)
    done = esker("backup", str(tmp_path), "--keep", "2", "--json", ESKER_DATABASE_URL=url)
    assert [Path(path).name[:14] for path in json.loads(done.stdout)["deleted"]] == ["esker-20260101", "esker-20260102"]
    assert Path(json.loads(done.stdout)["path"]).is_file()
    assert len(list(tmp_path.glob("*.dump"))) == 2


def test_only_a_login_that_sees_everything_makes_a_backup(cluster: Cluster, empty: str, tmp_path: Path) -> None:
    """A backup under row-level security would be empty; a managed Postgres gives no superuser."""
    name = empty.split("/")[-1].split("?")[0]
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE EXTENSION btree_gist")
        connection.execute(
            "DO $$ BEGIN CREATE ROLE plain LOGIN CREATEROLE; EXCEPTION WHEN duplicate_object THEN END $$"
        )
        connection.execute("GRANT esker_app, esker_project TO plain WITH ADMIN TRUE, SET TRUE")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO plain")  # type: ignore[arg-type]
        connection.execute("GRANT ALL ON SCHEMA public TO plain WITH GRANT OPTION")
    url, path = cluster.url("plain", name), tmp_path / "file.dump"
    migrate(url)
    with psycopg.connect(empty) as connection:
        connection.execute(
            "INSERT INTO sessions (pool_id, id, client, external_id, timezone, effective_context, created_at, begun_at)"
            " SELECT id, 'ses_1', 'api', 's', 'UTC', 200000, now(), now() FROM pools"
        )
    with pytest.raises(Misconfigured, match="does not own"):
        dumps.dump(cluster.url(database=name), path, lambda done, total: None)
    assert list(tmp_path.iterdir()) == []
    dumps.dump(url, path, lambda done, total: None)
    with psycopg.connect(empty) as connection:
        connection.execute("CREATE SCHEMA foreign_one CREATE TABLE closed (a int)")
    whole = path.read_bytes()
    with pytest.raises(Unavailable, match="pg_dump failed"):
        dumps.dump(url, path, lambda done, total: None)
    assert [(file.name, file.read_bytes() == whole) for file in tmp_path.iterdir()] == [(path.name, True)]
    with cloned(cluster, template="template1") as other:
        restoring.play(path, cluster.url(OWNER, other), lambda done, total: None)
        with psycopg.connect(cluster.url(OWNER, other)) as connection:
            assert connection.execute("SELECT id FROM sessions").fetchall() == [("ses_1",)]
            policies = connection.execute(
                "SELECT DISTINCT roles FROM pg_policies WHERE policyname = 'owner'"
            ).fetchall()
            assert policies == [(["esker"],)]
