"""Regular backups: due by the last one in the folder, written once, and as many kept as are wanted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from esker.server.cli.backing_up import back_up_now, is_due
from esker.server.cli.database_findings import backups
from esker.server.db import dumps
from esker.server.db.backup_folder import BackupFolder, made_at, name_of

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def folder(tmp_path: Path) -> BackupFolder:
    """A folder that is not there yet, with a backup each day, of which two are kept."""
    return BackupFolder(tmp_path / "backups", DAY, 2)


@pytest.fixture(autouse=True)
def _dump(monkeypatch: pytest.MonkeyPatch) -> None:
    def dump(url: str, path: Path, on_progress: dumps.OnProgress) -> dumps.Dumped:
        path.write_text(url)
        return dumps.Dumped(path, len(url))

    monkeypatch.setattr(dumps, "dump", dump)


def test_a_backup_is_due_a_day_after_the_last_one_also_after_a_restart(folder: BackupFolder) -> None:
    assert is_due(folder, NOON)
    assert back_up_now(folder, "url", lambda: NOON)
    assert not is_due(folder, NOON + DAY - timedelta(seconds=1))
    assert is_due(folder, NOON + DAY)
    assert not back_up_now(folder, "url", lambda: NOON + timedelta(hours=1))


def test_the_newest_are_kept_and_foreign_files_too(folder: BackupFolder) -> None:
    for day in range(4):
        assert back_up_now(folder, "url", lambda day=day: NOON + day * DAY)
        (folder.path / "esker-of-mine.dump").touch()
        (folder.path / f".{name_of(NOON)}.part").touch()
    folder.delete_old()
    kept = sorted(path.name for path in folder.path.iterdir())
    assert kept == [".esker.lock", name_of(NOON + 2 * DAY), name_of(NOON + 3 * DAY), "esker-of-mine.dump"]


def test_only_one_server_writes_a_backup(folder: BackupFolder) -> None:
    with folder.held() as mine:
        assert mine
        assert not back_up_now(folder, "url", lambda: NOON)
    assert back_up_now(folder, "url", lambda: NOON)


def test_doctor_notices_that_backups_have_stopped(folder: BackupFolder) -> None:
    assert backups(folder, NOON).status == "warning"
    back_up_now(folder, "url", lambda: NOON)
    assert backups(folder, NOON + 2 * DAY).status == "ok"
    late = backups(folder, NOON + 2 * DAY + timedelta(minutes=1))
    assert (late.status, "2 days ago" in late.what) == ("warning", True)


def test_a_name_is_a_time(folder: BackupFolder) -> None:
    assert made_at(folder.file(NOON)) == NOON
