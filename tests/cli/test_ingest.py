"""`esker ingest`: all clients, only new messages, nothing lost, nothing duplicated."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.api import Api
from tests.support.made import made_at
from tests.support.processes import ROOT, environment, esker, served
from tests.support.recording import Recorder, recording
from tests.support.transcripts import written
from tests.support.waiting import PATIENCE

AT = "2026-03-02T09:00:00.000Z"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The URL of a running server."""
    with served("--data-dir", made_at(tmp_path_factory.mktemp("d") / "d"), "--no-worker") as (_, said):
        yield said["url"]


@pytest.fixture
def recorder(server: str) -> Generator[Recorder]:
    """A recorder of the requests to the server."""
    with recording(server) as made:
        yield made


@pytest.fixture
def here(recorder: Recorder, tmp_path: Path) -> dict[str, str]:
    """The environment of a user with an empty home."""
    home = tmp_path / "home"
    home.mkdir()
    # This home's state does not know of messages that other tests have sent.
    return {"ESKER_URL": recorder.url, "ESKER_STATE_DIR": str(tmp_path / "state"), "HOME": str(home)}


def ingested(*arguments: str, **more: str) -> dict[str, Any]:
    """Run `esker ingest --json` and return its report."""
    done = esker("ingest", *arguments, "--json", **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def claude(session: str, *names: str, cwd: str = "/work/shop") -> list[dict[str, Any]]:
    """Return lines of Claude Code, a message for each id."""
    base = {"type": "user", "sessionId": session, "cwd": cwd, "timestamp": AT}
    return [base | {"uuid": name, "message": {"role": "user", "content": f"{name} is said."}} for name in names]


def stored(server: str, session: str) -> list[str]:
    """Return the external ids of the messages that the server has of a session, by the client's id."""
    with closing(Api(server)) as api:
        [found] = api.get("/v1/sessions", external_id=session)["sessions"]
        return [m["external_id"] for m in api.get(f"/v1/sessions/{found['id']}/messages", limit=1_000)["messages"]]


def test_only_new_messages_are_sent(server: str, recorder: Recorder, here: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "grows.jsonl"
    written(path, *claude("grows", "a", "b"))
    assert ingested(str(path), **here)["accepted"] == 2
    assert ingested(str(path), **here)["unchanged"] == 1
    written(path, *claude("grows", "a", "b", "c"), b'{"type": "user", "uu')  # half-written line
    assert ingested(str(path), **here)["accepted"] == 1
    written(path, *claude("grows", "a", "b", "c", "d"))
    assert ingested(str(path), **here)["accepted"] == 1
    assert recorder.sent() == ["a", "b", "c", "d"]
    requests = len(recorder.requests)
    assert (ingested(str(path), **here)["unchanged"], recorder.requests[requests:]) == (1, [])
    assert stored(server, "grows") == ["a", "b", "c", "d"]


def test_again_sends_all_and_changes_nothing(
    server: str, recorder: Recorder, here: dict[str, str], tmp_path: Path
) -> None:
    path = written(tmp_path / "again.jsonl", *claude("again", "a", "b"))
    ingested(str(path), **here)
    again = ingested(str(path), "--again", **here)
    assert (again["accepted"], again["duplicates"], recorder.sent()) == (0, 2, ["a", "b", "a", "b"])
    other = ingested(str(path), **here | {"ESKER_STATE_DIR": str(tmp_path / "lost")})  # the progress files are lost
    assert (other["accepted"], other["duplicates"]) == (0, 2)
    assert stored(server, "again") == ["a", "b"]


@pytest.mark.parametrize("batches", [1, 2])
def test_a_kill_between_sending_and_recording_loses_and_duplicates_nothing(
    server: str, recorder: Recorder, here: dict[str, str], tmp_path: Path, batches: int
) -> None:
    names = [f"m{number}" for number in range(700)]  # two requests
    session = f"killed-{batches}"
    path = written(tmp_path / "killed.jsonl", *claude(session, *names))
    command = [sys.executable, "-P", "-m", "esker", "ingest", str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(**here), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        recorder.after_messages = lambda: process.kill() if len(recorder.messages) == batches else None
        assert process.wait(PATIENCE) < 0
    recorder.after_messages = lambda: None
    before = len(recorder.messages)
    report = ingested(str(path), **here)
    noted = 0 if batches == 1 else len(recorder.messages[0])
    assert [m["external_id"] for batch in recorder.messages[before:] for m in batch] == names[noted:]
    assert report["accepted"] + report["duplicates"] == len(names) - noted
    assert stored(server, session) == names


def home_of_all(home: Path) -> None:
    """Write a session of every client that keeps lines, two messages each."""
    written(home / ".claude/projects/-work/c.jsonl", *claude("all-claude", "c1", "c2"), {"type": "summary"})
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    said = [{"timestamp": AT, "type": "response_item", "payload": item}] * 2
    meta = {"timestamp": AT, "type": "session_meta", "payload": {"id": "all-codex", "cwd": "/work"}}
    written(home / ".codex/sessions/2026/03/02/rollout-x.jsonl", meta, *said)
    record = {"timestamp": AT, "type": "user", "content": "Hi."}
    header = {"sessionId": "all-gemini", "projectHash": "f"}
    written(home / ".gemini/tmp/f/chats/session-x.jsonl", header, record | {"id": "g1"}, record | {"id": "g2"})
    begun = {"type": "session", "id": "all-pi", "timestamp": AT, "cwd": "/work"}
    message = {"type": "message", "message": {"role": "user", "content": "Hi."}}
    written(home / ".pi/agent/sessions/--work--/x_p.jsonl", begun, message, message)
    line = {"role": "user", "message": {"content": [{"type": "text", "text": "Hi."}]}}
    written(home / ".cursor/projects/work/agent-transcripts/all-cursor/all-cursor.jsonl", line, line)
    event = {"type": "user.message", "data": {"content": "Hi."}}
    written(home / ".copilot/session-state/all-copilot/events.jsonl", event | {"id": "e1"}, event | {"id": "e2"})
    storage = home / ".local/share/opencode/storage"
    written(storage / "session/p/ses_1.json", {"id": "all-opencode", "directory": "/work"})
    for name in ("o1", "o2"):
        written(storage / f"message/all-opencode/{name}.json", {"id": name, "role": "user"})
        written(storage / f"part/{name}/{name}.json", {"id": name, "type": "text", "text": "Hi."})


def test_the_transcripts_of_all_clients_are_sent_by_one_command(recorder: Recorder, here: dict[str, str]) -> None:
    home_of_all(Path(here["HOME"]))
    report = ingested("--all", **here)
    clients = ["claude-code", "codex", "copilot", "cursor", "gemini-cli", "opencode", "pi"]
    assert {
        name: (c["files"], c["sessions"], c["messages"], c["accepted"]) for name, c in report["clients"].items()
    } == dict.fromkeys(clients, (1, 1, 2, 2))
    assert report["clients"]["claude-code"]["skipped"] == {"summary line": 1}
    assert (report["files"], report["accepted"], len(report["sessions"])) == (7, 14, 7)
    sent = len(recorder.messages)
    once_more = ingested("--all", **here)
    # OpenCode's old files have no stamp, so they are read again, but nothing is sent.
    assert (once_more["unchanged"], once_more["files"], once_more["accepted"]) == (6, 1, 0)
    assert len(recorder.messages) == sent
    shown = esker("ingest", "--all", "--again", **here).stdout
    assert "7 files, 7 sessions: 0 messages stored, 14 already known." in shown
    assert "pi: 1 session in 1 file, 2 messages, 0 of them new" in shown
    assert "1 × summary line" in shown
    only = ingested("--all", "--client", "pi", "--again", **here)
    assert list(only["clients"]) == ["pi"]


def test_a_machine_without_sessions_says_so(here: dict[str, str]) -> None:
    done = esker("ingest", "--all", **here)
    assert (done.returncode, "0 files, 0 sessions" in done.stdout) == (0, True)


def test_excluded_projects_are_skipped_until_they_are_no_longer_excluded(
    server: str, recorder: Recorder, here: dict[str, str], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    (secret / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(secret)
    folder = tmp_path / "t"
    written(folder / "a.jsonl", *claude("open-1", "a"))
    written(folder / "b.jsonl", *claude("secret-1", "b", cwd=str(secret / "deep")))
    written(folder / "c.jsonl", *claude("secret-2", "c", cwd=str(tmp_path / "link")))
    written(folder / "d.jsonl", *claude("secret-3", "d", cwd="/elsewhere/diary"))
    report = ingested(str(folder), **here, ESKER_EXCLUDE=f"{secret},dia*")
    assert (report["accepted"], report["excluded"], recorder.sent()) == (1, 3, ["a"])
    assert not [request for request in recorder.requests if "secret" in "".join(request)]
    report = ingested(str(folder), **here)
    assert (report["accepted"], report["excluded"], report["unchanged"]) == (3, 0, 1)
    assert stored(server, "secret-2") == ["c"]


def test_only_messages_outside_excluded_directories_are_sent(
    server: str, recorder: Recorder, here: dict[str, str], tmp_path: Path
) -> None:
    lines = [*claude("moved", "a"), *claude("moved", "b", "c", cwd="/private/diary"), *claude("moved", "d")]
    path = written(tmp_path / "moved.jsonl", *lines)
    report = ingested(str(path), **here, ESKER_EXCLUDE="/private")
    assert (report["accepted"], report["excluded"], report["excluded_messages"]) == (2, 0, 2)
    assert not [request for request in recorder.requests if "private" in "".join(request)]
    assert stored(server, "moved") == ["a", "d"]
    shown = esker("ingest", str(path), **here, ESKER_EXCLUDE="/private").stdout
    assert "2 messages skipped: an exclusion covers the directory" in shown
    report = ingested(str(path), **here)  # sent once it is no longer excluded
    assert (report["accepted"], report["duplicates"], report["excluded_messages"]) == (2, 2, 0)


def test_an_invalid_pattern_is_refused_and_nothing_is_sent(
    recorder: Recorder, here: dict[str, str], tmp_path: Path
) -> None:
    path = written(tmp_path / "x.jsonl", *claude("never", "a", cwd="/private"))
    done = esker("ingest", str(path), **here, ESKER_EXCLUDE="/{private,secret}")
    assert (done.returncode, "ESKER_EXCLUDE" in done.stderr, "braces" in done.stderr) == (1, True, True)
    assert recorder.requests == []
    doctor = esker("doctor", "--quick", "--json", **here, ESKER_EXCLUDE="/{private,secret}")
    wrong = [finding["what"] for finding in json.loads(doctor.stdout) if finding["status"] == "wrong"]
    assert any("ESKER_EXCLUDE" in what for what in wrong)


def test_a_repeated_message_with_another_time_is_a_duplicate_without_conflict(
    here: dict[str, str], tmp_path: Path
) -> None:
    line = {"role": "user", "message": {"content": [{"type": "text", "text": "Hi."}]}}
    path = written(tmp_path / "timeless.jsonl", line)
    os.utime(path, (0, 1_700_000_000))
    assert ingested(str(path), **here)["accepted"] == 1
    os.utime(path, (0, 1_700_009_999))
    again = ingested(str(path), "--again", **here)
    assert (again["accepted"], again["duplicates"], again["conflicts"]) == (0, 1, 0)
    with closing(Api(here["ESKER_URL"])) as api:
        [session] = api.get("/v1/sessions", external_id="timeless")["sessions"]
        [message] = api.get(f"/v1/sessions/{session['id']}/messages")["messages"]
    assert datetime.fromisoformat(message["sent_at"]).timestamp() == 1_700_000_000


def test_paths_that_are_not_files_neither_hang_nor_stop_ingest(here: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for number, place in enumerate((folder, Path(here["HOME"]) / ".claude/projects/-w")):
        written(place / "z.jsonl", *claude(f"beside-{number}", "a"))
        os.mkfifo(place / "pipe.jsonl")
        (place / "round.jsonl").symlink_to(place / "round.jsonl")
        (place / "device.jsonl").symlink_to("/dev/zero")
    for arguments in ([str(folder)], ["--all"]):
        report = ingested(*arguments, **here)
        assert (report["accepted"], report["unreadable"]) == (1, {})
        assert sorted(report["no_files"].values()) == ["a broken link", "a device", "a pipe"]
    done = esker("ingest", str(folder / "pipe.jsonl"), str(folder / "z.jsonl"), "--again", **here)
    assert (done.returncode, "it is a pipe" in done.stdout, "1 already known" in done.stdout) == (1, True, True)


def test_every_transcript_of_a_folder_is_sent(here: dict[str, str], tmp_path: Path) -> None:
    home_of_all(tmp_path / "t")
    written(tmp_path / "t" / "package.json", {"name": "x"})
    written(tmp_path / "t" / "log.jsonl", {"level": "info"})
    written(tmp_path / "t" / "empty.jsonl")
    report = ingested(str(tmp_path / "t"), **here)
    assert (report["files"], len(report["clients"])) == (7, 7)
    assert sorted(Path(path).name for path in report["others"]) == ["empty.jsonl", "log.jsonl", "package.json"]


def test_a_named_file_that_is_not_a_transcript_is_an_error(here: dict[str, str], tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", {"level": "info"})
    done = esker("ingest", str(path), **here)
    assert (done.returncode, "not a transcript" in done.stdout) == (1, True)
    path = written(tmp_path / "y.jsonl", *claude("named", "a"))
    wrong = esker("ingest", str(path), "--client", "copilot", **here)
    assert (wrong.returncode, "not a transcript of copilot" in wrong.stdout) == (1, True)
    assert ingested(str(path), "--client", "claude-code", **here)["accepted"] == 1


@pytest.mark.parametrize(
    "lines",
    [
        ({"role": "user", "text": "Hello."}, {"role": "bot", "text": "Hi."}),
        ({"type": "assistant", "uuid": "a", "content": "Hello."}, {"type": "user", "uuid": "b", "text": "Hi."}),
    ],
)
def test_messages_that_no_reader_understands_are_an_error(
    here: dict[str, str], tmp_path: Path, lines: tuple[dict[str, str], ...]
) -> None:
    written(tmp_path / "t" / "x.jsonl", *lines)
    written(tmp_path / "t" / "good.jsonl", *claude(f"beside-{tmp_path.name}", "a"))
    done = esker("ingest", str(tmp_path / "t"), "--json", **here)
    report = json.loads(done.stdout)
    assert (done.returncode, report["accepted"]) == (1, 1)
    assert list(report["unreadable"]) == [str(tmp_path / "t" / "x.jsonl")]


def test_a_folder_without_any_transcript_is_an_error(here: dict[str, str], tmp_path: Path) -> None:
    written(tmp_path / "t" / "package.json", {"name": "x"})
    done = esker("ingest", str(tmp_path / "t"), **here)
    assert (done.returncode, "no transcript that Esker reads" in done.stdout) == (1, True)


def test_a_transcript_without_messages_is_none(here: dict[str, str], tmp_path: Path) -> None:
    written(tmp_path / "t" / "x.jsonl", {"type": "summary", "summary": "x", "leafUuid": "u"})
    report = ingested(str(tmp_path / "t"), **here)
    assert (report["files"], report["sessions"]) == (1, [])


def fork(session: str, parent: str, *names: str) -> list[dict[str, Any]]:
    """Return lines that a session copied from another one when it was forked."""
    lines = claude(parent, *names)
    return [
        line | {"sessionId": session, "forkedFrom": {"sessionId": parent, "messageUuid": line["uuid"]}}
        for line in lines
    ]


@pytest.mark.parametrize("order", [("parent", "fork"), ("fork", "parent")])
def test_a_fork_tells_only_what_its_parent_has_not(
    server: str, here: dict[str, str], tmp_path: Path, order: tuple[str, str]
) -> None:
    parent, child = f"parent-{order[0]}", f"fork-{order[0]}"
    names = [f"{order[0]}-{number}" for number in range(3)]
    written(tmp_path / "parent" / "p.jsonl", *claude(parent, *names[:2]))
    written(tmp_path / "fork" / "f.jsonl", *fork(child, parent, *names[:2]), *claude(child, names[2]))
    for folder in order:
        ingested(str(tmp_path / folder), **here)
    assert ingested(str(tmp_path), "--again", **here)["accepted"] == 0
    assert (stored(server, parent), stored(server, child)) == (names[:2], names[2:])


def test_a_fork_that_does_not_say_so_is_known_by_the_ids_of_its_lines(
    server: str, here: dict[str, str], tmp_path: Path
) -> None:
    first, second, third = (f"5b1c2d3e-0000-4000-8000-00000000000{number}" for number in range(3))
    written(tmp_path / "p.jsonl", *claude("unsaid-parent", first, second))
    written(tmp_path / "q.jsonl", *claude("unsaid-fork", first, second, third))
    report = ingested(str(tmp_path), **here)
    assert (report["accepted"], report["duplicates"]) == (3, 2)
    assert (stored(server, "unsaid-parent"), stored(server, "unsaid-fork")) == ([first, second], [third])


@pytest.mark.parametrize("arguments", [(), ("--all", "x.jsonl")])
def test_ingest_needs_paths_or_all(here: dict[str, str], arguments: tuple[str, ...]) -> None:
    done = esker("ingest", *arguments, **here)
    assert (done.returncode, "--all" in done.stderr) == (2, True)
