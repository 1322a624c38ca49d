"""The reader of Gemini CLI: the messages of a log that rewrites itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.gemini import read_transcript
from esker.server.agents.readers import client_of
from esker.server.core.conversation.valid_blocks import as_blocks
from tests.support.transcripts import names, only, shown, written

AT = "2026-03-02T09:00:00.000Z"
HEADER = {"sessionId": "g1", "projectHash": "f" * 64, "startTime": AT, "lastUpdated": AT, "kind": "main"}


def record(name: str, kind: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a record."""
    return {"id": name, "timestamp": AT, "type": kind, "content": content, **more}


def tool(call: str, status: str = "success", **more: Any) -> dict[str, Any]:
    """Return a tool call of a record."""
    return {"id": call, "name": "run_shell_command", "args": {"command": "ls"}, "status": status, **more}


def answer(call: str, output: Any) -> list[dict[str, Any]]:
    """Return a result as Gemini CLI writes it."""
    return [{"functionResponse": {"id": call, "name": "run_shell_command", "response": output}}]


def chat(tmp_path: Path, *lines: Any, **header: Any) -> Path:
    """Write a chat."""
    return written(tmp_path / "session-2026-03-02.jsonl", HEADER | header, *lines)


ASKED = record("u1", "user", [{"text": "List the files."}])
CALLED, LISTED = 'assistant: run_shell_command({"command": "ls"})', "user: got a.txt"


HOOK = "<hook_context>&lt;global_observations&gt;\n* Use tabs.\n&lt;/global_observations&gt;</hook_context>"


@pytest.mark.parametrize(
    "content",
    [
        [{"text": f"{HOOK}\n\nList the files."}],
        f"{HOOK}{HOOK}\n\nList the files.",
        [{"text": "List the files."}, {"text": HOOK}],
        [{"text": f"List the files.\n\n{HOOK}"}],
        [{"text": HOOK}, {"text": "List the files."}],
        [{"text": "<global_observations>\n* Use tabs.\n</global_observations>\n\nList the files."}],
    ],
)
def test_the_context_of_a_hook_is_not_part_of_the_prompt(tmp_path: Path, content: Any) -> None:
    reading = read_transcript(chat(tmp_path, record("u1", "user", content), record("m1", "gemini", "None.")))
    assert shown(only(reading)) == ["user: List the files.", "assistant: None."]
    assert reading.skipped["injected context"] == 1


def test_the_context_of_a_hook_alone_is_not_a_message(tmp_path: Path) -> None:
    reading = read_transcript(chat(tmp_path, record("u1", "user", HOOK), ASKED | {"id": "u2"}))
    assert (shown(only(reading)), reading.skipped["injected context"]) == (["user: List the files."], 1)


@pytest.mark.parametrize(
    "header",
    [
        {"sessionId": "g1", "startTime": AT, "lastUpdated": AT},
        {"sessionId": "g1", "startTime": AT},
        {"lastUpdated": AT, "kind": "main", "sessionId": "g1"},
        {"type": "session_metadata", "sessionId": "g1", "startTime": AT},
    ],
)
def test_every_form_of_the_header_is_one(tmp_path: Path, header: dict[str, Any]) -> None:
    path = written(tmp_path / "x.jsonl", header, ASKED, record("m1", "gemini", [{"text": "None."}]))
    assert client_of(path) == "gemini-cli"
    reading = read_transcript(path)
    assert (only(reading).external_id, reading.skipped) == ("g1", {"header line": 1})


def test_the_last_version_of_a_record_counts_in_the_place_of_the_first(tmp_path: Path) -> None:
    first = record("m1", "gemini", "I look.", toolCalls=[tool("c1", "executing")])
    last = record("m1", "gemini", "I look.", toolCalls=[tool("c1", result=answer("c1", {"output": "a.txt"}))])
    reading = read_transcript(chat(tmp_path, ASKED, first, record("u2", "user", "And?"), last))
    transcript = only(reading)
    assert shown(transcript) == [
        "user: List the files.",
        "assistant: I look.",
        CALLED,
        LISTED,
        "user: And?",
    ]
    assert names(transcript) == ["u1", "m1", "m1/c1", "m1/c1/result", "u2"]
    assert reading.skipped == {"header line": 1, "rewritten record": 1}


def test_an_entry_keeps_its_id_and_content_when_calls_join_its_record(tmp_path: Path) -> None:
    before = only(read_transcript(chat(tmp_path, ASKED, record("m1", "gemini", "I look."))))
    calls = [tool("c1", result=answer("c1", {"output": "a.txt"}))]
    after = only(read_transcript(chat(tmp_path, ASKED, record("m1", "gemini", "I look.", toolCalls=calls))))
    assert after.entries[: len(before.entries)] == before.entries
    assert shown(after)[len(before.entries) :] == [CALLED, LISTED]


@pytest.mark.parametrize(
    ("output", "seen"),
    [
        ({"output": "a.txt"}, "got a.txt"),
        ({"error": "no such file"}, "got no such file"),
        ({"stdout": "a.txt", "code": 0}, "got a.txt"),
    ],
)
def test_results_have_the_content_that_the_model_saw(tmp_path: Path, output: Any, seen: str) -> None:
    calls = [tool("c1", result=answer("c1", output), resultDisplay="shown to a person")]
    assert (
        shown(only(read_transcript(chat(tmp_path, record("m1", "gemini", "", toolCalls=calls)))))[1] == f"user: {seen}"
    )


def test_a_failed_call_is_marked_and_a_displayed_result_is_the_fallback(tmp_path: Path) -> None:
    calls = [tool("c1", "error", resultDisplay="ENOENT"), tool("c2", "cancelled")]
    transcript = only(read_transcript(chat(tmp_path, record("m1", "gemini", "", toolCalls=calls))))
    assert shown(transcript) == [CALLED, CALLED, "user: failed ENOENT"]


def test_a_rewind_discards_its_target_and_everything_after_it(tmp_path: Path) -> None:
    lines = (ASKED, record("m1", "gemini", "Two."), record("u2", "user", "Wrong."), record("m2", "gemini", "Oh."))
    reading = read_transcript(chat(tmp_path, *lines, {"$rewindTo": "u2"}, record("u3", "user", "Right.")))
    assert shown(only(reading)) == ["user: List the files.", "assistant: Two.", "user: Right."]
    assert reading.skipped["message that was rewound"] == 2


@pytest.mark.parametrize("target", ["unheard of", None, 5, ["u1"]])
def test_a_rewind_to_an_unknown_record_discards_nothing(tmp_path: Path, target: Any) -> None:
    reading = read_transcript(chat(tmp_path, ASKED, {"$rewindTo": target}))
    assert shown(only(reading)) == ["user: List the files."]
    assert reading.skipped["rewind to an unknown record"] == 1


def test_a_compression_keeps_earlier_records_and_adds_only_new_ones(tmp_path: Path) -> None:
    context = record("x0", "user", "<session_context>\nThis is the Gemini CLI.\n</session_context>")
    summary = record("x1", "user", [{"text": "<state_snapshot>\nAll of it.\n</state_snapshot>"}])
    known = record("x2", "gemini", "Got it. Thanks for the additional context!")
    kept, new = record("x3", "gemini", "Two."), record("x4", "user", "From elsewhere.")
    lines = (
        {"$set": {"messages": [context], "lastUpdated": AT}},
        ASKED,
        record("m1", "gemini", "Two."),
        record("i1", "info", "Chat history compressed."),
        {"$set": {"messages": [summary, known, kept, new]}},
        record("u2", "user", "Go on."),
    )
    reading = read_transcript(chat(tmp_path, *lines))
    assert shown(only(reading)) == [
        "user: List the files.",
        "assistant: Two.",
        "user: From elsewhere.",
        "user: Go on.",
    ]
    assert reading.skipped["injected context"] == 3
    assert reading.skipped["info record"] == 1


def test_a_chat_that_only_has_the_models_view_is_read(tmp_path: Path) -> None:
    first, second = [ASKED], [ASKED, record("m1", "gemini", "Two."), ASKED | {"id": "u2"}]
    path = chat(tmp_path, {"$set": {"messages": first}}, {"$set": {"messages": second}})
    assert shown(only(read_transcript(path))) == [
        "user: List the files.",
        "assistant: Two.",
        "user: List the files.",
    ]


def test_calls_inside_content_are_calls(tmp_path: Path) -> None:
    asked = {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}}}
    lines = (
        record("m1", "gemini", [{"text": "Hm.", "thought": True}, {"text": "I look."}, asked]),
        record("u2", "user", answer("c1", {"output": "a.txt"})),
        record("u3", "user", answer("c1", {"output": "once more"})),
    )
    assert shown(only(read_transcript(chat(tmp_path, *lines)))) == ["assistant: I look.", CALLED, LISTED]


def test_calls_and_results_without_ids_are_paired_and_complete(tmp_path: Path) -> None:
    asked = {"functionCall": {"name": "run_shell_command", "args": {"command": "ls"}}}
    responses = [
        {"functionResponse": {"name": "run_shell_command", "response": {"output": words}}} for words in ("a", "b")
    ]
    history = [
        {"role": "user", "parts": [{"text": "List."}]},
        {"role": "model", "parts": [asked]},
        {"role": "user", "parts": [responses[0]]},
        {"role": "model", "parts": [asked]},
        {"role": "user", "parts": [responses[1]]},
    ]
    path = tmp_path / "saved.json"
    path.write_text(json.dumps({"history": history}))
    transcript = only(read_transcript(path))
    assert shown(transcript) == ["user: List.", CALLED, "user: got a", CALLED, "user: got b"]
    blocks: list[Any] = [block for entry in transcript.entries[1:] for block in as_blocks(entry.content)]
    first, got_first, second, got_second = (block.get("id") or block["tool_use_id"] for block in blocks)
    assert (first, second) == (got_first, got_second)
    assert first != second


def test_a_prompt_has_the_typed_text_without_the_inserted_files(tmp_path: Path) -> None:
    expanded = [{"text": "Explain @a.ts"}, {"text": "--- Content from referenced files ---"}, {"text": "let a"}]
    typed = record("u1", "user", expanded, displayContent=[{"text": "Explain @a.ts"}])
    assert shown(only(read_transcript(chat(tmp_path, typed)))) == ["user: Explain @a.ts"]


def test_the_json_of_older_builds_is_read(tmp_path: Path) -> None:
    path = tmp_path / "session-old.json"
    path.write_text(json.dumps(HEADER | {"messages": [ASKED, record("m1", "gemini", "Two."), 5, None]}))
    transcript = only(read_transcript(path))
    assert (transcript.external_id, shown(transcript)) == ("g1", ["user: List the files.", "assistant: Two."])
    saved = {"history": [{"role": "user", "parts": [{"text": "Hi."}]}, {"role": "model", "parts": [{"text": "Ho."}]}]}
    path.write_text(json.dumps(saved))
    assert shown(only(read_transcript(path))) == ["user: Hi.", "assistant: Ho."]
    path.write_text("{broken")
    reading = read_transcript(path)
    assert (reading.recognised, reading.skipped) == (False, {"broken file": 1})


def test_a_chat_has_the_directory_recorded_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / ".gemini" / "tmp" / "shop-1"
    path = written(folder / "chats" / "session-a.jsonl", HEADER, ASKED)
    assert (only(read_transcript(path)).cwd, only(read_transcript(path)).project) == (None, "shop-1")
    (tmp_path / ".gemini" / "projects.json").write_text(json.dumps({"projects": {"/work/shop": "shop-1"}}))
    assert only(read_transcript(path)).cwd == "/work/shop"
    (folder / ".project_root").write_text("/work/other\n")
    assert only(read_transcript(path)).cwd == "/work/other"
    hashed = written(tmp_path / ".gemini" / "tmp" / ("a" * 64) / "chats" / "session-b.jsonl", HEADER, ASKED)
    assert (only(read_transcript(hashed)).cwd, only(read_transcript(hashed)).project) == (None, None)


def test_a_sub_agent_is_a_session_of_its_own_without_the_user(tmp_path: Path) -> None:
    header = HEADER | {"kind": "subagent", "sessionId": "kid"}
    path = written(tmp_path / "chats" / "g1" / "kid.jsonl", header, ASKED, record("m1", "gemini", "Two."))
    transcript = only(read_transcript(path))
    assert transcript.external_id == "g1/agent-kid"
    assert shown(transcript) == ["assistant: List the files.", "assistant: Two."]
