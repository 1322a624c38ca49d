"""All readers: detection of the client, locations of session files, and no crash for any input."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.server.agents import claude_code, codex, copilot, cursor, gemini, opencode, pi
from esker.server.agents.compressed import opened
from esker.server.agents.readers import READERS, client_of, sessions, stamp, transcripts_in
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.conversation.records import ROLES
from esker.server.core.conversation.valid_blocks import as_blocks
from tests.support.transcripts import names, only, shown, written

BY_LINES = {
    claude_code.CLIENT: claude_code,
    codex.CLIENT: codex,
    copilot.CLIENT: copilot,
    cursor.CLIENT: cursor,
    gemini.CLIENT: gemini,
    pi.CLIENT: pi,
}
AT = "2026-03-02T09:00:00Z"
ITEM = {"type": "message", "role": "user", "content": "Hi."}
# A line by which each client is recognised.
LINES: list[tuple[str, Any]] = [
    ("claude-code", {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": "Hi."}}),
    ("claude-code", {"type": "summary", "summary": "x", "leafUuid": "u"}),
    ("claude-code", {"type": "user", "message": {"role": "user", "content": "Hi."}}),
    ("codex", {"timestamp": AT, "type": "session_meta", "payload": {"id": "s", "cwd": "/"}}),
    ("codex", {"timestamp": AT, "type": "response_item", "payload": ITEM}),
    ("codex", ITEM),
    ("codex", {"created_at": AT, "role": "user", "message": "Hi."}),
    ("codex", {"type": "user", "content": "Hi."}),
    ("gemini-cli", {"sessionId": "s", "projectHash": "f", "startTime": AT}),
    ("gemini-cli", {"id": "u", "timestamp": AT, "type": "user", "content": "Hi."}),
    ("gemini-cli", {"$set": {}}),
    ("pi", {"type": "session", "version": 3, "id": "s", "timestamp": AT, "cwd": "/"}),
    ("pi", {"type": "message", "id": "a", "parentId": None, "message": {"role": "user", "content": []}}),
    ("cursor", {"role": "user", "message": {"content": [{"type": "text", "text": "Hi."}]}}),
    ("copilot", {"type": "session.start", "data": {"sessionId": "s"}, "id": "e1"}),
    ("copilot", {"type": "user.message", "data": {"content": "Hi."}, "id": "e1"}),
]


@pytest.mark.parametrize(("client", "line"), LINES)
def test_a_files_client_is_detected_even_after_unknown_lines(tmp_path: Path, client: str, line: Any) -> None:
    assert client_of(written(tmp_path / "x.jsonl", line)) == client
    before: list[Any] = [b"{broken", b"5", {"unheard": "of"}, b"\xff\xfe"]
    path = written(tmp_path / "y.jsonl", *before, line)
    assert client_of(path) == client
    assert READERS[client](path, opened).recognised
    bom = written(tmp_path / "z.jsonl", b"\xef\xbb\xbf" + json.dumps(line).encode())
    assert client_of(bom) == client


@pytest.mark.parametrize(
    "raw", [b"", b"words", b"5\n[1]\n", b'{"a": 1}\n', b'{"type": "event", "data": 1}\n', b"\0" * 99]
)
def test_an_unknown_file_has_no_client(tmp_path: Path, raw: bytes) -> None:
    for name in ("x.jsonl", "x.json", "x.db"):
        (tmp_path / name).write_bytes(raw)
        assert client_of(tmp_path / name) is None


PACK = "<global_observations>\n* Use tabs.\n</global_observations>"


@pytest.mark.parametrize(("content", "kept"), [(PACK, []), (f"{PACK}\n\nList the files.", ["user: List the files."])])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_a_pack_in_a_prompt_is_left_out_counted_and_named(
    tmp_path: Path, content: str, kept: list[str], *, in_blocks: bool
) -> None:
    said = [{"type": "text", "text": content}] if in_blocks else content
    line: dict[str, Any] = {"type": "user", "uuid": "u1", "sessionId": "s", "timestamp": "2026-03-02T09:00:00Z"}
    line |= {"message": {"role": "user", "content": said}}
    reading = claude_code.read_transcript(written(tmp_path / "s.jsonl", line))
    assert [text for transcript in reading.transcripts for text in shown(transcript)] == kept
    assert reading.skipped == Counter({"injected context": 1})


def test_sessions_from_the_web_are_read(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    lines = [{"type": "user", "timestamp": AT, "message": {"role": "user", "content": "Hi."}}, 5, {"type": "x"}]
    path.write_text(json.dumps({"loglines": lines}))
    assert client_of(path) == "claude-code"
    assert shown(only(claude_code.read_transcript(path))) == ["user: Hi."]


# Locations -----------------------------------------------------------------------------------------------------------

SAID = {"type": "user", "uuid": "u", "message": {"role": "user", "content": "Hi."}}


def test_every_client_is_found_where_it_keeps_its_sessions(tmp_path: Path) -> None:
    kept = {
        "claude-code": [".claude/projects/-work/s.jsonl", ".claude/projects/-work/s/subagents/agent-a.jsonl"],
        "codex": [
            ".codex/archived_sessions/rollout-a.jsonl",
            ".codex/sessions/2026/03/02/rollout-b.jsonl",
            ".codex/sessions/2026/03/02/rollout-c.jsonl.zst",
        ],
        "gemini-cli": [".gemini/tmp/h/chats/session-a.json", ".gemini/tmp/h/chats/session-b.jsonl"],
        "opencode": [".local/share/opencode/opencode.db"],
        "pi": [".pi/agent/sessions/--work--/x_1.jsonl"],
        "cursor": [".cursor/projects/work/agent-transcripts/t/t.jsonl"],
        "copilot": [".copilot/session-state/c/events.jsonl"],
    }
    others = [
        ".claude/history.jsonl",
        ".gemini/tmp/h/logs.json",
        ".cursor/projects/work/x.jsonl",
        ".codex/history.jsonl",
    ]
    for name in [*(name for found in kept.values() for name in found), *others]:
        written(tmp_path / name, SAID)
    found = sessions({}, tmp_path)
    assert {client: {str(path.relative_to(tmp_path)) for path in paths} for client, paths in found.items()} == {
        client: set(paths) for client, paths in kept.items()
    }


def test_moved_folders_are_found_through_the_clients_variables(tmp_path: Path) -> None:
    written(tmp_path / "a" / "projects" / "-w" / "s.jsonl", SAID)
    written(tmp_path / "b" / "sessions" / "rollout-x.jsonl", SAID)
    storage = tmp_path / "c" / "opencode" / "storage"
    written(storage / "session" / "p" / "ses_1.json", {"id": "s1"})
    (storage / "message").mkdir()
    moved = {"CLAUDE_CONFIG_DIR": "a", "CODEX_HOME": "b", "XDG_DATA_HOME": "c"}
    found = sessions({name: str(tmp_path / folder) for name, folder in moved.items()}, tmp_path / "home")
    assert {client: [path.name for path in paths] for client, paths in found.items()} == {
        "claude-code": ["s.jsonl"],
        "codex": ["rollout-x.jsonl"],
        "opencode": ["ses_1.json"],
    }
    written(tmp_path / "c" / "opencode" / "opencode.db", SAID)  # a database replaces the files
    found = sessions({"XDG_DATA_HOME": str(tmp_path / "c")}, tmp_path / "home")
    assert [path.name for path in found["opencode"]] == ["opencode.db"]
    assert sessions({}, tmp_path / "home") == {}


def test_a_folders_transcripts_are_found_and_an_opencode_session_once(tmp_path: Path) -> None:
    storage = tmp_path / "o" / "storage"
    written(storage / "session" / "p" / "ses_1.json", {"id": "s1"})
    written(storage / "message" / "s1" / "msg_1.json", {"id": "m1", "role": "user"})
    written(storage / "part" / "m1" / "prt_1.json", {"type": "text", "text": "Hi."})
    for name in ("a.jsonl", "b.json", "c.jsonl.zst", "d.db", "e.meta.json", "f.txt", "sub/g.jsonl"):
        written(tmp_path / name, SAID)
    found = [str(path.relative_to(tmp_path)) for path in transcripts_in(tmp_path)]
    assert found == ["a.jsonl", "b.json", "c.jsonl.zst", "d.db", "o/storage/session/p/ses_1.json", "sub/g.jsonl"]


def test_a_stamp_changes_with_a_file_and_with_what_a_database_has_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path / "x.db", SAID)
    marks = [stamp(path)]
    written(path, SAID, SAID)
    marks.append(stamp(path))
    written(tmp_path / "x.db-wal", SAID)
    marks.append(stamp(path))
    assert len({str(mark) for mark in marks}) == 3
    session = written(tmp_path / "storage" / "session" / "p" / "ses_1.json", {"id": "s1"})
    (tmp_path / "storage" / "message").mkdir()
    assert stamp(session) is None


def test_a_claude_code_sub_agent_belongs_to_its_session_wherever_its_file_is(tmp_path: Path) -> None:
    line = {"type": "user", "uuid": "u", "isSidechain": True, "message": {"role": "user", "content": "Go."}}
    inside = written(
        tmp_path / "s1" / "subagents" / "agent-a1.jsonl", line | {"sessionId": "agent-a1", "agentId": "a1"}
    )
    beside = written(tmp_path / "agent-a2.jsonl", line | {"sessionId": "s1"})
    assert only(claude_code.read_transcript(inside)).external_id == "s1/agent-a1"
    assert only(claude_code.read_transcript(beside)).external_id == "s1/agent-a2"


# Arbitrary input -----------------------------------------------------------------------------------------------------

KEYS = [
    *("type", "id", "parentId", "timestamp", "message", "content", "role", "payload", "data", "text", "name", "input"),
    *("uuid", "sessionId", "isSidechain", "agentId", "cwd", "call_id", "arguments", "output", "item", "num_turns"),
    *("toolCalls", "status", "result", "args", "$set", "$rewindTo", "messages", "kind", "displayContent", "parts"),
    *("functionCall", "functionResponse", "response", "toolRequests", "toolCallId", "parentToolCallId", "source"),
    *("toolName", "isError", "command", "exitCode", "subagent", "thread_spawn", "parent_thread_id", "directories"),
    *("attachment", "prompt", "context", "uuid", "cwd", "revert", "messageID"),
]
WORDS = [
    *("user", "assistant", "message", "session", "compaction", "toolResult", "bashExecution", "session_meta", "system"),
    *("response_item", "event_msg", "turn_context", "compacted", "function_call", "function_call_output", "tool_use"),
    *("user_message", "agent_message", "item_completed", "UserMessage", "CommandExecution", "thread_rolled_back"),
    *("exec_command_end", "mcp_tool_call_end", "gemini", "info", "model", "subagent", "session.start", "tool_result"),
    *("user.message", "assistant.message", "tool.execution_complete", "text", "toolCall", "image", "thinking", "a"),
    *("input_text", "input_image", AT, "/work", "<environment_context>x</environment_context>", "\ud800", "\0", ""),
]
any_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
typed = st.fixed_dictionaries(
    {"type": st.sampled_from(WORDS)},
    optional=dict.fromkeys(("payload", "message", "data", "role", "id", "parentId", "content", "item"), any_value),
)
any_line = typed | st.dictionaries(st.sampled_from(KEYS), any_value, max_size=6)
any_raw = any_line.map(lambda line: json.dumps(line).encode()) | st.binary().map(lambda raw: raw.replace(b"\n", b""))


def can_be_sent(reading: ParsedTranscripts) -> None:
    """Check that the server would accept everything that was read."""
    for transcript in reading.transcripts:
        assert 0 < len(transcript.external_id) <= 512
        assert len(set(names(transcript))) == len(transcript.entries)
        for entry in transcript.entries:
            assert entry.role in ROLES
            assert 0 < len(entry.external_id) <= 512
            assert as_blocks(entry.content)
            json.dumps([entry.external_id, entry.content], ensure_ascii=False).encode()
            assert entry.sent_at is None or entry.sent_at.tzinfo


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(any_raw, max_size=7))
def test_no_lines_crash_a_reader_and_every_result_can_be_sent(tmp_path: Path, lines: list[bytes]) -> None:
    path = written(tmp_path / "x.jsonl", *lines)
    for client in BY_LINES:
        can_be_sent(READERS[client](path, opened))
    client_of(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(any_raw, max_size=5), st.lists(any_raw, max_size=5))
def test_appending_lines_never_changes_earlier_entries(tmp_path: Path, lines: list[bytes], more: list[bytes]) -> None:
    path = written(tmp_path / "x.jsonl", *lines)
    clients = ("claude-code", "copilot", "cursor")
    before = {client: READERS[client](path, opened).transcripts for client in clients}
    written(path, *lines, *more)
    for client in clients:
        after = {each.external_id: each for each in READERS[client](path, opened).transcripts}
        for transcript in before[client]:
            grown = after[transcript.external_id]
            assert names(grown)[: len(transcript.entries)] == names(transcript), client
            assert shown(grown)[: len(transcript.entries)] == shown(transcript), client


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(any_value | st.fixed_dictionaries({}, optional=dict.fromkeys(("messages", "history", "loglines"), any_value)))
def test_no_document_crashes_a_reader(tmp_path: Path, document: Any) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document))
    for client in (*BY_LINES, opencode.CLIENT):
        can_be_sent(READERS[client](path, opened))
    client_of(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(any_line, max_size=4), st.lists(any_line, max_size=4))
def test_no_opencode_files_crash_the_reader(tmp_path: Path, messages: list[Any], parts: list[Any]) -> None:
    storage = tmp_path / "storage"
    session = written(storage / "session" / "p" / "ses_1.json", {"id": "s1"})
    for number, message in enumerate(messages):
        whole = {"role": "user", **message, "id": f"m{number}"}
        written(storage / "message" / "s1" / f"msg_{number}.json", whole)
        for place, part in enumerate(parts):
            written(storage / "part" / f"m{number}" / f"prt_{place}.json", part)
    can_be_sent(opencode.read_transcript(session))


# Foreign files -------------------------------------------------------------------------------------------------------

FOLDERS = {"claude": "claude-code", "gemini": "gemini-cli"}


def foreign(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield foreign transcripts with the client that wrote them."""
    for path in transcripts_in(folder):
        name = path.relative_to(folder).parts[0]
        yield FOLDERS.get(name, name), path


def test_the_client_of_foreign_files_is_detected(transcripts: Path) -> None:
    seen: Counter[str] = Counter()
    for client, path in foreign(transcripts):
        assert client_of(path, opened) == client, path
        reading = READERS[client](path, opened)
        assert reading.recognised, path
        can_be_sent(reading)
        seen[client] += 1
    assert set(seen) == set(READERS)


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the JSON objects in a file, one from each line."""
    values = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
    return [value for value in values if isinstance(value, dict)]


def said_by(reading: ParsedTranscripts, role: str) -> list[str]:
    """Return the texts of a file without tool calls and results."""
    texts: list[str] = []
    for entry in (entry for transcript in reading.transcripts for entry in transcript.entries):
        blocks = as_blocks(entry.content)
        if entry.role == role:
            texts += [str(block["text"]) for block in blocks if block["type"] == "text"]
    return texts


def count_of(reading: ParsedTranscripts, kind: str) -> int:
    """Return the number of blocks of a type in a file."""
    entries = [entry for transcript in reading.transcripts for entry in transcript.entries]
    return sum(block["type"] == kind for entry in entries for block in as_blocks(entry.content))


def test_a_long_session_of_pi_is_read_whole(transcripts: Path) -> None:
    path = transcripts / "pi" / "pimono_before-compaction.jsonl"
    messages = [line["message"] for line in lines_of(path) if line["type"] == "message"]
    parts = [part for m in messages if m["role"] == "assistant" for part in m["content"]]
    asked = [part["text"] for m in messages if m["role"] == "user" for part in m["content"] if part["type"] == "text"]
    reading = pi.read_transcript(path)
    assert said_by(reading, "user") == asked
    assert said_by(reading, "assistant") == [part["text"] for part in parts if part["type"] == "text"]
    run = sum(m["role"] == "bashExecution" for m in messages)
    assert count_of(reading, "tool_use") == sum(part["type"] == "toolCall" for part in parts) + run
    assert count_of(reading, "tool_result") == sum(m["role"] == "toolResult" for m in messages) + run
    assert reading.skipped["compaction summary"] == 2


def test_no_message_of_codex_is_kept_twice(transcripts: Path) -> None:
    for path in sorted((transcripts / "codex").glob("*.jsonl")):
        reading = codex.read_transcript(path)
        messages = [line["payload"] for line in lines_of(path) if line.get("type") == "response_item"]
        asked = ["".join(p["text"] for p in m["content"] if "text" in p) for m in messages if m.get("role") == "user"]
        said = said_by(reading, "user")
        assert not Counter(asked) - Counter(said), path
        kept = [words for words in said if words != "[trimmed for fixture]"]
        assert len(kept) == len(set(kept)), path
        assert len(reading.transcripts) <= 1, path


def test_all_messages_of_cursor_and_copilot_are_kept(transcripts: Path) -> None:
    for path in sorted((transcripts / "cursor").rglob("*.jsonl")):
        reading = cursor.read_transcript(path)
        assert sum(len(t.entries) for t in reading.transcripts) == sum("role" in line for line in lines_of(path)), path
    for path in sorted((transcripts / "copilot").rglob("*.jsonl")):
        found = copilot.read_transcript(path)
        events = {line["id"]: line for line in lines_of(path)}.values()
        asked = [e["data"]["content"] for e in events if e["type"] == "user.message"]
        assert len(said_by(found, "user")) <= len(asked)
        assert set(said_by(found, "user")) <= set(asked), path
        texts = {e["data"]["content"] for e in events if e["type"] == "assistant.message" and e["data"]["content"]}
        assert set(said_by(found, "assistant")) == texts, path


def test_all_messages_of_gemini_are_kept(transcripts: Path) -> None:
    lines = lines_of(transcripts / "gemini" / "agentsessions_jsonl_v040.jsonl")
    records = {line["id"]: line for line in lines if line.get("type") in ("user", "gemini")}
    reading = gemini.read_transcript(transcripts / "gemini" / "agentsessions_jsonl_v040.jsonl")
    calls = [call for record in records.values() for call in record.get("toolCalls", [])]
    assert (count_of(reading, "tool_use"), count_of(reading, "tool_result")) == (len(calls), len(calls))
    assert len(said_by(reading, "user")) == sum(record["type"] == "user" for record in records.values())
    texts = [record["content"] for record in records.values() if record["type"] == "gemini" and record["content"]]
    assert said_by(reading, "assistant") == texts


def test_all_messages_of_opencode_are_kept_except_synthetic_ones(transcripts: Path) -> None:
    for storage in sorted(path.parent for path in (transcripts / "opencode").rglob("session")):
        parts = [json.loads(path.read_text()) for path in (storage / "part").rglob("*.json")]
        texts = {part["text"] for part in parts if part["type"] == "text" and not part.get("synthetic")}
        reading = opencode.read_transcript(storage)
        assert {*said_by(reading, "user"), *said_by(reading, "assistant")} == texts
        assert count_of(reading, "tool_use") == sum(part["type"] == "tool" for part in parts)


def test_readers_of_uncompressed_files_need_only_the_standard_library() -> None:
    code = (
        "import sys\nimport esker.server.agents.readers, esker.server.agents.progress, esker.server.agents.sending\n"
        "heavy = {'pydantic', 'typer', 'rich', 'httpx2', 'platformdirs', 'backports', 'tomlkit'}\n"
        "heavy |= {'esker.server.core.config.settings', 'esker.server.core.records'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
