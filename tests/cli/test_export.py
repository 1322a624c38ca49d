"""`esker export` and `esker import` as processes: pool files, MEMORY.md and daily logs."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from esker.server.agents.api import Api
from esker.server.cli.pool_file import check, halves, parts_of
from esker.server.core.errors import InvalidInput
from esker.server.core.pool.lines import TYPES
from tests.support.made import made_at, shared_folder
from tests.support.processes import ROOT, environment, esker, served

SAMPLES = ROOT / "server/agents/samples"
TIMES = ("said_at", "last_used_at", "created_at")
KEY = "sk-ant-api03-AbCdEf0123456789AbCdEf0123456789"


@pytest.fixture
def data_dir() -> Generator[Path]:
    """A data directory that the account of Postgres can reach, independent of other test runs."""
    with tempfile.TemporaryDirectory(prefix="esker-proc-", dir=shared_folder()) as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def place() -> Generator[tuple[dict[str, str], Path]]:
    """The environment of a command for a server with two sessions and notes, and its data directory."""
    with (
        tempfile.TemporaryDirectory(prefix="esker-proc-", dir=shared_folder()) as directory,
        served("--data-dir", made_at(Path(directory, "d"))) as (_, said),
    ):
        folder = Path(directory)
        env = {"ESKER_URL": said["url"], "ESKER_STATE_DIR": str(folder / "state"), "TZ": "Europe/Zurich"}
        assert esker("ingest", str(SAMPLES), "--observe", **env).returncode == 0
        assert esker("remember", "Never deploy on Fridays.", "--everywhere", "--pin", **env).returncode == 0
        assert esker("remember", f"The key is {KEY}.", "--everywhere", "--pin", **env).returncode == 0
        yield env, folder / "d"


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a pool's file without its header, which has a time."""
    return path.read_bytes().split(b"\n")[1:]


# The whole pool ------------------------------------------------------------------------------------------------------


def test_a_pool_survives_an_export_and_import_unchanged(place: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    env, data = place
    first, second, third = (tmp_path / name for name in ("one.jsonl", "two.jsonl", "three.jsonl"))
    written = json.loads(esker("export", "jsonl", str(first), "--json", **env).stdout)
    assert (written["session"], written["message"]) == (2, 60)
    assert first.stat().st_mode & 0o077 == 0, "it contains everything, so only its owner may read it"
    straight = ("--pool", "default", "--data-dir", str(data))
    assert "60 messages" in esker("export", "jsonl", str(second), *straight, **env).stdout
    assert lines_of(second) == lines_of(first)
    again = json.loads(esker("import", "jsonl", str(first), "--json", **env).stdout)
    assert set(again["new"].values()) == {0}
    assert again["known"]["message"] == 60

    copy = ("--pool", "copy", "--data-dir", str(data))
    assert esker("import", "jsonl", str(first), *copy).returncode == 1, "there is no such pool"
    assert esker("pool", "create", "copy", "--data-dir", str(data)).returncode == 0
    new = json.loads(esker("import", "jsonl", str(first), *copy, "--json").stdout)["new"]
    assert new == {name: written[name] for name in new}
    assert "Already there: 2 sessions, 60 messages" in esker("import", "jsonl", str(first), *copy).stdout
    assert esker("export", "jsonl", str(third), *copy).returncode == 0
    assert lines_of(third) == lines_of(first)
    assert sorted(os.listdir(tmp_path)) == ["one.jsonl", "three.jsonl", "two.jsonl"]


def test_an_invalid_file_is_refused_before_anything_is_sent(place: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    env, _ = place
    whole, bad = tmp_path / "whole.jsonl", tmp_path / "bad.jsonl"
    assert esker("export", "jsonl", str(whole), **env).returncode == 0
    lines = whole.read_bytes().splitlines(keepends=True)
    nobody = env | {"ESKER_URL": "http://127.0.0.1:9"}
    for content, says in (
        (lines[:-1], f"is incomplete: line {len(lines) - 1} is not the end"),
        ([*lines[:4], b"{", *lines[4:]], "Line 5: not a valid line"),
        ([*lines[:4], b'{"type": "dream"}\n', *lines[4:]], "Line 5: unknown type 'dream'"),
        ([*lines, lines[-1]], f"Line {len(lines) + 1}: found after the end of the file"),
        (lines[1:], "Line 1: not the header"),
        ([lines[0].replace(b'"version":2', b'"version":3'), *lines[1:]], "has format version 3"),
        ([], "is empty"),
    ):
        bad.write_bytes(b"".join(content))
        done = esker("import", "jsonl", str(bad), **nobody)
        assert done.returncode == 1
        assert says in " ".join(done.stderr.split()), done.stderr
    assert "does not exist" in esker("import", "jsonl", str(tmp_path / "missing.jsonl"), **env).stderr


def test_parts_are_halved_for_a_server_with_a_small_body_limit(
    place: tuple[dict[str, str], Path], tmp_path: Path, data_dir: Path
) -> None:
    env, _ = place
    file = tmp_path / "pool.jsonl"
    assert esker("export", "jsonl", str(file), **env).returncode == 0
    longest = max(map(len, file.read_bytes().splitlines()))
    with served("--data-dir", made_at(data_dir / "d"), ESKER_MAX_BODY_BYTES=str(longest + 1_000)) as (_, said):
        new = json.loads(esker("import", "jsonl", str(file), "--json", ESKER_URL=said["url"]).stdout)["new"]
    assert new["message"] == 60
    with served("--data-dir", str(data_dir / "d"), ESKER_MAX_BODY_BYTES=str(longest - 1)) as (_, said):
        done = esker("import", "jsonl", str(file), ESKER_URL=said["url"])
    assert done.returncode == 1
    assert "is larger than the server's limit for a body" in done.stderr
    assert "ESKER_MAX_BODY_BYTES" in done.stderr


def test_an_import_can_be_completed_after_the_server_was_killed(tmp_path: Path, data_dir: Path) -> None:
    file, back = tmp_path / "pool.jsonl", tmp_path / "back.jsonl"
    texts = notes_file(1_500)
    file.write_bytes(b"".join(texts))
    made_at(data_dir / "d")
    # With a small limit on bodies, an import of few notes takes many requests.
    with served("--data-dir", str(data_dir / "d"), ESKER_MAX_BODY_BYTES="16384") as (process, said):
        env = {"ESKER_URL": said["url"]}
        command = [sys.executable, "-P", "-m", "esker", "import", "jsonl", str(file)]
        importing = subprocess.Popen(command, cwd=ROOT, env=environment(**env), stderr=subprocess.PIPE, text=True)
        with importing, closing(Api(said["url"])) as api:
            while not api.get("/v1/status")["memories"]:
                assert importing.poll() is None
            process.kill()
            assert "No Esker answers" in importing.communicate()[1]
            assert importing.returncode == 1
    with served("--data-dir", str(data_dir / "d")) as (_, said):
        env = {"ESKER_URL": said["url"]}
        done = json.loads(esker("import", "jsonl", str(file), "--json", **env).stdout)
        assert done["known"]["memory"] > 0
        assert done["known"]["memory"] + done["new"]["memory"] == 1_500
        assert esker("export", "jsonl", str(back), **env).returncode == 0
    assert [json.loads(line) for line in lines_of(back) if line] == [json.loads(line) for line in texts[1:]]


def notes_file(count: int) -> list[bytes]:
    """Return the lines of a pool's file with `count` notes."""
    header = {"type": "header", "format": "esker-pool", "version": 1, "pool": "p", "counts": {"memory": count}}
    nothing = ["session_id", "group_id", "project", "refers_from", "refers_to", "valid_until", "superseded_by"]
    nothing += ["superseded_at", "outdated_at", "reflection_id", "external_id", "facet"]
    note: dict[str, Any] = {"type": "memory", "kind": "note", "priority": "low", "category": "fact", "trust": "user"}
    note |= {"author": "test", "tags": [], "source_seqs": [], "source_ids": [], "sources": [], "left_alone": False}
    note |= {"tentative": False, **dict.fromkeys(nothing), **dict.fromkeys(TIMES, "2026-03-02T12:00:00+00:00")}
    notes = [note | {"id": f"mem_{n:09d}", "content": f"Row {n} says {'a few words ' * 9}."} for n in range(count)]
    ends = {name: count if name == "memory" else 0 for name in TYPES}
    lines = [header | {"exported_at": "2026-03-02T12:00:00+00:00"}, *notes, {"type": "end", "counts": ends}]
    return [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]


@contextmanager
def answering(body: bytes, length: int | None) -> Generator[str]:
    """Answer every GET with a body and then hang up, even if `length` announced more."""

    class PoolHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        sent: ClassVar[bytes] = body

        def do_GET(self) -> None:
            self.send_response(200)
            if length is None:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(self.sent if length is not None else f"{len(self.sent):x}\r\n".encode() + self.sent)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), PoolHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("length", [None, 1_000_000, 0])
def test_an_export_that_breaks_off_keeps_the_previous_file(tmp_path: Path, length: int | None) -> None:
    header = {"type": "header", "format": "esker-pool", "version": 1, "pool": "p", "counts": {"memory": 2}}
    line = json.dumps(header | {"exported_at": "2026-03-02T12:00:00+00:00"}).encode() + b"\n"
    file = tmp_path / "pool.jsonl"
    file.write_text("before")
    with answering(line, len(line) if length == 0 else length) as url:
        done = esker("export", "jsonl", str(file), ESKER_URL=url)
    assert done.returncode == 1
    assert "broke off" in done.stderr
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["pool.jsonl"]


def test_parts_end_after_the_group_that_covers_their_messages_and_halves_lose_nothing(tmp_path: Path) -> None:
    header = {"type": "header", "format": "esker-pool", "version": 1, "pool": "p", "counts": {}}
    kinds = ["session", *["message"] * 9, "group", *["message"] * 40, "group", *["memory"] * 30, "end"]
    header |= {"exported_at": "2026-03-02T12:00:00+00:00"}
    lines = [header, *({"type": kind, "n": n} for n, kind in enumerate(kinds))]
    texts = [json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines]
    file = tmp_path / "pool.jsonl"
    file.write_bytes(b"".join(texts))
    assert check(file) == len(texts)
    parts = list(parts_of(file, limit=200))
    sent = [part.lines.splitlines(keepends=True) for part in parts]
    assert all(lines[0] == texts[0] for lines in sent)
    assert [line for lines in sent for line in lines[1:]] == texts[1:]
    assert [part.first_line for part in parts] == [2 + sum(part.size for part in parts[:n]) for n in range(len(parts))]
    assert max(len(part.lines) for part in parts) <= len(texts[0]) + 2 * 200 + 40
    assert b'"group"' in sent[0][-1]
    first, second = halves(parts[0])
    assert first.lines + second.lines.removeprefix(texts[0]) == parts[0].lines
    assert (first.first_line, second.first_line) == (2, 2 + first.size)
    file.write_bytes(texts[0] + b"\xff\n")
    with pytest.raises(InvalidInput, match="Line 2: not a valid line"):
        check(file)


# MEMORY.md -----------------------------------------------------------------------------------------------------------


def test_a_memory_file_gets_each_fact_once_and_keeps_its_lines(
    place: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    env, _ = place
    file = tmp_path / "MEMORY.md"
    mine = (
        b"---\r\ntitle: mine\r\n---\r\n# Mine\r\n\r\n## Hard rules\r\n\r\n* Be kind.\r\n* never deploy on FRIDAYS"
        b"\r\n\r\n## Mine\r\n\r\nThe end."
    )
    file.write_bytes(mine)
    file.chmod(0o600)
    tried = esker("export", "memory-md", str(file), "--dry-run", **env)
    assert file.read_bytes() == mine
    assert "+* The key is [redacted:anthropic-key]." in tried.stdout
    done = json.loads(esker("export", "memory-md", str(file), "--json", **env).stdout)
    assert done["known"] >= 1
    assert {row["section"] for row in done["added"]} >= {"Hard rules", "Architecture"}
    text = file.read_bytes()
    assert text.startswith(mine.partition(b"\r\n\r\n## Mine")[0] + b"\r\n* ")
    assert b"\r\n* The key is [redacted:anthropic-key]. (pinned by an agent)\r\n" in text
    assert b"\r\n\r\n## Mine\r\n\r\nThe end.\r\n\r\n## Architecture\r\n\r\n- " in text
    assert b"Never deploy" not in text
    assert KEY.encode() not in text
    assert text.count(b"\n") == text.count(b"\r\n")
    assert file.stat().st_mode & 0o777 == 0o600
    again = json.loads(esker("export", "memory-md", str(file), "--json", **env).stdout)
    assert (again["added"], again["written"]) == ([], False)
    assert file.read_bytes() == text
    assert os.listdir(tmp_path) == ["MEMORY.md"]


def test_a_memory_file_of_all_projects_names_the_project_of_each_line(
    place: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    env, _ = place
    assert esker("remember", "Ship on Mondays.", "--pin", "--project", "me/other", **env).returncode == 0
    line = "- Ship on Mondays. (pinned by an agent)"
    for project, says in ((None, f"{line} (project me/other)\n"), ("me/other", f"{line}\n")):
        file = tmp_path / f"{project is None}.md"
        asked = ["--project", project] if project else []
        assert esker("export", "memory-md", str(file), *asked, **env).returncode == 0
        assert says in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
    assert "pnpm" not in (tmp_path / "False.md").read_text(), "a decision of another project"


def test_a_memory_file_that_is_not_utf_8_is_left_alone(place: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    env, _ = place
    file = tmp_path / "MEMORY.md"
    file.write_bytes(b"\xff\xfe\x00")
    done = esker("export", "memory-md", str(file), **env)
    assert (done.returncode, "is not UTF-8" in done.stderr) == (1, True)
    assert file.read_bytes() == b"\xff\xfe\x00"


# Daily logs ----------------------------------------------------------------------------------------------------------


def test_logs_are_rewritten_to_the_same_bytes_and_other_files_are_left_alone(
    place: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    env, _ = place
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "notes.md").write_text("mine")
    (folder / "2001-01-01.md").write_text("a diary of mine")
    first = json.loads(esker("export", "daily", str(folder), "--json", **env).stdout)
    assert first["written"]
    assert {(folder / name).stat().st_mode & 0o777 for name in first["written"]} == {0o600}
    texts = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(texts) == {*first["written"], "notes.md", "2001-01-01.md"}
    rows = json.loads(esker("memories", "--limit", "1000", "--superseded", "--json", **env).stdout)
    observed = [row for row in rows if row["kind"] == "observation"]
    assert observed
    everything = b"\n".join(texts.values()).decode()
    for row in observed:
        assert " ".join(row["content"].split()) in everything
    assert "claude-code" in everything
    again = json.loads(esker("export", "daily", str(folder), "--json", **env).stdout)
    assert (again["written"], again["unchanged"], again["deleted"]) == ([], len(first["written"]), [])
    (folder / first["written"][0]).write_bytes(texts[first["written"][0]] + b"an edit")
    assert json.loads(esker("export", "daily", str(folder), "--json", **env).stdout)["written"] == first["written"][:1]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == texts
    last = max(first["written"]).removesuffix(".md")
    since = json.loads(esker("export", "daily", str(tmp_path / "few"), "--since", last, "--json", **env).stdout)
    assert since["written"] == [f"{last}.md"]


def test_a_log_never_replaces_a_persons_note_and_is_deleted_with_its_last_row(tmp_path: Path, data_dir: Path) -> None:
    transcript = tmp_path / "t.jsonl"
    said = {"type": "user", "uuid": "u1", "sessionId": "s", "timestamp": "2026-03-01T23:30:00Z", "cwd": "/x"}
    said["message"] = {"role": "user", "content": "We decided to paint the bridge red."}  # type: ignore[assignment]
    transcript.write_text(json.dumps(said) + "\n")
    with served("--data-dir", made_at(data_dir / "d")) as (_, told):
        env = {"ESKER_URL": told["url"], "TZ": "Asia/Tokyo"}
        assert esker("ingest", str(transcript), "--observe", **env).returncode == 0
        folder = tmp_path / "logs"
        folder.mkdir()
        own = folder / "2026-03-02.md"
        own.write_text("Dear diary")
        done = esker("export", "daily", str(folder), **env)
        assert (done.returncode, own.read_text()) == (1, "Dear diary")
        own.unlink()
        assert esker("export", "daily", str(folder), **env).returncode == 0
        assert "## 08:30 Asia/Tokyo · claude-code" in own.read_text(), "the day and the time of the session's own zone"
        [row] = json.loads(esker("memories", "--json", **env).stdout)
        assert esker("forget", row["id"], **env).returncode == 0
        assert json.loads(esker("export", "daily", str(folder), "--json", **env).stdout)["deleted"] == [own.name]
        assert os.listdir(folder) == []
