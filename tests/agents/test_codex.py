"""The reader of Codex: each turn once, however often a rollout contains it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from backports import zstd

from esker.server.agents.codex import read_transcript
from esker.server.agents.compressed import opened
from esker.server.agents.transcript import Transcript
from esker.server.core.conversation.valid_blocks import as_blocks
from tests.support.transcripts import names, only, shown, written

META = {"id": "0199-root", "cwd": "/work/shop", "cli_version": "0.146.0", "source": "cli"}


def line(kind: str, payload: dict[str, Any], second: int = 0) -> dict[str, Any]:
    """Return a line with an envelope."""
    return {"timestamp": f"2026-03-02T09:00:{second:02}.000Z", "type": kind, "payload": payload}


def item(role: str, *texts: str) -> dict[str, Any]:
    """Return a message as an item of the model's API."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return line("response_item", {"type": "message", "role": role, "content": content})


def event(kind: str, **more: Any) -> dict[str, Any]:
    """Return an event."""
    return line("event_msg", {"type": kind, **more})


def thread(kind: str, **more: Any) -> dict[str, Any]:
    """Return a completed item of the thread."""
    return event("item_completed", thread_id="0199-root", turn_id="t1", item={"type": kind, "id": "i1", **more})


def rollout(tmp_path: Path, *lines: Any, **meta: Any) -> Path:
    """Write a rollout."""
    name = "rollout-2026-03-02T09-00-00-01994d10-0000-7000-8000-000000000001.jsonl"
    return written(tmp_path / name, line("session_meta", META | meta), *lines)


ASKED, ANSWERED = item("user", "List the files."), item("assistant", "There are two.")
ASKED_EVENT = event("user_message", message="List the files.", images=[])
ANSWERED_EVENT = event("agent_message", message="There are two.")
ASKED_THREAD = thread("UserMessage", content=[{"type": "text", "text": "List the files."}])
ANSWERED_THREAD = thread("AgentMessage", content=[{"type": "Text", "text": "There are two."}])
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
TURN = ["user: List the files.", "assistant: There are two."]


@pytest.mark.parametrize(
    "lines",
    [
        (ASKED, ANSWERED),
        (ASKED_EVENT, ANSWERED_EVENT),
        (ASKED_THREAD, ANSWERED_THREAD),
        (ASKED, ASKED_EVENT, ANSWERED, ANSWERED_EVENT),
        (ASKED_EVENT, ASKED, ANSWERED_EVENT, ANSWERED),
        (ASKED, ASKED_EVENT, ANSWERED_EVENT, event("token_count", info=None), ANSWERED),
        (ASKED_EVENT, ASKED, ASKED_THREAD, ANSWERED, ANSWERED_THREAD, ANSWERED_EVENT),
    ],
)
def test_a_turn_is_kept_once_whatever_channels_contain_it(tmp_path: Path, lines: tuple[Any, ...]) -> None:
    transcript = only(read_transcript(rollout(tmp_path, *lines)))
    assert shown(transcript) == TURN
    assert (transcript.external_id, transcript.cwd, transcript.project) == ("0199-root", "/work/shop", "shop")
    # The ids do not depend on the channel either, so a message has the same id in a half-read file.
    assert names(transcript) == names(only(read_transcript(rollout(tmp_path, ASKED, ANSWERED))))


def test_a_message_said_twice_is_kept_twice(tmp_path: Path) -> None:
    again = (ASKED, ASKED_EVENT, ANSWERED_EVENT, ANSWERED)
    transcript = only(read_transcript(rollout(tmp_path, *again, *again)))
    assert shown(transcript) == TURN * 2
    assert len(set(names(transcript))) == 4


def test_an_event_with_fewer_words_than_its_item_is_a_repetition(tmp_path: Path) -> None:
    framed = item("user", '<image name="[Image #1]">', "</image>", "Look at the Zugspitze.")
    cited = item("assistant", "A mountain.<oai-mem-citation>MEMORY.md:1</oai-mem-citation> Known well.")
    plan = item("assistant", "Here it is.\n<proposed_plan>1. Climb.</proposed_plan>")
    lines = (
        framed,
        event("user_message", message="Look at the Zugspitze."),
        cited,
        event("agent_message", message="A mountain. Known well."),
        item("user", "Plan."),
        event("agent_message", message="Here it is."),
        plan,
    )
    assert shown(only(read_transcript(rollout(tmp_path, *lines)))) == [
        "user: Look at the Zugspitze.",
        "assistant: A mountain.<oai-mem-citation>MEMORY.md:1</oai-mem-citation> Known well.",
        "user: Plan.",
        "assistant: Here it is.",
    ]


def test_context_injected_by_the_client_is_skipped(tmp_path: Path) -> None:
    lines = (
        item("developer", "You are Codex."),
        item(
            "user",
            "# AGENTS.md instructions for /work/shop\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
            "<environment_context>\n<cwd>/work/shop</cwd>\n</environment_context>",
        ),
        item("user", "<user_instructions>\nUse tabs.\n</user_instructions>"),
        item("user", "<environment_context>\n<cwd>/work/shop</cwd>\n</environment_context>", "Go on."),
        line("compacted", {"message": "Summary of it all.", "replacement_history": [ASKED["payload"]]}),
        line("turn_context", {"cwd": "/elsewhere"}),
        line("world_state", {"full": True}),
        line("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}),
        event("agent_reasoning", text="Hm."),
    )
    reading = read_transcript(rollout(tmp_path, *lines))
    assert shown(only(reading)) == ["user: Go on."]
    assert reading.skipped == {
        "session_meta line": 1,
        "message of developer": 1,
        "injected context": 2,
        "compaction summary": 1,
        "turn_context line": 1,
        "world_state line": 1,
        "reasoning item": 1,
        "agent_reasoning event": 1,
    }


def call(call_id: str, **more: Any) -> dict[str, Any]:
    """Return a call as an item."""
    given = {"type": "function_call", "name": "shell", "call_id": call_id, "arguments": '{"command": ["ls"]}'}
    return line("response_item", given | more)


def output(call_id: str, value: Any, kind: str = "function_call_output") -> dict[str, Any]:
    """Return the result of a call as an item."""
    return line("response_item", {"type": kind, "call_id": call_id, "output": value})


def calls_and_answers(transcript: Transcript) -> list[object]:
    """Return the ids of the calls, and of the calls with a result, in order."""
    blocks = [block for entry in transcript.entries for block in as_blocks(entry.content)]
    return [block.get("id") or block.get("tool_use_id") for block in blocks if block["type"] != "text"]


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("a.txt\n", "got a.txt\n"),
        ({"type": "input_text", "text": "a.txt"}, "got a.txt"),
        ([{"type": "input_text", "text": "a.txt"}, {"type": "input_text", "text": "b.txt"}], "got a.txt\nb.txt"),
        (json.dumps({"output": "a.txt", "metadata": {"exit_code": 0, "duration_seconds": 0.1}}), "got a.txt"),
        (json.dumps({"output": "no ls", "metadata": {"exit_code": 127}}), "failed no ls"),
        ({"content": "nothing", "success": False}, "failed nothing"),
        ('{"a": 1}', 'got {"a": 1}'),
        ({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}, f"got {[PICTURE]}"),
        ([{"type": "input_image", "image_url": "file:///x.png"}], "got [image]"),
        ({"stdout": "a.txt"}, 'got {"stdout": "a.txt"}'),
        (None, "got "),
    ],
)
def test_calls_and_results_are_blocks(tmp_path: Path, value: Any, seen: str) -> None:
    transcript = only(read_transcript(rollout(tmp_path, call("c1"), output("c1", value))))
    assert shown(transcript) == ['assistant: shell({"command": ["ls"]})', f"user: {seen}"]
    assert names(transcript) == ["c1", "c1/result"]
    assert calls_and_answers(transcript) == ["c1", "c1"]


def test_a_call_is_kept_once_whatever_channels_contain_it(tmp_path: Path) -> None:
    lines = (
        call("c1"),
        event("exec_command_end", call_id="c1", command=["ls"], aggregated_output="a.txt", exit_code=0),
        output("c1", "a.txt"),
        thread("CommandExecution", id="c1", command=["ls"], aggregated_output="a.txt", exit_code=0),
        thread("CommandExecution", id="c2", command=["false"], stdout="", stderr="", exit_code=1),
        event(
            "mcp_tool_call_end",
            call_id="c3",
            invocation={"server": "esker", "tool": "recall_memory", "arguments": {"query": "x"}},
            result={"Ok": {"content": [{"type": "text", "text": "Nothing."}]}},
        ),
        thread("McpToolCall", id="c4", server="s", tool="t", arguments={}, error={"message": "no"}),
        thread("FileChange", id="c5", changes={"a.txt": {"type": "add"}}, stdout="Done."),
        line("response_item", {"type": "custom_tool_call", "call_id": "c6", "name": "apply_patch", "input": "*** x"}),
        line("response_item", {"type": "local_shell_call", "call_id": "c7", "action": {"command": ["pwd"]}}),
    )
    assert shown(only(read_transcript(rollout(tmp_path, *lines)))) == [
        'assistant: shell({"command": ["ls"]})',
        "user: got a.txt",
        'assistant: shell({"command": ["false"]})',
        "user: failed ",
        'assistant: mcp__esker__recall_memory({"query": "x"})',
        "user: got Nothing.",
        "assistant: mcp__s__t({})",
        "user: failed no",
        'assistant: apply_patch({"changes": {"a.txt": {"type": "add"}}})',
        "user: got Done.",
        'assistant: apply_patch({"input": "*** x"})',
        'assistant: shell({"command": ["pwd"]})',
    ]


def test_a_repetition_may_come_after_the_calls_of_its_turn(tmp_path: Path) -> None:
    lines = (ASKED_EVENT, ANSWERED_EVENT, call("c1"), output("c1", "x"), ASKED, ANSWERED)
    assert shown(only(read_transcript(rollout(tmp_path, *lines)))) == [
        *TURN,
        'assistant: shell({"command": ["ls"]})',
        "user: got x",
    ]


def test_images_are_kept_even_without_text(tmp_path: Path) -> None:
    content = [
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_image", "image_url": None},
        {"type": "input_image", "image_url": "file:///etc/passwd"},
    ]
    payload = {"type": "message", "role": "user", "content": content}
    transcript = only(read_transcript(rollout(tmp_path, line("response_item", payload))))
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    assert [entry.content for entry in transcript.entries] == [[{"type": "image", "source": source}]]


def test_only_the_first_session_meta_names_the_session(tmp_path: Path) -> None:
    other = line("session_meta", META | {"id": "other", "cwd": "/other"})
    transcript = only(read_transcript(rollout(tmp_path, ASKED, other, ANSWERED)))
    assert (transcript.external_id, transcript.cwd, shown(transcript)) == ("0199-root", "/work/shop", TURN)


def test_a_refusal_is_a_message(tmp_path: Path) -> None:
    payload = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}
    lines = (line("response_item", payload), line("response_item", {"role": "user", "content": "Then not."}))
    assert shown(only(read_transcript(rollout(tmp_path, *lines)))) == ["assistant: I will not.", "user: Then not."]


def turn(cwd: str) -> dict[str, Any]:
    """Return the turn_context line of a turn."""
    return line("turn_context", {"cwd": cwd})


MOVED = "<environment_context>\n<cwd>/private</cwd>\n</environment_context>"


@pytest.mark.parametrize(
    "lines",
    [
        (turn("/work/shop"), ASKED, ANSWERED, turn("/private"), item("user", "A secret."), item("assistant", "Kept.")),
        (ASKED, turn("/work/shop"), ANSWERED, item("user", "A secret."), turn("/private"), item("assistant", "Kept.")),
        (ASKED, ANSWERED, item("user", MOVED), item("user", "A secret."), item("assistant", "Kept.")),
        (ASKED_EVENT, ASKED, turn("/work/shop"), ANSWERED_EVENT, item("user", "A secret."),
         event("user_message", message="A secret."), turn("/private"), item("assistant", "Kept.")),
    ],
)  # fmt: skip
def test_each_message_has_the_directory_of_its_time(tmp_path: Path, lines: tuple[Any, ...]) -> None:
    transcript = only(read_transcript(rollout(tmp_path, *lines)))
    assert shown(transcript) == [*TURN, "user: A secret.", "assistant: Kept."]
    assert [entry.cwd for entry in transcript.entries] == ["/work/shop", "/work/shop", "/private", "/private"]
    assert transcript.cwd == "/work/shop"


def test_an_aborted_turn_keeps_its_directory(tmp_path: Path) -> None:
    lines = (turn("/private"), ASKED, event("turn_aborted"), turn("/work/shop"), item("user", "Go on."))
    transcript = only(read_transcript(rollout(tmp_path, *lines)))
    assert [entry.cwd for entry in transcript.entries] == ["/private", "/work/shop"]


def test_a_sub_agent_is_a_session_of_its_own_without_the_user(tmp_path: Path) -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "0199-root", "depth": 1}}}
    transcript = only(read_transcript(rollout(tmp_path, ASKED, call("c1"), output("c1", "x"), id="kid", source=source)))
    assert transcript.external_id == "0199-root/agent-kid"
    assert [entry.role for entry in transcript.entries] == ["assistant", "assistant", "user"]


@pytest.mark.parametrize(
    ("meta", "session"),
    [
        ({"source": {"subagent": "review"}}, "kid"),
        ({"source": {"subagent": "review"}, "session_id": "kid"}, "kid"),
        ({"source": {"subagent": {"other": "guardian"}}, "session_id": "0199-root"}, "0199-root/agent-kid"),
        ({"source": {"subagent": "compact"}, "parent_thread_id": "0199-root"}, "0199-root/agent-kid"),
        ({"source": "subagent"}, "kid"),
        ({"source": "cli", "thread_source": "sub_agent"}, "kid"),
    ],
)
def test_every_kind_of_sub_agent_gets_its_orders_from_the_assistant(
    tmp_path: Path, meta: dict[str, Any], session: str
) -> None:
    transcript = only(read_transcript(rollout(tmp_path, ASKED_EVENT, ANSWERED_EVENT, id="kid", **meta)))
    assert transcript.external_id == session
    assert [entry.role for entry in transcript.entries] == ["assistant", "assistant"]


def test_the_orders_of_a_review_are_the_users_only_if_the_user_wrote_them(tmp_path: Path) -> None:
    def reviewed(target: dict[str, Any], order: str) -> list[dict[str, Any]]:
        said = {"type": "UserMessage", "id": order, "content": [{"type": "text", "text": order}]}
        ordered = event("item_completed", thread_id="0199-review", turn_id="t1", item=said)
        return [thread("EnteredReviewMode", target=target), ordered, item("assistant", f"Reviewed: {order}")]

    lines = [
        *reviewed({"type": "uncommittedChanges"}, "Review the changes."),
        *reviewed({"type": "custom", "instructions": "Look at the names."}, "Look at the names."),
    ]
    reading = read_transcript(rollout(tmp_path, *lines))
    assert shown(only(reading)) == [
        "assistant: Reviewed: Review the changes.",
        "user: Look at the names.",
        "assistant: Reviewed: Look at the names.",
    ]
    assert (reading.skipped["item of another thread"], reading.skipped["start of a review"]) == (2, 1)


def at(moment: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return a line with another time of this day."""
    return value | {"timestamp": f"2026-03-09T{moment}Z"}


def header(name: str, **more: Any) -> dict[str, Any]:
    """Return the header of a thread."""
    return at("09:00:00.000", line("session_meta", META | {"id": name, "timestamp": "2026-03-09T09:00:00Z"} | more))


OWN_TURN = (
    at("09:00:30.000", event("task_started", turn_id="own")),
    at("09:00:30.010", item("user", "Now sort them.")),
    at("09:00:33.000", item("assistant", "Sorted.")),
)
COPY = (at("09:00:00.010", ASKED), at("09:00:00.011", ASKED_EVENT), at("09:00:00.012", ANSWERED))
COPIED_TURN = (at("09:00:00.009", event("task_started", turn_id="old")), *COPY)
KEPT_TURN = ["user: Now sort them.", "assistant: Sorted."]


@pytest.mark.parametrize(
    "lines",
    [
        (header("0199-root"), *COPY, *OWN_TURN),
        (header("0199-root"), *COPIED_TURN, at("09:00:00.020", event("task_complete", turn_id="old")), *OWN_TURN),
        (header("0199-root"), header("0199-older"), *COPIED_TURN, *COPIED_TURN, *OWN_TURN),
        (header("0199-root"), *COPY, *OWN_TURN[1:]),
        (
            header("0199-root"),
            at("09:00:00.009", event("task_started", turn_id="old", started_at=1772442000)),
            at("09:00:00.010", ASKED),
            at("09:00:05.000", ANSWERED),
            *OWN_TURN,
        ),
        (
            header("0199-root"),
            at("09:00:00.009", event("task_started", turn_id="019cb8a0-0000-7000-8000-000000000001")),
            at("09:00:00.010", ASKED),
            *OWN_TURN,
        ),
    ],
)
def test_a_fork_does_not_tell_the_history_that_it_copied(tmp_path: Path, lines: tuple[Any, ...]) -> None:
    path = written(tmp_path / "rollout-fork.jsonl", header("0199-fork", forked_from_id="0199-root"), *lines)
    reading = read_transcript(path)
    transcript = only(reading)
    assert (transcript.external_id, shown(transcript)) == ("0199-fork", KEPT_TURN)
    assert reading.skipped["line copied from the thread it was forked from"] >= 3


def test_a_fork_that_copied_nothing_tells_all_its_turns_however_fast_the_model_is(tmp_path: Path) -> None:
    lines = (
        at("09:00:00.100", event("thread_settings_applied")),
        at("09:00:00.200", event("task_started", turn_id="a", started_at=1773046800)),
        at("09:00:00.210", item("user", "Add a logo.")),
        at("09:00:00.220", item("assistant", "Done.")),
        *OWN_TURN,
    )
    path = written(tmp_path / "rollout-fork.jsonl", header("0199-fork", forked_from_id="0199-root"), *lines)
    assert shown(only(read_transcript(path))) == ["user: Add a logo.", "assistant: Done.", *KEPT_TURN]


def test_a_second_header_is_enough_to_know_a_fork(tmp_path: Path) -> None:
    path = written(tmp_path / "rollout-fork.jsonl", header("0199-fork"), header("0199-root"), *COPY, *OWN_TURN)
    assert shown(only(read_transcript(path))) == KEPT_TURN


def test_other_lines_may_precede_the_second_header(tmp_path: Path) -> None:
    before = (at("09:00:00.001", line("world_state", {})), at("09:00:00.002", event("thread_settings_applied")))
    path = written(tmp_path / "rollout-fork.jsonl", header("0199-fork"), *before, header("0199-root"), *COPY, *OWN_TURN)
    assert shown(only(read_transcript(path))) == KEPT_TURN


def test_a_fork_without_a_turn_of_its_own_tells_nothing(tmp_path: Path) -> None:
    path = written(tmp_path / "rollout-fork.jsonl", header("0199-fork"), header("0199-root"), *COPY)
    reading = read_transcript(path)
    assert not reading.transcripts
    assert reading.skipped["line copied from the thread it was forked from"] == 4


@pytest.mark.parametrize(
    "compacted",
    [
        {"message": "A summary of it all.\nWe list files."},
        {"message": "Another model wrote this.\n\nA summary of it all. We list files.", "replacement_history": []},
        {
            "message": "",
            "replacement_history": [item("user", "So far:\nA summary of it all. We list files.")["payload"]],
        },
    ],
)
def test_the_summary_of_a_compaction_is_not_the_assistants_answer(tmp_path: Path, compacted: dict[str, Any]) -> None:
    summary = item("assistant", "A summary of it all. We list files.")
    lines = (ASKED, ANSWERED, summary, event("token_count", info=None), line("compacted", compacted), *OWN_TURN)
    reading = read_transcript(rollout(tmp_path, *lines))
    assert shown(only(reading)) == [*TURN, *KEPT_TURN]
    assert reading.skipped["compaction summary"] == 2


def test_an_answer_before_a_compaction_stays_an_answer(tmp_path: Path) -> None:
    history = [ASKED["payload"], ANSWERED["payload"]]
    compacted = line("compacted", {"message": "", "replacement_history": history})
    assert shown(only(read_transcript(rollout(tmp_path, ASKED, ANSWERED, compacted)))) == TURN


def test_rolled_back_turns_are_skipped_and_counted(tmp_path: Path) -> None:
    lines = (ASKED, ANSWERED, item("user", "No, stop."), item("assistant", "Fine."), call("c1"))
    back = event("thread_rolled_back", num_turns=1)
    reading = read_transcript(rollout(tmp_path, *lines, back, item("user", "Go on.")))
    assert shown(only(reading)) == [*TURN, "user: Go on."]
    assert reading.skipped["message that was rolled back"] == 3


def test_early_builds_wrote_without_envelopes(tmp_path: Path) -> None:
    lines = (
        {"id": "early", "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say hello."}]},
        {"created_at": "2025-05-01T10:00:01Z", "role": "user", "message": "In Spanish."},
        {"type": "function_call", "function": {"name": "translate"}, "arguments": {"to": "es"}},
        {"type": "function_result", "name": "translate", "result": "hola"},
        {"type": "assistant", "content": "Hola."},
    )
    transcript = only(read_transcript(written(tmp_path / "rollout-x.jsonl", *lines)))
    assert transcript.external_id == "early"
    assert shown(transcript) == [
        "user: Say hello.",
        "user: In Spanish.",
        'assistant: translate({"to": "es"})',
        "user: got hola",
        "assistant: Hola.",
    ]
    asked, answered = calls_and_answers(transcript)
    assert asked == answered


def bare(role: str, text: str) -> dict[str, Any]:
    """Return a message as early builds wrote it."""
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


@pytest.mark.parametrize(
    ("given", "project", "cwd"),
    [
        ({"git": {"repository_url": "https://example.org/acme/shop.git"}}, "acme/shop", "/work/store"),
        ({"git": {"repository_url": "git@example.org:acme/shop"}}, "acme/shop", "/work/store"),
        ({"git": {"branch": "main"}}, "store", "/work/store"),
        ({"git": None, "instructions": None}, "store", "/work/store"),
    ],
)
@pytest.mark.parametrize(
    "environment",
    [
        "<environment_context>\n  <cwd>/work/store</cwd>\n</environment_context>",
        "<environment_context>\nCurrent working directory: /work/store\nApproval policy: never\n</environment_context>",
    ],
)
def test_the_header_of_an_early_build_tells_time_project_and_directory(
    tmp_path: Path, given: dict[str, Any], project: str, cwd: str, environment: str
) -> None:
    head = {"id": "early", "timestamp": "2025-05-01T10:00:00Z"} | given
    path = written(tmp_path / "rollout-x.jsonl", head, bare("user", environment), bare("user", "Say hello."))
    reading = read_transcript(path)
    transcript = only(reading)
    assert (transcript.project, transcript.cwd) == (project, cwd)
    assert [entry.sent_at for entry in transcript.entries] == [datetime(2025, 5, 1, 10, tzinfo=UTC)]
    assert reading.skipped == {"session_meta line": 1, "injected context": 1}


def test_without_any_time_in_it_a_rollout_has_the_time_of_its_name(tmp_path: Path) -> None:
    name = "rollout-2025-05-01T10-11-12-01994d10-0000-7000-8000-000000000001.jsonl"
    transcript = only(read_transcript(written(tmp_path / name, bare("user", "Say hello."))))
    assert [entry.sent_at for entry in transcript.entries] == [datetime(2025, 5, 1, 10, 11, 12).astimezone()]


def test_a_compressed_rollout_reads_like_the_uncompressed_one(tmp_path: Path) -> None:
    lines = (ASKED, {"type": "function_call", "name": "f", "arguments": {}}, ANSWERED)
    path = rollout(tmp_path, *lines)
    plain = only(read_transcript(path))
    packed = path.with_name(path.name + ".zst")
    data = path.read_bytes()
    half = len(data) // 2
    pack = zstd.compress
    packed.write_bytes(pack(data[:half]) + pack(data[half:]))  # it may consist of several frames
    assert only(read_transcript(packed, opened)) == plain
    assert len(plain.entries) == 3


def test_a_damaged_compressed_rollout_is_read_up_to_the_damage(tmp_path: Path) -> None:
    path = rollout(tmp_path, *(item("user", f"Word {number} {'x' * 50}.") for number in range(2_000)))
    packed = path.with_name(path.name + ".zst")
    whole = zstd.compress(path.read_bytes(), options={zstd.CompressionParameter.checksum_flag: 1})
    packed.write_bytes(whole[: len(whole) // 2] + b"\xff" * 40 + whole[len(whole) // 2 + 40 :])
    assert shown(only(read_transcript(packed, opened)))[0].startswith("user: Word 0 ")
    frame = zstd.compress(rollout(tmp_path, ASKED, ANSWERED).read_bytes())
    packed.write_bytes(frame + whole[:20])  # the second frame was being written
    assert len(only(read_transcript(packed, opened)).entries) == 2
    packed.write_bytes(b"no archive")
    with pytest.raises(OSError, match="unpacked"):
        read_transcript(packed, opened)


def test_ids_stay_the_same_while_a_rollout_grows(tmp_path: Path) -> None:
    lines = [ASKED_EVENT, ASKED, call("c1"), ANSWERED_EVENT, output("c1", "x"), ANSWERED, ASKED, ASKED_EVENT]
    seen: list[str] = []
    for count in range(len(lines) + 1):
        reading = read_transcript(rollout(tmp_path, *lines[:count]))
        now = [name for transcript in reading.transcripts for name in names(transcript)]
        assert now[: len(seen)] == seen
        seen = now
    assert len(seen) == 5
