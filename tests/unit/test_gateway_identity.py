"""Ids of turns and sessions: the same turn is known in every request, and no two turns are taken for one."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.errors import InvalidInput
from esker.server.gateway.callers import caller_of, is_aside
from esker.server.gateway.identity import identified
from esker.server.gateway.records import Turn
from esker.server.gateway.sessions import Histories, Place
from esker.server.gateway.upstreams import Upstreams, sent_back, sent_on

OWNER = "pool/api"


def said(*words: str) -> list[Turn]:
    """Return turns of the user and the assistant in turn."""
    return [Turn("assistant" if n % 2 else "user", [{"type": "text", "text": text}]) for n, text in enumerate(words)]


def ids(turns: list[Turn]) -> list[str]:
    """Return the ids of turns."""
    return [turn.id for turn in identified(turns)]


words = st.lists(st.sampled_from(["yes", "no", "go on", "done"]), min_size=1, max_size=12)


@given(words)
def test_every_turn_of_a_conversation_has_an_id_of_its_own(texts: list[str]) -> None:
    found = ids(said(*texts))
    assert len(set(found)) == len(texts)


@given(words, words)
def test_the_ids_of_a_conversation_stay_when_it_grows(texts: list[str], more: list[str]) -> None:
    assert ids(said(*texts, *more))[: len(texts)] == ids(said(*texts))


CALL: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}


@pytest.mark.parametrize(
    "changed",
    [
        [{"type": "text", "text": "I look.", "cache_control": {"type": "ephemeral"}}, CALL],
        [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "I look."}, CALL],
        [{"type": "text", "text": "I look. "}, CALL],
        [
            {"type": "text", "text": "I look."},
            {"type": "text", "text": "<system-reminder>\nnow\n</system-reminder>"},
            CALL,
        ],
        [CALL],
    ],
)
def test_marks_thoughts_and_reminders_do_not_make_another_turn(changed: list[Any]) -> None:
    asked = said("Which files?")
    assert ids([*asked, Turn("assistant", changed)]) == ids(
        [*asked, Turn("assistant", [{"type": "text", "text": "I look."}, CALL])]
    )


def test_a_thought_before_words_does_not_make_another_turn() -> None:
    thought: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "s"}
    words: dict[str, Any] = {"type": "text", "text": "One file."}
    assert ids([Turn("assistant", [thought, words])]) == ids([Turn("assistant", [words])])


def test_a_compacted_history_keeps_the_ids_of_the_turns_that_it_left() -> None:
    result = Turn("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}])
    kept = [Turn("assistant", [CALL]), result, *said("One file.", "Thanks.")]
    long = [*said("Hello", "Hi", "Which files?"), *kept]
    compacted = [*said("A summary of what was said."), *kept]
    assert ids(compacted)[1:] == ids(long)[3:]


def test_a_prompt_that_is_put_into_a_message_that_was_sent_before_is_a_turn_of_its_own() -> None:
    asked, other = said("Build.", "Built.", "Test it.")[2], said("Never mind.")[0]
    one = said("Build.", "Built.")
    apart, together = ids([*one, asked, other]), ids([*one, replace(asked, content=[*asked.content, *other.content])])
    assert together == apart
    result = Turn("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}])
    called = [*one, Turn("assistant", [CALL])]
    found = identified([*called, replace(result, content=[*other.content, *result.content], item=3)])
    assert [turn.id for turn in found] == ids([*called, result, other])
    assert [turn.item for turn in found[-2:]] == [3, 3]


def test_a_prompt_with_an_image_is_one_turn() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/cart.png"}}
    assert len(ids([Turn("user", [image, {"type": "text", "text": "What is this?"}])])) == 1


def test_a_conversation_that_begins_with_a_summary_is_in_the_session_that_was_summarised() -> None:
    histories = Histories()
    summary = said("Overview:\nThe shop was built with pnpm, and its tests run with vitest.")
    histories.note_summary(OWNER, "one", summary)
    histories.note_summary("pool/other", "two", summary)
    begun = said("Here is a summary:\nThe shop was built with pnpm, and its tests run with vitest.\n", "Go on.")
    assert histories.place(OWNER, identified(begun), begun) == Place("one")
    assert histories.place(OWNER, identified(said("Hi.")), said("Hi.")) is None
    # The summary is no turn, and another session begins with the prompt behind it.
    histories.note(OWNER, "three", identified(said("Go on.", "Done.")))
    assert histories.place(OWNER, identified(said("Go on.")), begun) == Place("one")


def test_a_conversation_whose_beginning_is_left_out_is_known_by_its_latest_turns() -> None:
    histories = Histories()
    whole = said(*(f"part {n}" for n in range(20)))
    histories.note(OWNER, "one", identified(whole))
    assert histories.place(OWNER, identified([*whole[12:], *said("Go on.")])) == Place("one")
    assert histories.place(OWNER, identified([*whole[16:], *said("Go on.")])) is None


def test_a_prompt_that_got_no_answer_may_be_left_out_of_the_conversation() -> None:
    histories = Histories()
    for words in (("Hi", "Hello"), ("Hi", "Hello", "Fail.")):
        histories.note(OWNER, "one", identified(said(*words)))
    assert histories.place(OWNER, identified(said("Hi", "Hello", "Try again."))) == Place("one")
    histories.note(OWNER, "one", identified(said("Hi", "Hello", "Try again.", "Done.")))
    place = histories.place(OWNER, identified(said("Hi", "Hello", "Something else.")))
    assert place is not None
    assert place.is_fork


def test_turns_in_which_nothing_was_said_are_left_out() -> None:
    reminder = Turn("user", [{"type": "text", "text": "<system-reminder>\nbe brief\n</system-reminder>"}])
    assert ids([reminder, *said("Hi")]) == ids(said("Hi"))


def test_a_conversation_is_found_again_by_its_history() -> None:
    histories = Histories()
    first = identified(said("Hi", "Hello"))
    histories.note(OWNER, "one", first)
    assert histories.place(OWNER, identified(said("Hi", "Hello", "And now?"))) == Place("one")
    assert histories.place("pool/other", identified(said("Hi", "Hello", "And now?"))) is None
    assert histories.place(OWNER, identified(said("Ho", "Hello", "And now?"))) is None


def test_a_conversation_that_goes_on_from_an_earlier_turn_is_a_fork() -> None:
    histories = Histories()
    histories.note(OWNER, "one", identified(said("Hi", "Hello")))
    histories.note(OWNER, "one", identified(said("Hi", "Hello", "A?", "Yes")))
    found = histories.place(OWNER, identified(said("Hi", "Hello", "B?")))
    assert found is not None
    assert found.is_fork
    assert found.session != "one"


def test_a_resumed_conversation_may_be_written_in_another_way() -> None:
    histories = Histories()
    result: dict[str, Any] = {"type": "tool_result", "tool_use_id": "t1", "content": "cart.py"}
    asked = [*said("Which files?"), Turn("assistant", [CALL])]
    histories.note(OWNER, "one", identified(asked))
    first = [*asked, Turn("user", [result]), *said("Go on.", "One file.")[1:]]
    histories.note(OWNER, "one", identified(first))
    repeated = [
        *asked,
        Turn("user", [{"type": "text", "text": "Output:"}, result, result]),
        *first[3:],
        *said("Thanks."),
    ]
    assert histories.place(OWNER, identified(repeated)) == Place("one")
    assert ids([*asked, Turn("user", [result, result])]) == ids([*asked, Turn("user", [result])])


def test_forgotten_histories_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("esker.server.gateway.sessions._MOST_HISTORIES", 10)
    histories = Histories()
    for n in range(100):
        histories.note(OWNER, f"s{n}", identified(said(f"Question {n}")))
    assert len(histories._sessions) == len(histories._latest) == 10
    assert histories.place(OWNER, identified(said("Question 99"))) == Place("s99")


CODEX_TURN = (
    '{"session_id": "s1", "agent_name": "/root/helper",'
    ' "workspaces": {"/src": {"associated_remote_urls": {"origin": "git@github.com:Acme/Shop.git"}}}}'
)


@pytest.mark.parametrize(
    ("headers", "document", "session", "client", "agent", "project"),
    [
        ({"user-agent": "claude-cli/2.1", "x-claude-code-session-id": "s1"}, {}, "s1", "claude-code", None, None),
        ({"user-agent": "claude-cli/2.1", "x-claude-code-session-id": "s1", "x-claude-code-agent-id": "a"}, {}, "s1",
         "claude-code", "a", None),
        ({"user-agent": "claude-cli/1.0"}, {"metadata": {"user_id": '{"session_id": "s1"}'}}, "s1", "claude-code", None,
         None),
        ({}, {"metadata": {"user_id": "user_1_account__session_0b6f1c1e-0000-4000-8000-000000000001"}},
         "0b6f1c1e-0000-4000-8000-000000000001", "api", None, None),
        ({"user-agent": "codex_exec/0.171", "session-id": "s1", "x-codex-turn-metadata": CODEX_TURN}, {}, "s1", "codex",
         "/root/helper", "acme/shop"),
        ({"user-agent": "opencode/1.18", "x-session-id": "s1"}, {}, "s1", "opencode", None, None),
        ({"user-agent": "pi/1.6.0 (linux)"}, {}, None, "pi", None, None),
        ({"user-agent": "GeminiCLI-tui/0.61.0/gemini"}, {}, None, "gemini-cli", None, None),
        ({"user-agent": "python-httpx", "x-esker-session": "s1", "x-esker-client": "mine", "x-esker-project": "p"}, {},
         "s1", "mine", None, "p"),
        ({"user-agent": "python"}, {"metadata": {"user_id": "someone"}, "prompt_cache_key": "k"}, None, "api", None,
         None),
    ],
)  # fmt: skip
def test_a_client_says_who_it_is(
    headers: dict[str, str],
    document: dict[str, Any],
    session: str | None,
    client: str,
    agent: str | None,
    project: str | None,
) -> None:
    found = caller_of(headers, document, [])
    assert (found.session, found.client, found.agent, found.project) == (session, client, agent, project)


@pytest.mark.parametrize(
    "text",
    [
        "# Environment\n - Primary working directory: /src/shop\n - Is a git repository: true",
        "<env>\n  Working directory: /src/shop\n</env>",
        "<environment_context>\n  <cwd>/src/shop</cwd>\n</environment_context>",
        "- **Workspace Directories:**\n  - /src/shop\n- **Directory Structure:**",
    ],
)
def test_the_directory_is_read_from_the_system_prompt(text: str) -> None:
    assert caller_of({}, {}, ["Be brief.", text]).cwd == "/src/shop"


def test_a_request_without_tools_of_a_client_that_has_tools_is_an_aside() -> None:
    assert is_aside(caller_of({"user-agent": "opencode/1.18"}, {}, []), offers_tools=False)
    assert not is_aside(caller_of({"user-agent": "opencode/1.18"}, {}, []), offers_tools=True)
    assert not is_aside(caller_of({"user-agent": "python"}, {}, []), offers_tools=False)


def test_headers_of_the_connection_and_of_esker_are_not_sent_on() -> None:
    given = [
        (b"host", b"127.0.0.1:8377"), (b"connection", b"keep-alive, x-mine"), (b"x-mine", b"1"),
        (b"content-length", b"7"), (b"x-esker-key", b"secret"), (b"x-forwarded-for", b"10.1.2.3"),
        (b"accept-encoding", b"gzip, br, zstd"), (b"anthropic-beta", b"a"), (b"anthropic-beta", b"b"),
        (b"content-encoding", b"zstd"), (b"authorization", b"Bearer sk"),
    ]  # fmt: skip
    kept = [(b"accept-encoding", b"gzip, zstd"), (b"anthropic-beta", b"a"), (b"anthropic-beta", b"b")]
    assert sent_on(given, is_rewritten=True) == [*kept, (b"authorization", b"Bearer sk")]
    assert (b"content-encoding", b"zstd") in sent_on(given, is_rewritten=False)
    assert sent_back([(b"Transfer-Encoding", b"chunked"), (b"X-RateLimit", b"7"), (b"Set-Cookie", b"a")]) == [
        (b"x-ratelimit", b"7"),
        (b"set-cookie", b"a"),
    ]


async def test_an_address_that_is_too_long_is_refused_with_its_reason() -> None:
    upstreams = Upstreams({"model": "http://127.0.0.1:9"})
    address = upstreams.address("model", "v1/models", b"q" * 70_000)
    with pytest.raises(InvalidInput, match="too long"):
        async with upstreams.sent("GET", address, [], b""):
            pass
    await upstreams.close()
