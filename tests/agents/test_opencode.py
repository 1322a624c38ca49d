"""The reader of OpenCode: a database that another program writes, and the files of older builds."""

import json
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.database_file import reading
from esker.server.agents.opencode import read_transcript, recognises_file
from tests.support.opencode import THEN, OpenCodeStore
from tests.support.transcripts import names, only, shown

CALL = {"type": "tool", "callID": "c1", "tool": "bash"}


@pytest.fixture
def store(tmp_path: Path) -> Generator[OpenCodeStore]:
    """A database that its writer has open."""
    made = OpenCodeStore(tmp_path / "opencode.db")
    with closing(made.connection):
        yield made


def text(words: str, **more: Any) -> dict[str, Any]:
    """Return a text part."""
    return {"type": "text", "text": words, **more}


def test_a_fork_does_not_tell_what_the_session_has_that_it_was_made_from(tmp_path: Path) -> None:
    store = OpenCodeStore(tmp_path / "opencode.db")
    with closing(store.connection):
        for session, begun in (("ses_a", THEN), ("ses_b", THEN + 9)):
            store.session(session, begun=begun)
            store.message(session, f"{session}.1", "user", {"type": "text", "text": "The roof is red."})
        store.message("ses_b", "ses_b.2", "user", {"type": "text", "text": "Add a logo."}, time={"created": THEN + 10})
        reading = read_transcript(store.path)
        assert {each.external_id: shown(each) for each in reading.transcripts} == {
            "ses_a": ["user: The roof is red."],
            "ses_b": ["user: Add a logo."],
        }
        assert reading.skipped["message copied from another session"] == 1
        store.connection.execute("DELETE FROM message WHERE session_id = 'ses_a'")
        store.connection.commit()
        alone = only(read_transcript(store.path, session="ses_b"))
    assert shown(alone) == ["user: The roof is red.", "user: Add a logo."]


def test_a_database_is_read_while_its_writer_holds_it_open(store: OpenCodeStore) -> None:
    done = {**CALL, "state": {"status": "completed", "input": {"command": "ls"}, "output": "a.txt"}}
    store.session("s1")
    store.message("s1", "m1", "user", text("List."))
    store.message("s1", "m2", "assistant", {"type": "step-start"}, text("I look."), done, {"type": "step-finish"})
    before = store.beside()
    assert "opencode.db-wal" in before
    reading = read_transcript(store.path)
    transcript = only(reading)
    assert (transcript.client, transcript.external_id, transcript.cwd) == ("opencode", "s1", "/work/shop")
    assert shown(transcript) == [
        "user: List.",
        "assistant: I look.",
        'assistant: bash({"command": "ls"})',
        "user: got a.txt",
    ]
    assert names(transcript) == ["m1.0", "m2.1", "m2.2", "m2.2/result"]
    assert [entry.sent_at and entry.sent_at.timestamp() for entry in transcript.entries] == [THEN / 1_000] * 4
    assert reading.skipped == {"step-start part": 1, "step-finish part": 1}
    assert store.beside() == before
    store.message("s1", "m3", "user", text("Thanks."))  # the reader does not block the writer
    assert shown(only(read_transcript(store.path)))[-1] == "user: Thanks."


def test_an_uncommitted_transaction_is_not_read(store: OpenCodeStore) -> None:
    store.session("s1")
    store.message("s1", "m1", "user", text("List."))
    store.connection.execute("BEGIN IMMEDIATE")
    store.connection.execute("DELETE FROM part")
    assert shown(only(read_transcript(store.path))) == ["user: List."]
    store.connection.rollback()


def test_reading_a_closed_database_creates_no_files(store: OpenCodeStore) -> None:
    store.session("s1")
    store.message("s1", "m1", "user", text("List."))
    store.connection.close()
    assert store.beside() == ["opencode.db"]
    before = store.path.stat()
    assert recognises_file(store.path)
    assert shown(only(read_transcript(store.path))) == ["user: List."]
    assert store.beside() == ["opencode.db"]
    assert store.path.stat().st_mtime_ns == before.st_mtime_ns


def test_a_closed_database_that_changes_while_it_is_read_is_an_error(store: OpenCodeStore) -> None:
    store.connection.close()

    def write_while_reading() -> None:
        with reading(store.path), closing(sqlite3.connect(store.path)) as writer:
            writer.execute("INSERT INTO todo VALUES ('s1', 'x')")
            writer.commit()

    with pytest.raises(OSError, match="try again"):
        write_while_reading()


def test_the_wal_of_a_killed_writer_is_read_and_left_alone(store: OpenCodeStore, tmp_path: Path) -> None:
    store.session("s1")
    store.message("s1", "m1", "user", text("List."))
    left = tmp_path / "left"
    left.mkdir()
    for name in ("opencode.db", "opencode.db-wal"):
        (left / name).write_bytes((tmp_path / name).read_bytes())
    assert shown(only(read_transcript(left / "opencode.db"))) == ["user: List."]
    assert sorted(os.listdir(left)) == ["opencode.db", "opencode.db-wal"]


def test_entries_keep_their_id_and_content_while_a_session_grows(store: OpenCodeStore) -> None:
    running = {**CALL, "state": {"status": "running", "input": {"command": "ls"}}}
    pending = {**CALL, "callID": "c2", "state": {"status": "pending", "input": {}}}
    now = int(time.time() * 1_000)
    half = text("I lo", time={"start": now})
    store.session("s1")
    store.message("s1", "m1", "user", text("List."))
    store.message("s1", "m2", "assistant", running, pending, half, touched=now)
    reading = read_transcript(store.path)
    before = only(reading)
    assert shown(before) == ["user: List.", 'assistant: bash({"command": "ls"})']
    assert reading.skipped == {"tool part": 1, "text that is still being written": 1}
    done = [{**part, "state": {**part["state"], "status": "completed", "output": "a"}} for part in (running, pending)]
    for number, part in enumerate([*done, text("I looked.", time={"start": now, "end": now})]):
        store.connection.execute("UPDATE part SET data = ? WHERE id = ?", (json.dumps(part), f"m2.{number}"))
    store.connection.commit()
    after = only(read_transcript(store.path))
    assert [entry for entry in after.entries if entry in before.entries] == before.entries
    assert names(after) == ["m1.0", "m2.0", "m2.0/result", "m2.1", "m2.1/result", "m2.2"]


def test_an_unfinished_text_is_read_once_it_no_longer_changes(store: OpenCodeStore) -> None:
    store.session("s1")
    store.message("s1", "m1", "assistant", text("I was cut o", time={"start": THEN}))
    assert shown(only(read_transcript(store.path))) == ["assistant: I was cut o"]


def test_synthetic_parts_are_skipped_and_counted(store: OpenCodeStore) -> None:
    store.session("s1")
    store.message("s1", "m1", "user", text("Go."), text("[file contents]", synthetic=True), text("x", ignored=True))
    store.message("s1", "m2", "assistant", text("All of it, summed up."), summary=True)
    store.message("s1", "m3", "assistant", text("Also."), mode="compaction")
    store.message("s1", "m4", "assistant", error={"name": "APIError"})
    store.message("s1", "m5", "user", "{broken", b"\xff\xfe", "5", "null", text("On."))
    store.message("s1", "m6", "wizard", text("Abracadabra."))
    store.connection.execute("INSERT INTO message VALUES ('m7', 's1', ?, ?, '[1]')", (THEN, THEN))
    store.connection.commit()
    reading = read_transcript(store.path)
    assert shown(only(reading)) == ["user: Go.", "user: On."]
    assert reading.skipped == {
        "synthetic part": 2,
        "compaction summary": 2,
        "API error": 1,
        "broken row": 5,
        "message without a role": 1,
    }


@pytest.mark.parametrize(
    ("revert", "seen"),
    [
        (None, ["user: One.", "assistant: Two.", "assistant: Three.", "user: Four."]),
        ({"messageID": "m2"}, ["user: One."]),
        ({"messageID": "m2", "partID": "m2.1"}, ["user: One.", "assistant: Two."]),
        ({"messageID": "gone"}, ["user: One.", "assistant: Two.", "assistant: Three.", "user: Four."]),
    ],
)
def test_undone_messages_are_skipped_until_they_are_restored(
    store: OpenCodeStore, revert: Any, seen: list[str]
) -> None:
    store.session("s1")
    store.message("s1", "m1", "user", text("One."))
    store.message("s1", "m2", "assistant", text("Two."), text("Three."))
    store.message("s1", "m3", "user", text("Four."))
    store.connection.execute("ALTER TABLE session ADD COLUMN revert TEXT")
    store.connection.execute("UPDATE session SET revert = ?", (revert and json.dumps(revert),))
    store.connection.commit()
    reading_ = read_transcript(store.path)
    assert shown(only(reading_)) == seen
    undone = 2 if revert and revert["messageID"] == "m2" else 0
    assert reading_.skipped["message that was undone"] == undone


def test_a_child_is_a_session_of_its_own_without_the_user(store: OpenCodeStore) -> None:
    store.session("s1")
    store.session("s2", parent="s1")
    store.message("s1", "m1", "user", text("Send somebody."))
    store.message("s2", "m2", "user", text("List."))
    failed = {**CALL, "state": {"status": "error", "input": {}, "error": "denied"}}
    store.message("s2", "m3", "assistant", failed)
    root, child = read_transcript(store.path).transcripts
    assert (root.external_id, shown(root)) == ("s1", ["user: Send somebody."])
    assert (child.external_id, shown(child)) == (
        "s2",
        ["assistant: List.", "assistant: bash({})", "user: failed denied"],
    )
    assert only(read_transcript(store.path, session="s2")) == child


def test_foreign_and_damaged_databases_do_not_crash_the_reader(tmp_path: Path, store: OpenCodeStore) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE session (id TEXT)")
    assert not recognises_file(other)
    with pytest.raises(OSError, match="cannot be read"):
        read_transcript(other)
    store.session("s1")
    store.connection.close()
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(store.path.read_bytes()[:5_000])
    with pytest.raises(OSError, match="cannot be read"):
        read_transcript(damaged)
    for nothing in (b"", b"no database at all"):
        damaged.write_bytes(nothing)
        assert not recognises_file(damaged)
        with pytest.raises(OSError, match="not a database"):
            read_transcript(damaged)


# Files of older builds -----------------------------------------------------------------------------------------------


def filed(storage: Path, kind: str, folder: str, name: str, value: Any) -> Path:
    """Write a file of a storage folder."""
    path = storage / kind / folder / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_files_of_older_builds_give_the_same_entries(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    session = {"id": "s1", "projectID": "p", "directory": "/work/shop", "parentID": None}
    path = filed(storage, "session", "p", "ses_s1", session)
    filed(storage, "message", "s1", "msg_2", {"id": "m2", "role": "assistant", "time": {"created": THEN + 1}})
    filed(storage, "message", "s1", "msg_9", {"id": "m1", "role": "user", "time": {"created": THEN}})
    filed(storage, "message", "s1", "msg_b", "{broken")
    filed(storage, "part", "m1", "prt_1", text("List.", id="x1"))
    done = {**CALL, "id": "x2", "messageID": "m2", "state": {"status": "completed", "input": {}, "output": "a"}}
    filed(storage, "part", "m2", "prt_1", done)
    filed(storage, "part", "m2", "prt_2", text("One.", id="x3"))
    expected = ["user: List.", "assistant: bash({})", "user: got a", "assistant: One."]
    for place in (path, storage):
        reading = read_transcript(place)
        assert (only(reading).external_id, shown(only(reading))) == ("s1", expected)
        assert (names(only(reading)), reading.skipped["broken file"]) == (["x1", "x2", "x2/result", "x3"], 1)
    assert recognises_file(path)
    assert not recognises_file(storage / "message" / "s1" / "msg_2.json")


@pytest.mark.parametrize("name", ["../../elsewhere", "/etc", "x" * 300, "a\0b", ".."])
def test_an_id_that_names_no_folder_of_the_storage_is_not_followed(tmp_path: Path, name: str) -> None:
    storage = tmp_path / "storage"
    filed(tmp_path, "elsewhere", "", "secret", {"role": "user"})
    path = filed(storage, "session", "p", "ses_1", {"id": name})
    filed(storage, "message", "ses_1", "msg_1", {"id": name, "role": "user", "time": {"created": THEN}})
    filed(storage, "part", "msg_1", "prt_1", text("List."))
    transcript = only(read_transcript(path))
    assert transcript.external_id == "ses_1"
    assert names(transcript) == ["msg_1/prt_1"]


def test_parts_in_one_folder_are_assigned_to_their_messages(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    path = filed(storage, "session", "p", "ses_s1", {"id": "s1"})
    for number, role in enumerate(("user", "assistant")):
        message = {"id": f"m{number}", "role": role, "time": {"created": THEN + number}}
        filed(storage, "message", "s1", f"msg_{number}", message)
        filed(storage, "part", "", f"prt_{number}", text(f"By {role}.", messageID=f"m{number}"))
    filed(storage, "part", "", "prt_9", text("Nobody's."))
    assert shown(only(read_transcript(path))) == ["user: By user.", "assistant: By assistant."]
