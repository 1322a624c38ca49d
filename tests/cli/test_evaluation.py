"""`esker eval` as a command."""

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from esker.server.cli.evaluation import check_report, write_report
from esker.server.cli.pool_file import replaced
from esker.server.core.errors import InvalidInput
from esker.server.core.records import Principal
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.databases import contents
from tests.support.processes import esker


async def evaluated(database_url: str, *arguments: str) -> Any:
    """Run `esker eval` and return the finished process."""
    return await asyncio.to_thread(esker, "eval", *arguments, ESKER_DATABASE_URL=database_url)


async def test_prints_a_table_or_json_and_writes_a_page(
    parts: Parts, who: Principal, database_url: str, tmp_path: Path
) -> None:
    notes = [
        Note(f"Berth {n} of the {fish} wharf was dredged by Ottilie.") for n, fish in enumerate(("eel", "pike", "cod"))
    ]
    await remember(parts, who, notes)
    done = await evaluated(database_url, "--queries", "6", "--report", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    assert "Pool default" in done.stdout
    assert "full recall" in done.stdout
    assert "3 questions" in done.stdout
    assert "What to do" in done.stdout
    assert "<svg" in (tmp_path / "report.html").read_text()
    as_json = await evaluated(database_url, "--queries", "6", "--json")
    assert as_json.stderr == ""
    document = json.loads(as_json.stdout)
    assert document["recall"]["full recall"]["recall"]["10"] == 1.0
    assert {verdict["figure"] for verdict in document["verdicts"]} >= {"full recall", "coverage", "pack of no project"}
    assert document["packs"][0]["precision"] == 1.0
    again = json.loads((await evaluated(database_url, "--queries", "6", "--json")).stdout)
    assert again["recall"] == document["recall"]
    assert again["made_up"] == document["made_up"]


async def test_the_command_writes_nothing_but_its_page(
    parts: Parts, who: Principal, database_url: str, owner_url: str, tmp_path: Path
) -> None:
    await remember(parts, who, [Note(f"Berth {n} of the eel wharf was dredged by Ottilie.") for n in range(4)])
    before = contents(owner_url)
    assert (await evaluated(database_url, "--report", str(tmp_path / "report.html"))).returncode == 0
    assert contents(owner_url) == before
    assert os.listdir(tmp_path) == ["report.html"]


async def test_an_unwritable_page_is_reported_before_the_pool_is_evaluated(
    parts: Parts, database_url: str, tmp_path: Path
) -> None:
    done = await evaluated(database_url, "--pool", "nobody", "--report", str(tmp_path))
    assert done.returncode == 1
    assert "is a folder" in done.stderr
    assert "nobody" not in done.stderr


async def test_more_days_than_a_calendar_has_are_wrong_usage(parts: Parts, database_url: str) -> None:
    done = await evaluated(database_url, "--stale-days", "999999999")
    assert done.returncode == 2
    assert "36500" in done.stderr


async def test_a_wrong_figure_sets_the_exit_code(
    parts: Parts, who: Principal, database_url: str, owner_url: str
) -> None:
    await remember(parts, who, [Note(f"Berth {n} of the eel wharf was dredged by Ottilie.") for n in range(4)])
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("DELETE FROM postings")
    assert (await evaluated(database_url, "--json")).returncode == 1


async def test_an_unknown_pool_is_an_error(parts: Parts, database_url: str) -> None:
    done = await evaluated(database_url, "--pool", "nobody")
    assert done.returncode == 1
    assert "There is no pool 'nobody'" in done.stderr


def test_a_report_or_an_export_never_replaces_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="not a regular file"):
        check_report(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"), replaced(tmp_path / "pipe"):
        pass
    assert (tmp_path / "pipe").is_fifo()


def test_a_file_removes_the_part_of_it_that_a_killed_command_has_left(tmp_path: Path) -> None:
    killed = subprocess.Popen(["true"])
    killed.wait()
    left, of_another = tmp_path / f".pool.esker-{killed.pid}", tmp_path / f".other.esker-{killed.pid}"
    at_work = tmp_path / f".pool.esker-{os.getppid()}"
    for path in (left, of_another, at_work):
        path.write_text("secret")
    with replaced(tmp_path / "pool") as file:
        file.write(b"whole")
    assert sorted(tmp_path.iterdir()) == sorted([of_another, at_work, tmp_path / "pool"])


def test_a_page_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        write_report(tmp_path / "no" / "report.html", "page")


def test_a_path_that_cannot_hold_a_page_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is a folder"):
        check_report(tmp_path)
    with pytest.raises(InvalidInput, match=r"folder .*/no does not exist"):
        check_report(tmp_path / "no" / "report.html")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="does not exist"):
        check_report(tmp_path / "file" / "report.html")
    check_report(tmp_path / "report.html")
    check_report(tmp_path / "file")
