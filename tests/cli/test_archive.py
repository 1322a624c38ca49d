"""Any moment of an archived database can be restored, and the archive keeps no more than it needs."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from esker.server.cli.backing_up import make_base
from esker.server.core.errors import NotFound
from esker.server.db.archive import Archive, base_time, flush, is_archiving, latest_base
from esker.server.db.embedded import OWNER, embedded
from tests.support.made import made_at
from tests.support.processes import esker

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def _archived(data_dir: Path, archive_dir: Path) -> str:
    """Archive a database with a pool before a moment and one after it, and return that moment."""
    with embedded(data_dir, "serve", archive_dir=archive_dir) as cluster:
        assert cluster.archive is not None
        make_base(cluster.archive, cluster.url(OWNER), 1)
        with psycopg.connect(cluster.url(OWNER), autocommit=True) as connection:
            connection.execute("INSERT INTO pools (name) VALUES ('before')")
            row = connection.execute("SELECT clock_timestamp()").fetchone()
            connection.execute("INSERT INTO pools (name) VALUES ('after')")
    assert row is not None
    return row[0].isoformat()


def test_a_moment_between_two_writes_is_restored(tmp_path: Path) -> None:
    """The folder's name has characters that a shell and Postgres's settings interpret."""
    data_dir, archive_dir = Path(made_at(tmp_path / "d")), tmp_path / "it's %f"
    moment = _archived(data_dir, archive_dir)
    done = esker("restore", "--at", moment, "--replace", "--json", ESKER_DATA_DIR=str(data_dir))
    assert done.returncode == 0, done.stdout
    assert _pools(data_dir) == {"default", "before"}
    assert not (data_dir / "recovering").exists()


@pytest.mark.slow
def test_an_archive_is_restored_into_an_empty_directory(tmp_path: Path) -> None:
    data_dir, archive_dir = Path(made_at(tmp_path / "d")), tmp_path / "a"
    moment = _archived(data_dir, archive_dir)
    # A command that starts Postgres itself archives, too.
    assert esker("pool", "create", "last", ESKER_DATA_DIR=str(data_dir)).returncode == 0
    there = {"ESKER_DATA_DIR": str(tmp_path / "e")}
    for at, pools in ((moment, {"default", "before"}), ("latest", {"default", "before", "after", "last"})):
        done = esker("restore", str(archive_dir), "--at", at, "--replace", **there)
        assert (done.returncode, _pools(tmp_path / "e")) == (0, pools), done.stderr
    for at, words in (("2020-01-01", "The archive begins at"), ("2199-01-01", "--at latest")):
        done = esker("restore", str(archive_dir), "--at", at, "--replace", **there)
        assert (done.returncode, words in done.stderr) == (1, True)
    assert _pools(tmp_path / "e") == {"default", "before", "after", "last"}


def _pools(data_dir: Path) -> set[str]:
    listed = json.loads(esker("pool", "list", "--json", ESKER_DATA_DIR=str(data_dir)).stdout)
    return {pool["name"] for pool in listed}


def test_a_server_without_an_archive_stops_archiving(tmp_path: Path) -> None:
    data_dir = Path(made_at(tmp_path / "d"))
    with embedded(data_dir, "serve", archive_dir=tmp_path / "a") as cluster:
        url = cluster.url(OWNER, "postgres")
        flush(url)
        assert is_archiving(url)
    with embedded(data_dir, "serve"):
        assert not is_archiving(url)


def test_the_archive_keeps_what_its_base_backups_need(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "7")
    archive.wal.mkdir(parents=True)
    for number in range(1, 5):
        base = archive.bases / f"20261130T12000{number}Z"
        base.mkdir(parents=True)
        segment = f"00000001000000000000000{number}"
        (base / "backup_label").write_text(f"START WAL LOCATION: 0/{number}000028 (file {segment})\n")
        (archive.wal / segment).touch()
        (archive.wal / f"{segment}.00000028.backup").touch()
    archive.delete_old(2)
    assert [base_time(base) for base in archive.made()] == [NOON + timedelta(seconds=3), NOON + timedelta(seconds=4)]
    assert {file.name[:24] for file in archive.wal.iterdir()} == {f"00000001000000000000000{n}" for n in (3, 4)}
    assert latest_base(tmp_path, NOON + timedelta(seconds=3))[1].name == "20261130T120003Z"
    assert latest_base(tmp_path, None)[1].name == "20261130T120004Z"
    with pytest.raises(NotFound, match="begins at"):
        latest_base(tmp_path, NOON)
