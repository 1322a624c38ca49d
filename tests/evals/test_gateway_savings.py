"""The provider of the gateway's replay counts cached tokens as its documentation says, and a client compacts fairly."""

from datetime import timedelta
from typing import Any

import pytest

from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.records import TokenUse
from evals.gateway.compaction import replay_compacting
from evals.gateway.facts import answerable, latest_messages, said_in
from evals.gateway.histories import History, Message, Noted, history_of, noted_compactions
from evals.gateway.provider import Account
from evals.gateway.replay import Replayed, request_of
from evals.sessions.labels import LabelledFact
from tests.support.records import NOON

LONG = {"type": "text", "text": "The shop sells boats and oars. " * 400}
SHORT = {"type": "text", "text": "Hi."}
MARK = {"cache_control": {"type": "ephemeral"}}


def request(*blocks: Message, system: Message = LONG) -> Message:
    """Return a request with a system prompt and one message."""
    return {"system": [system], "messages": [{"role": "user", "content": [*blocks]}]}


def tokens(*blocks: Message) -> int:
    """Return the tokens of blocks, one by one as the provider counts them."""
    return sum(content_tokens([block]) for block in blocks)


def test_a_marked_prefix_is_written_once_and_read_afterwards() -> None:
    account = Account()
    first = account.count(request(SHORT | MARK, system=LONG | MARK))
    assert first == TokenUse(0, 0, cache_write_tokens=tokens(LONG, SHORT))
    second = account.count(request(SHORT, LONG | MARK, system=LONG | MARK))
    assert second == TokenUse(0, 0, cache_write_tokens=tokens(LONG), cache_read_tokens=tokens(LONG, SHORT))
    third = account.count(request(SHORT, LONG, SHORT, system=LONG | MARK))
    assert third == TokenUse(tokens(SHORT), 0, 0, cache_read_tokens=tokens(LONG, SHORT, LONG))
    expected = (
        1.25 * tokens(LONG, SHORT, LONG) + 0.1 * (tokens(LONG, SHORT) + tokens(LONG, SHORT, LONG)) + tokens(SHORT)
    )
    assert account.cost == pytest.approx(expected)
    assert account.tokens == tokens(LONG, SHORT) + tokens(LONG, SHORT, LONG) + tokens(LONG, SHORT, LONG, SHORT)


def test_a_changed_beginning_reads_nothing_and_a_short_prefix_is_not_cached() -> None:
    account = Account()
    account.count(request(SHORT | MARK, system=LONG | MARK))
    changed = {"type": "text", "text": f"Now {LONG['text']}"}
    assert account.count(request(SHORT, system=changed | MARK)).cache_read_tokens == 0
    short = Account()
    assert short.count(request(SHORT | MARK, system=SHORT | MARK)) == TokenUse(input_tokens=tokens(SHORT, SHORT))


def test_a_transcript_becomes_messages_of_alternating_roles() -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    said = [
        ("assistant", "before"),
        ("user", "Hi."),
        ("assistant", "I look."),
        ("assistant", [call]),
        ("user", "Go on."),
    ]
    entries = [TranscriptEntry(str(n), role, content, None) for n, (role, content) in enumerate(said)]
    assert history_of(entries, 9).messages == [
        {"role": "user", "content": [SHORT]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
    ]
    assert len(history_of(entries, 2).messages) == 1


def test_a_prefix_that_was_not_used_for_five_minutes_is_written_again() -> None:
    account, asked = Account(), request(SHORT | MARK, system=LONG | MARK)
    for minute in (0, 5, 10):
        used = account.count(asked, NOON + timedelta(minutes=minute))
    assert used.cache_read_tokens == tokens(LONG, SHORT)
    assert account.count(asked, NOON + timedelta(minutes=15, seconds=1)).cache_write_tokens == tokens(LONG, SHORT)


# A client's own compaction -------------------------------------------------------------------------------------------


def conversation(rounds: int, size: int) -> History:
    """Return rounds of a prompt and an answer, a minute apart; each prompt has `size` times the words of LONG."""
    found = History()
    for number in range(rounds):
        words = f"{number}: {LONG['text'] * size}"
        for role, said in (("user", words), ("assistant", f"Done {number}.")):
            found.messages.append({"role": role, "content": [{"type": "text", "text": said}]})
            found.times.append(NOON + timedelta(minutes=number))
    return found


def test_a_client_compacts_at_its_threshold_and_pays_for_the_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evals.gateway.compaction._THRESHOLD", 20_000)
    history = conversation(8, 1)
    run = replay_compacting(history, (), "claude-code")
    # The call for the summary has the prompt for it, too.
    assert 20_000 <= run.account.largest < 24_000
    assert run.account.requests == 8 + 1
    summary = tokens({"type": "text", "text": run.summary})
    assert 3_900 < summary <= 4_000
    assert run.last["messages"][0]["content"][0]["text"] == run.summary
    monkeypatch.setattr("evals.gateway.compaction._OUTPUT_PRICE", 0)
    unpaid = replay_compacting(history, (), "claude-code").account
    assert run.account.cost - unpaid.cost == pytest.approx(5 * summary)
    short = replay_compacting(conversation(4, 1), (), "claude-code")
    assert (short.summary, short.account.requests) == ("", 4)


def test_a_noted_compaction_happens_at_its_moment_with_its_summary() -> None:
    history = conversation(6, 1)
    noted = [Noted(NOON + timedelta(minutes=2, seconds=30), "Done 0 to 2.")]
    run = replay_compacting(history, noted, "claude-code")
    said = [message["content"][0]["text"] for message in run.last["messages"]]
    # The prompt that came next was part of what was summed up; its answer is the first message behind the summary.
    assert (said[0], said[1], len(said)) == ("Done 0 to 2.", "Done 3.", 5)
    kept = replay_compacting(history, noted, "pi").last["messages"]
    assert [message["content"][0]["text"][:2] for message in kept[1:3]] == ["0:", "Do"]


def test_compactions_are_read_from_transcripts(tmp_path: Any) -> None:
    file = tmp_path / "pi.jsonl"
    file.write_text('{"type":"compaction","timestamp":"2026-11-30T12:00:00Z","summary":"So far."}\n{"compaction"\n')
    assert noted_compactions(file) == [Noted(NOON.replace(year=2026, month=11, day=30), "So far.")]


# Facts ---------------------------------------------------------------------------------------------------------------


def test_a_fact_is_answerable_from_its_message_the_pack_or_the_summary() -> None:
    words = ["We use pnpm.", "The port is 8080.", "Deploy on Fridays.", "Tests need Redis."]
    entries = [TranscriptEntry(str(n), "user", said, None) for n, said in enumerate(words)]
    facts = [
        LabelledFact(fact=said, keys=tuple(said.strip(".").split()), messages=(n,)) for n, said in enumerate(words, 1)
    ]
    pack = "* We use pnpm\n* The port\n* is 8080"
    last = {
        "system": [{"type": "text", "text": pack}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": words[2]}]}],
    }
    run = Replayed("manage", Account(), last)
    assert answerable(run, facts, entries) == [facts[0], facts[2]]
    summed_up = Replayed("compaction", Account(), {**last, "system": []}, "Deploy.\n\nTests need\nRedis.")
    assert answerable(summed_up, facts, entries) == [facts[2], facts[3]]


def test_a_cut_history_is_no_larger_than_the_request_that_it_is_compared_with() -> None:
    history = conversation(8, 1)
    raw = Replayed("off", Account(), request_of(history.messages))
    managed = Replayed("manage", Account(), request_of(history.messages[-4:]))
    assert [*reversed(latest_messages(raw, managed))] == raw.last["messages"][-4:]
    assert said_in([], [], []) == []
