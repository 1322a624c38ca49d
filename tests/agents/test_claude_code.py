"""The reader of Claude Code: messages are kept, other lines counted, and no line stops a file."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esker.server.agents.claude_code import read_transcript
from esker.server.agents.project import project_of
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.conversation.records import ROLES
from esker.server.core.conversation.valid_blocks import as_blocks
from tests.support.transcripts import shown


def line(kind: str = "user", content: Any = "Hello.", **more: Any) -> dict[str, Any]:
    """Return a line as Claude Code writes it."""
    return {
        "type": kind,
        "uuid": f"u-{content}",
        "sessionId": "s1",
        "cwd": "/home/me/shop",
        "timestamp": "2026-03-02T09:00:00.000Z",
        "isSidechain": False,
        "message": {"role": kind, "content": content},
        **more,
    }


def written(folder: Path, *lines: Any, name: str = "s1.jsonl") -> Path:
    """Write lines into a file; bytes are written unchanged."""
    raw = [item if isinstance(item, bytes) else json.dumps(item).encode() for item in lines]
    path = folder / name
    path.write_bytes(b"\n".join(raw) + b"\n")
    return path


def test_messages_become_entries_in_order(tmp_path: Path) -> None:
    reading = read_transcript(
        written(tmp_path, line(content="One."), line("assistant", [{"type": "text", "text": "Two."}]))
    )
    [transcript] = reading.transcripts
    assert (transcript.client, transcript.external_id, transcript.cwd) == ("claude-code", "s1", "/home/me/shop")
    assert transcript.project == "shop"
    first, second = transcript.entries
    assert (first.external_id, first.role, first.content) == ("u-One.", "user", "One.")
    assert first.sent_at == datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert second.content == [{"type": "text", "text": "Two."}]
    assert not reading.skipped


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"type": "summary", "summary": "x"}, "summary line"),
        ({"type": "file-history-snapshot"}, "file-history-snapshot line"),
        ({"silly": "this"}, "untyped line"),
        (line(isMeta=True), "meta line"),
        (line(isCompactSummary=True), "compaction summary"),
        (line(isApiErrorMessage=True), "API error"),
        (line("assistant", message={"role": "assistant", "model": "<synthetic>", "content": "x"}), "synthetic message"),
        (line(message="error"), "message without a role"),
        (line(message={"role": "wizard", "content": "x"}), "message without a role"),
        (line(content="   "), "message without content"),
        (line(content=[]), "message without content"),
        (line(content=5), "message without content"),
        (b"{broken", "broken line"),
        (b"[" * 100_000, "broken line"),
        (b"42", "not an object"),
        (b'"massive error"', "not an object"),
        (b"\xff\xfe\x00", "broken line"),
    ],
)
def test_lines_that_are_not_messages_are_counted_and_stop_nothing(tmp_path: Path, other: Any, reason: str) -> None:
    reading = read_transcript(written(tmp_path, line(content="Before."), other, line(content="After.")))
    [transcript] = reading.transcripts
    assert [entry.content for entry in transcript.entries] == ["Before.", "After."]
    assert reading.skipped == {reason: 1}


def test_a_sub_agent_is_a_session_of_its_own(tmp_path: Path) -> None:
    lines = (
        line(content="Main."),
        line(content="Side.", isSidechain=True),
        line(content="Agent.", isSidechain=True, agentId="a1"),
    )
    reading = read_transcript(written(tmp_path, *lines))
    found = {transcript.external_id: [e.content for e in transcript.entries] for transcript in reading.transcripts}
    assert found == {"s1": ["Main."], "s1/sidechain": ["Side."], "s1/agent-a1": ["Agent."]}


def test_stray_parts_of_content_become_text_or_are_skipped(tmp_path: Path) -> None:
    content = ["wow error", {"type": "text", "text": "x"}, {"no": "type"}, 5]
    [transcript] = read_transcript(written(tmp_path, line(content=content))).transcripts
    assert transcript.entries[0].content == [{"type": "text", "text": "wow error"}, {"type": "text", "text": "x"}]


def test_each_message_has_the_directory_of_its_time(tmp_path: Path) -> None:
    lines = (line(content="A."), line(content="B.", cwd="/home/me/other"), line(content="C.", cwd=None))
    [transcript] = read_transcript(written(tmp_path, *lines)).transcripts
    assert transcript.cwd == "/home/me/shop"
    assert [entry.cwd for entry in transcript.entries] == ["/home/me/shop", "/home/me/other", None]


def queued(prompt: Any, **more: Any) -> dict[str, Any]:
    """Return a line with a prompt that was queued while the assistant was working."""
    attachment = {"type": "queued_command", "prompt": prompt, "commandMode": "prompt", **more}
    return line("attachment", message=None, uuid=f"q-{prompt}", attachment=attachment)


def test_a_prompt_queued_while_the_assistant_works_is_a_message(tmp_path: Path) -> None:
    lines = (
        line(content="A."),
        queued("And be quick."),
        queued([{"type": "text", "text": "Really."}]),
        queued("<task-notification>x</task-notification>", commandMode="task-notification"),
        queued("An agent says.", origin={"kind": "coordinator"}),
        line("attachment", message=None, attachment={"type": "nested_memory", "content": "Use tabs."}),
    )
    reading = read_transcript(written(tmp_path, *lines))
    [transcript] = reading.transcripts
    assert [(entry.role, entry.content) for entry in transcript.entries] == [
        ("user", "A."),
        ("user", "And be quick."),
        ("user", [{"type": "text", "text": "Really."}]),
    ]
    assert reading.skipped == {"attachment line": 3}


# The queue -----------------------------------------------------------------------------------------------------------


def queue(operation: str, content: Any = None, **more: Any) -> dict[str, Any]:
    """Return a line about the queue of prompts."""
    given = {"type": "queue-operation", "operation": operation, "sessionId": "s1", "timestamp": "2026-03-02T09:00:01Z"}
    return given | ({} if content is None else {"content": content}) | more


ASKED = line(content="Build it.")
RESULT = line(content=[{"type": "tool_result", "tool_use_id": "t1", "content": "built"}], uuid="r1")
ANSWER = line("assistant", "It is built.")
NOTICE = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>"


def said(reading: ParsedTranscripts) -> list[str]:
    """Return what was said, without the results of tools."""
    return [words for transcript in reading.transcripts for words in shown(transcript) if "got " not in words]


@pytest.mark.parametrize(
    "operations",
    [
        (queue("enqueue", "Not on Mondays."), RESULT, queue("remove")),
        (queue("enqueue", "Not on Mondays."), RESULT, queue("remove", "Not on Mondays.", reason="absorbed_mid_turn")),
        (queue("enqueue", "Not on Mondays."), queue("remove"), RESULT),
        (queue("enqueue", [{"type": "text", "text": "Not on Mondays."}]), queue("remove")),
        (queue("enqueue", NOTICE), queue("enqueue", "Not on Mondays."), queue("remove")),
        (queue("enqueue", "Wrong."), queue("popAll", "Wrong."), queue("enqueue", "Not on Mondays."), queue("remove")),
        (queue("enqueue", "Wrong."), queue("popOne", "Wrong."), queue("enqueue", "Not on Mondays."), queue("remove")),
        (queue("enqueue", "Wrong."), queue("popAll"), queue("enqueue", "Not on Mondays."), queue("remove")),
        (queue("enqueue", "Not on Mondays."), queue("enqueue", "Wrong."), queue("remove"), queue("popAll", "Wrong.")),
        (queue("enqueue", "Wrong."), queue("enqueue", "Not on Mondays."), queue("remove", "Not on Mondays.")),
        (queue("enqueue", "/clear"), queue("dequeue"), queue("enqueue", "Not on Mondays."), queue("remove")),
        (queue("enqueue", "/compact"), queue("enqueue", "Not on Mondays."), queue("remove")),
        (queue("enqueue", "Not on Mondays."), queue("remove"), queued("Not on Mondays.")),
        (queue("enqueue", "Not on Mondays."), queued("Not on Mondays."), queue("remove", "Not on Mondays.")),
    ],
)
def test_a_prompt_typed_in_mid_turn_is_the_users_once(tmp_path: Path, operations: tuple[Any, ...]) -> None:
    reading = read_transcript(written(tmp_path, ASKED, *operations, ANSWER))
    assert said(reading) == ["user: Build it.", "user: Not on Mondays.", "assistant: It is built."]


@pytest.mark.parametrize(
    "operations",
    [
        (queue("enqueue", "Wrong."), ANSWER),
        (queue("enqueue", "Wrong."), queue("popAll", "Wrong."), ANSWER),
        (queue("enqueue", "Wrong."), queue("remove", "Wrong.", reason="cleared_on_cancel"), ANSWER),
        (queue("enqueue", "Wrong."), queue("remove", reason="dropped_by_hook"), ANSWER),
        (queue("enqueue", NOTICE), queue("remove"), ANSWER),
        (queue("enqueue"), queue("remove"), ANSWER),
        (ANSWER, queue("enqueue", "Wrong."), queue("remove")),
        (queue("enqueue", "Agents."), queue("remove"), queued("Agents.", origin={"kind": "peer"}), ANSWER),
    ],
)
def test_a_prompt_that_left_the_queue_unsent_is_not_a_message(tmp_path: Path, operations: tuple[Any, ...]) -> None:
    reading = read_transcript(written(tmp_path, ASKED, *operations))
    assert said(reading) == ["user: Build it.", "assistant: It is built."]


def test_a_prompt_that_begins_a_turn_is_told_by_its_line_alone(tmp_path: Path) -> None:
    lines = (
        queue("enqueue", NOTICE),
        queue("enqueue", "Now test it."),
        queue("remove"),  # the notification: which one it is about is not recorded
        ANSWER,
        queue("dequeue"),
        line(content="Now test it."),
        line("assistant", "Tested."),
    )
    reading = read_transcript(written(tmp_path, ASKED, *lines))
    assert said(reading) == [
        "user: Build it.",
        "assistant: It is built.",
        "user: Now test it.",
        "assistant: Tested.",
    ]


def test_a_prompt_that_began_a_turn_in_other_words_is_no_longer_in_the_queue(tmp_path: Path) -> None:
    expanded = (queue("enqueue", "See @a."), queue("dequeue"), line(content="See the file a."))
    reading = read_transcript(
        written(tmp_path, *expanded, queue("enqueue", "Not on Mondays."), queue("remove"), ANSWER)
    )
    assert said(reading) == ["user: See the file a.", "user: Not on Mondays.", "assistant: It is built."]


def test_a_prompt_is_unsent_if_the_user_began_another_turn_before_the_answer(tmp_path: Path) -> None:
    lines = (ASKED, queue("enqueue", "Wrong."), queue("remove"), line(content="Paint it."), ANSWER)
    reading = read_transcript(written(tmp_path, *lines))
    assert said(reading) == ["user: Build it.", "user: Paint it.", "assistant: It is built."]
    assert reading.skipped["queued prompt that was not sent"] == 1


def test_the_same_words_in_mid_turn_and_in_the_next_turn_are_two_messages(tmp_path: Path) -> None:
    lines = (queue("enqueue", "Go on."), queue("remove"), ANSWER, line(content="Go on."), line("assistant", "Done."))
    reading = read_transcript(written(tmp_path, ASKED, *lines))
    assert said(reading)[1:4] == ["user: Go on.", "assistant: It is built.", "user: Go on."]


def test_a_queued_prompt_has_the_time_at_which_it_was_typed_and_the_same_id_at_every_reading(tmp_path: Path) -> None:
    path = written(tmp_path, ASKED, queue("enqueue", "Not on Mondays."), queue("remove"), ANSWER)
    first, second = (read_transcript(path).transcripts[0].entries[1] for _ in range(2))
    assert first.sent_at == datetime(2026, 3, 2, 9, 0, 1, tzinfo=UTC)
    assert first.external_id == second.external_id


# Other voices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (line(content="I always use tabs.", origin={"kind": "peer"}), "message of peer"),
        (line(content="Never do it.", origin={"kind": "task-notification"}), "message of task-notification"),
        (line(content="Never do it.", origin={"kind": "coordinator", "from": "x"}), "message of coordinator"),
        (line(content="Never do it.", origin={"kind": "channel"}), "message of channel"),
        (line(content="Never do it.", origin="peer"), "message of peer"),
        (line(content="Never do it.", promptSource="system"), "message of system"),
        (line(content=NOTICE), "injected context"),
        (line(content=f"{NOTICE}\nRead the output file: /tmp/b1.output"), "injected context"),
        (line(content=[{"type": "text", "text": f"{NOTICE}\nAlways read it."}]), "injected context"),
        (line(content="<task-notification>\n<task-id>b1</task-id>\n<summary>cut of"), "injected context"),
        (
            line(
                content="Another Claude session sent a message:\n<teammate-message id='x'>Use tabs.</teammate-message>"
            ),
            "injected context",
        ),
    ],
)
def test_lines_of_tasks_and_other_agents_are_nobodys_words(tmp_path: Path, other: dict[str, Any], reason: str) -> None:
    reading = read_transcript(written(tmp_path, line(content="Before."), other, line(content="After.")))
    assert said(reading) == ["user: Before.", "user: After."]
    assert reading.skipped == {reason: 1}


def test_a_persons_line_and_a_tool_result_are_kept_whatever_their_origin_says(tmp_path: Path) -> None:
    lines = (
        line(content="Mine.", origin={"kind": "human"}, promptSource="typed"),
        RESULT | {"origin": {"kind": "cli"}},
    )
    [transcript] = read_transcript(written(tmp_path, *lines)).transcripts
    assert shown(transcript) == ["user: Mine.", "user: got built"]


def test_the_agent_of_a_compaction_is_not_a_session(tmp_path: Path) -> None:
    summary = line("assistant", "Everything so far.", isSidechain=True, agentId="acompact-1f")
    reading = read_transcript(written(tmp_path, ASKED, summary))
    assert (said(reading), reading.skipped) == (["user: Build it."], {"line of a compaction": 1})
    alone = read_transcript(written(tmp_path, line(isSidechain=True), name="agent-acompact-1f.jsonl"))
    assert (alone.transcripts, alone.skipped) == ([], {"line of a compaction": 1})


def test_the_arguments_of_a_slash_command_are_a_message(tmp_path: Path) -> None:
    named, empty = "<command-name>/review</command-name>", "<command-args> </command-args>"
    asked = f"<command-message>review</command-message>\n{named}\n<command-args>the parser,\nplease</command-args>"
    lines = (
        line(content=asked, uuid="u1"),
        line(content=[{"type": "text", "text": asked}], uuid="u2"),
        line(content=f"<command-message>review</command-message>\n{named}\n{empty}", uuid="u3"),
        # Commands that the client carries out itself.
        line(content="<command-name>/model</command-name>\n<command-args>opus</command-args>", uuid="u4"),
    )
    reading = read_transcript(written(tmp_path, *lines))
    assert [entry.content for entry in reading.transcripts[0].entries] == ["/review the parser,\nplease"] * 2
    assert reading.skipped == {"injected context": 2}


def test_messages_without_an_inner_role_and_calls_on_their_own_lines_are_kept(tmp_path: Path) -> None:
    lines = (
        line(message={"content": "A."}),
        {"type": "tool_use", "uuid": "t1", "sessionId": "s1", "id": "c1", "name": "bash", "input": {"command": "ls"}},
        {"type": "tool_result", "uuid": "r1", "sessionId": "s1", "tool_use_id": "c1", "output": "a.txt"},
        line("assistant", uuid="b", message={"role": None, "content": "B."}),
    )
    [transcript] = read_transcript(written(tmp_path, *lines)).transcripts
    assert shown(transcript) == ["user: A.", 'assistant: bash({"command": "ls"})', "user: got a.txt", "assistant: B."]


def test_a_broken_time_does_not_lose_a_message(tmp_path: Path) -> None:
    lines = (line(content="A."), line(content="B.", timestamp="[trimmed]"), line(content="C.", timestamp="9999-99-99"))
    reading = read_transcript(written(tmp_path, *lines))
    [transcript] = reading.transcripts
    assert {entry.sent_at for entry in transcript.entries} == {datetime(2026, 3, 2, 9, tzinfo=UTC)}
    assert reading.skipped == {"unreadable time (the message is kept)": 2}


def test_a_line_without_an_id_gets_the_same_id_at_every_reading(tmp_path: Path) -> None:
    path = written(tmp_path, line(uuid=None, content="A."), line(uuid=None, content="A."))
    first = [entry.external_id for entry in read_transcript(path).transcripts[0].entries]
    assert first == [entry.external_id for entry in read_transcript(path).transcripts[0].entries]
    assert len(set(first)) == 2


any_value: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet=st.characters(exclude_categories=())),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "role", "content"]), inner)
    ),
)
any_line = st.dictionaries(st.sampled_from(sorted(line())), any_value) | st.binary().map(
    lambda raw: raw.replace(b"\n", b"")
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(any_line, max_size=6))
def test_no_file_crashes_the_reader_and_every_result_can_be_sent(tmp_path: Path, lines: list[Any]) -> None:
    for transcript in read_transcript(written(tmp_path, *lines)).transcripts:
        assert transcript.external_id
        for entry in transcript.entries:
            assert entry.role in ROLES
            assert 0 < len(entry.external_id) <= 512
            json.dumps(entry.content, ensure_ascii=False).encode()
            if isinstance(entry.content, str):
                as_blocks(entry.content)


def test_foreign_transcripts_are_read(transcripts: Path) -> None:
    read = {path.name: read_transcript(path) for path in sorted((transcripts / "claude").rglob("*.jsonl"))}
    assert read
    for name, reading in read.items():
        assert sum(len(t.entries) for t in reading.transcripts) > 0, name
    edge = read["claudecodelog_edge_cases.jsonl"]
    assert edge.skipped["not an object"] == 3
    assert edge.skipped["injected context"] == 3
    assert sum(len(t.entries) for t in edge.transcripts) == 9


# Projects ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@github.com:owner/shop.git", "owner/shop"),
        ("https://user:token@example.org/owner/shop.git", "owner/shop"),
        ("ssh://git@example.org:22/owner/shop", "owner/shop"),
    ],
)
def test_a_project_is_named_after_its_remote(tmp_path: Path, url: str, name: str) -> None:
    root = tmp_path / "checkout"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text(f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n')
    (root / "src" / "deep").mkdir(parents=True)
    assert project_of(str(root)) == name
    assert project_of(str(root / "src" / "deep")) == name


def test_a_project_without_a_remote_is_named_after_its_root_else_its_directory(tmp_path: Path) -> None:
    (tmp_path / "checkout" / ".git").mkdir(parents=True)
    (tmp_path / "checkout" / ".git" / "config").write_text("garbage [[")
    assert project_of(str(tmp_path / "checkout" / "x")) == "checkout"
    assert project_of("/nowhere/on/this/machine") == "machine"
    assert project_of(r"C:\Users\me\shop") == "shop"
    assert project_of("/") is None
    assert project_of("") is None


def test_the_prompts_of_a_sub_agent_are_the_assistants(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    answer = [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]
    lines = [
        {"type": "user", "uuid": "u1", "isSidechain": True, "message": {"role": "user", "content": "Always use npm."}},
        {"type": "user", "uuid": "u2", "isSidechain": True, "message": {"role": "user", "content": answer}},
        {"type": "user", "uuid": "u3", "message": {"role": "user", "content": "Never use npm."}},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    roles = {entry.external_id: entry.role for t in read_transcript(path).transcripts for entry in t.entries}
    assert roles == {"u1": "assistant", "u2": "user", "u3": "user"}


def test_broken_lines_are_reported_and_invalid_blocks_skipped(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    content = [{"type": "text", "text": 7}, {"type": "text", "text": "Kept."}, {"type": "image"}]
    good = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": content}}
    good["timestamp"] = "2026-03-02T09:00:00Z"
    path.write_text("{broken\n" + json.dumps(good) + "\n[1, 2\n")
    reading = read_transcript(path)
    assert reading.broken == [1, 3]
    assert reading.skipped == {"broken line": 2, "invalid block": 2}
    assert reading.transcripts[0].entries[0].content == [{"type": "text", "text": "Kept."}]


@pytest.mark.parametrize("cwd", ["/" + "a" * 300, "/proc/1/root/x", "\0"])
def test_an_unreadable_directory_still_has_a_project_name(cwd: str) -> None:
    assert project_of(cwd.replace("\0", "x"))


def test_the_file_of_another_client_is_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {}}))
    assert not read_transcript(path).recognised
