"""The reader of Copilot CLI: events, and sub-agents among them."""

from pathlib import Path
from typing import Any

from esker.server.agents.copilot import read_transcript
from tests.support.transcripts import names, only, shown, written

AT = "2026-03-02T09:00:00.000Z"


def event(name: str, kind: str, **data: Any) -> dict[str, Any]:
    """Return an event."""
    return {"type": kind, "data": data, "id": name, "timestamp": AT, "parentId": None}


START = event("e1", "session.start", sessionId="c1", context={"cwd": "/work/shop", "repository": "me/shop"})
REQUEST = {"toolCallId": "t1", "name": "bash", "arguments": '{"command": "ls"}'}


def test_a_session_has_the_repository_that_its_start_names(tmp_path: Path) -> None:
    context = {"cwd": "/nowhere/shop", "gitRoot": "/nowhere/shop", "repository": "Acme/Shop"}
    start = {"type": "session.start", "id": "e0", "data": {"sessionId": "c1", "context": context}}
    said = {"type": "user.message", "id": "e1", "data": {"content": "Hello."}}
    skill = {"type": "user.message", "id": "e2", "data": {"content": "Always use tables.", "source": "skill-pdf"}}
    reading = read_transcript(written(tmp_path / "c1" / "events.jsonl", start, said, skill))
    assert (only(reading).project, only(reading).cwd, shown(only(reading))) == (
        "acme/shop",
        "/nowhere/shop",
        ["user: Hello."],
    )
    assert reading.skipped["message of skill-pdf"] == 1


def test_events_become_messages(tmp_path: Path) -> None:
    lines = (
        START,
        event("e2", "user.message", content="List.", transformedContent="<context>List.</context>"),
        event("e3", "assistant.turn_start", turnId="0"),
        event("e4", "assistant.message", content="I look.", toolRequests=[REQUEST, {"no": "name"}, None]),
        event("e5", "tool.execution_start", toolCallId="t1", toolName="bash"),
        event("e6", "tool.execution_complete", toolCallId="t1", success=True, result={"content": "a.txt"}),
        event("e7", "tool.execution_complete", toolCallId="t2", success=False, error={"message": "denied"}),
        event("e8", "assistant.message", content="", toolRequests=[]),
        event("e9", "system.message", content="You are Copilot."),
    )
    reading = read_transcript(written(tmp_path / "c1" / "events.jsonl", *lines))
    transcript = only(reading)
    assert (transcript.external_id, transcript.cwd) == ("c1", "/work/shop")
    assert shown(transcript) == [
        "user: List.",
        'assistant: I look. + bash({"command": "ls"})',
        "user: got a.txt",
        "user: failed denied",
    ]
    assert names(transcript) == ["e2", "e4", "e6", "e7"]
    assert reading.skipped == {
        "session.start line": 1,
        "assistant.turn_start line": 1,
        "tool.execution_start line": 1,
        "message without content": 1,
        "system.message line": 1,
    }


def test_a_resumed_session_keeps_its_id(tmp_path: Path) -> None:
    resumed = event("e3", "session.resume", sessionId="other", context={"cwd": "/other"})
    lines = (START, event("e2", "user.message", content="One."), resumed, event("e4", "user.message", content="Two."))
    transcript = only(read_transcript(written(tmp_path / "events.jsonl", *lines)))
    assert (transcript.external_id, transcript.cwd, shown(transcript)) == (
        "c1",
        "/work/shop",
        ["user: One.", "user: Two."],
    )


def test_without_a_start_the_folder_names_the_session(tmp_path: Path) -> None:
    path = written(tmp_path / "c9" / "events.jsonl", event("e2", "user.message", content="One."))
    assert only(read_transcript(path)).external_id == "c9"


def test_a_sub_agent_is_a_session_of_its_own_without_the_user(tmp_path: Path) -> None:
    lines = (
        START,
        event("e2", "user.message", content="Send somebody."),
        event("e3", "user.message", content="List.", parentToolCallId="t9"),
        event("e4", "assistant.message", content="", toolRequests=[REQUEST], parentToolCallId="t9"),
        event("e5", "tool.execution_complete", toolCallId="t1", result={"content": "a"}, parentToolCallId="t9"),
    )
    root, kid = read_transcript(written(tmp_path / "events.jsonl", *lines)).transcripts
    assert (root.external_id, shown(root)) == ("c1", ["user: Send somebody."])
    assert (kid.external_id, kid.cwd) == ("c1/agent-t9", "/work/shop")
    assert shown(kid) == ["assistant: List.", 'assistant: bash({"command": "ls"})', "user: got a"]


def test_a_tool_that_the_user_ran_is_a_call_and_each_call_is_kept_once(tmp_path: Path) -> None:
    lines = (
        START,
        event("e2", "tool.execution_start", toolCallId="t0", toolName="bash", arguments={"command": "pwd"}),
        event("e3", "tool.execution_complete", toolCallId="t0", success=True, result={"content": "/work"}),
        event("e4", "tool.execution_start", toolCallId="t1", toolName="bash", arguments={"command": "ls"}),
        event("e5", "assistant.message", content="I look.", toolRequests=[REQUEST]),
        event("e6", "tool.execution_complete", toolCallId="t1", success=True, result={"lines": 3}),
    )
    assert shown(only(read_transcript(written(tmp_path / "events.jsonl", *lines)))) == [
        'assistant: bash({"command": "pwd"})',
        "user: got /work",
        'assistant: bash({"command": "ls"})',
        "assistant: I look.",
        'user: got {"lines": 3}',
    ]


def test_each_message_has_the_directory_of_its_time(tmp_path: Path) -> None:
    lines = (
        START,
        event("e2", "user.message", content="One."),
        event("e3", "session.context_changed", cwd="/private", gitRoot="/"),
        event("e4", "user.message", content="Two."),
        event("e5", "session.resume", context={"cwd": "/work/shop"}),
        event("e6", "user.message", content="Three."),
    )
    transcript = only(read_transcript(written(tmp_path / "events.jsonl", *lines)))
    assert [entry.cwd for entry in transcript.entries] == ["/work/shop", "/private", "/work/shop"]
    assert (transcript.external_id, transcript.cwd) == ("c1", "/work/shop")
