"""Passages: windows cover all spoken text, in order, independent of when they are cut."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.conversation.passages import MOST_MESSAGES, WINDOW_TOKENS, NewPassage, passage_over, passages_of
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.text.terms import says_something
from esker.server.core.text.tokens import estimate_tokens
from tests.support.records import NOON, message

TEXTS = st.one_of(
    st.sampled_from(["", "…", "Yes.", "The river rises. " * 4, "The bridge is high. " * 12, "whale " * 400, "河" * 90]),
    st.text(max_size=60),
)
GAPS = st.sampled_from([0, 1, 30, 3 * 60, 5 * 60])


@st.composite
def sessions(draw: st.DrawFn) -> list[StoredMessage]:
    """Draw the messages of a session: texts of all sizes, with pauses between some."""
    said = draw(st.lists(st.tuples(TEXTS, GAPS, st.sampled_from(["user", "assistant"])), max_size=30))
    sent, messages = NOON, list[StoredMessage]()
    for seq, (text, minutes, role) in enumerate(said, start=1):
        sent += timedelta(minutes=minutes)
        messages.append(replace(message(seq, "user", "x"), text=text, sent_at=sent, role=role))
    return messages


def plain(seq: int, text: str, minutes: float | None = None) -> StoredMessage:
    """Return a message that was sent `minutes` after noon."""
    made = replace(message(seq, "user", "x"), text=text)
    return made if minutes is None else replace(made, sent_at=NOON + timedelta(minutes=minutes))


def spans(passages: Sequence[NewPassage]) -> list[tuple[int, int]]:
    """Return the first and the last message of each."""
    return [(passage.first_seq, passage.last_seq) for passage in passages]


@given(sessions())
def test_windows_contain_every_message_with_text_in_order(messages: list[StoredMessage]) -> None:
    passages = passages_of(messages)
    starts = [passage.first_seq for passage in passages]
    assert starts == sorted(set(starts))
    lines = {m.seq: f"{m.role}: {m.text}" for m in messages if says_something(m.text)}
    covered: set[int] = set()
    for passage in passages:
        held = [seq for seq in lines if passage.first_seq <= seq <= passage.last_seq]
        assert passage.text == "\n".join(lines[seq] for seq in held)
        assert {passage.first_seq, passage.last_seq} <= lines.keys()
        covered |= set(held)
    assert covered == lines.keys()


@given(sessions())
def test_windows_keep_their_limits_and_end_at_a_pause(messages: list[StoredMessage]) -> None:
    by_seq = {m.seq: m for m in messages if says_something(m.text)}
    for passage in passages_of(messages):
        held = [m for seq, m in by_seq.items() if passage.first_seq <= seq <= passage.last_seq]
        assert 1 <= len(held) <= MOST_MESSAGES
        # The cost of lines is added up, which is at least what they cost together.
        assert len(held) == 1 or passage.tokens <= WINDOW_TOKENS + len(held)
        for one, other in zip(held, held[1:], strict=False):
            assert other.sent_at - one.sent_at < timedelta(hours=4)
        assert (passage.said_from, passage.said_to) == (held[0].sent_at, held[-1].sent_at)


@given(sessions(), st.data())
def test_cutting_again_from_the_last_window_gives_the_same_as_cutting_once(
    messages: list[StoredMessage], data: st.DataObject
) -> None:
    passages: list[NewPassage] = []
    seen = 0
    while seen < len(messages):
        upto = data.draw(st.integers(seen + 1, len(messages)), label="so many are there by now")
        first = passages[-1].first_seq if passages else 1
        passages = [*passages[:-1], *passages_of(messages[first - 1 : upto])]
        seen = upto
    assert passages == passages_of(messages)


def test_a_pause_of_four_hours_ends_a_window_and_a_shorter_one_does_not() -> None:
    assert spans(passages_of([plain(1, "Here.", 0), plain(2, "There.", 239)])) == [(1, 2)]
    assert spans(passages_of([plain(1, "Here.", 0), plain(2, "There.", 240)])) == [(1, 1), (2, 2)]


def test_a_message_of_a_third_of_a_window_begins_the_next_window_and_a_longer_one_does_not() -> None:
    first, last = plain(1, "word " * 20), plain(3, "word " * 100)
    third = WINDOW_TOKENS // 3
    for tokens, begin in ((third, 2), (third + 1, 3)):
        second = plain(2, "word " * (tokens - 2))
        assert estimate_tokens(f"user: {second.text}") == tokens
        assert spans(passages_of([first, second, last])) == [(1, 2), (begin, 3)]


def test_a_giant_message_is_a_window_by_itself() -> None:
    giant = "The whale swims on. " * 2_000
    passages = passages_of([plain(1, "Look."), plain(2, giant), plain(3, "I see.")])
    assert spans(passages) == [(1, 1), (2, 2), (3, 3)]
    assert passages[1].text == f"user: {giant}"
    assert len(json.loads(passages[1].parts_json)) > 10
    assert passages[1].tokens == estimate_tokens(passages[1].text)


def test_a_short_last_message_also_begins_the_next_window() -> None:
    passages = passages_of([plain(n, f"Word number {n} is said.") for n in range(1, 2 * MOST_MESSAGES)])
    assert spans(passages) == [(1, 6), (6, 11)]
    apart = [plain(n, f"Word {n}.", n if n <= MOST_MESSAGES else n + 300) for n in range(1, 10)]
    assert spans(passages_of(apart)) == [(1, 6), (7, 9)], "not over a pause"


def test_messages_without_words_do_not_make_a_window() -> None:
    assert passages_of([plain(1, ""), plain(2, "…"), plain(3, "🙂")]) == []
    assert spans(passages_of([plain(1, "Yes."), *(plain(n, "…") for n in range(2, 40)), plain(40, "No.")])) == [(1, 40)]


def test_a_window_is_trusted_as_its_least_trusted_message_and_found_by_words_alone() -> None:
    passage = passages_of([plain(1, "The river."), replace(plain(2, "The bridge."), role="tool", trust="external")])[0]
    assert (passage.trust, passage.text) == ("external", "user: The river.\ntool: The bridge.")
    assert set(json.loads(passage.parts_json)[0]["terms"]) == {"river", "bridg"}, "the speaker is not a word of it"
    later = passages_of([plain(1, "The river!")])[0]
    assert later.content_hash != passages_of([plain(1, "The river.")])[0].content_hash


def test_one_window_over_a_span_leaves_out_empty_messages_and_keeps_the_span() -> None:
    messages = [plain(4, ""), plain(5, "The river."), plain(6, "")]
    passage = passage_over(messages)
    assert passage is not None
    assert (passage.first_seq, passage.last_seq, passage.text) == (4, 6, "user: The river.")
    assert passage_over([plain(4, "")]) is None
    long = [plain(n, "The river rises. " * 20) for n in range(1, 20)]
    whole = passage_over(long)
    assert whole is not None
    assert (whole.first_seq, whole.last_seq) == (1, 19)
