"""The provider of the gateway's replay counts cached tokens as its documentation says."""

import pytest

from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.records import TokenUse
from evals.gateway.provider import Account
from evals.gateway.replay import Message, messages_of

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
    assert messages_of(entries, 9) == [
        {"role": "user", "content": [SHORT]},
        {"role": "assistant", "content": [{"type": "text", "text": "I look."}, call]},
        {"role": "user", "content": [{"type": "text", "text": "Go on."}]},
    ]
    assert len(messages_of(entries, 2)) == 1
