"""A context: the messages that must be sent, the rows after the pack, and the breakpoint."""

from datetime import timedelta

import pytest

from esker.server.core.context.assembly import Tail, behind_pack, news
from esker.server.core.context.prefix import MOST_BREAKPOINTS, for_model, system_blocks
from esker.server.core.context.tail import first_needed, is_enough
from esker.server.core.conversation.records import Block
from esker.server.core.errors import InvalidInput
from esker.server.core.pack.records import Pack
from esker.server.core.recall.answer import Hit
from esker.server.core.records import Source
from tests.support.records import NOON, group, hit, message, own_row, session


@pytest.mark.parametrize(
    ("last", "observed", "keep", "needed"),
    [
        (20, 20, 12, 9),  # the last 12 are 9 to 20
        (20, 5, 12, 6),  # the first that is not observed
        (20, 8, 12, 9),
        (5, 5, 12, 1),
        (0, 0, 12, 1),
        (20, 20, 0, 21),
    ],
)
def test_unobserved_messages_and_the_last_few_must_be_sent(last: int, observed: int, keep: int, needed: int) -> None:
    assert first_needed(last, observed, keep) == needed


def test_reading_ends_at_the_first_message_or_far_enough_back_and_over_budget() -> None:
    first, later = message(1, "user", "Hello."), message(100, "user", "Hello.")
    assert not is_enough([], 300, 0)
    assert is_enough([first], 300, 10_000)
    assert is_enough([later], 300, later.tokens - 1)
    assert not is_enough([later], 300, later.tokens), "another message may fit"
    assert not is_enough([later], 299, 0), "an answered call may be further back"


def packed(*ids: str) -> Pack:
    """Return a pack of some rows that was frozen at noon."""
    return Pack("", "", 0, [*ids], 0, "initial", NOON, 1)


def text_after(pack: Pack, *, created: timedelta, tail: Tail) -> tuple[str, list[str]]:
    """Return the blocks after a pack for a session with one row of a group of messages 1 to 9."""
    row = own_row("The port is 8080.", 1, id="mem_1", group_id="grp_1")
    groups = {"grp_1": group(created_at=NOON + created)}
    return behind_pack(pack, [row], groups, session(last_seq=20), tail)


NOT_SENT, SENT = Tail(10, [], [], 0), Tail(1, [], [], 0)


@pytest.mark.parametrize(("seconds", "shown"), [(1, True), (0, True), (-59, True), (-60, False), (-3_600, False)])
def test_rows_that_may_have_been_committed_after_the_pack_follow_it(seconds: int, shown: bool) -> None:
    text, ids = text_after(packed(), created=timedelta(seconds=seconds), tail=NOT_SENT)
    assert ("The port is 8080." in text) is shown
    assert ids == (["mem_1"] if shown else [])


def test_rows_that_the_pack_shows_or_whose_messages_are_sent_do_not_follow_it() -> None:
    assert text_after(packed("mem_1"), created=timedelta(1), tail=NOT_SENT) == ("", [])
    assert text_after(packed(), created=timedelta(1), tail=SENT) == ("", [])


def heard_in(*sources: Source) -> Hit:
    """Return a hit of recall with these sources."""
    return hit(kind="observation", session_id="ses_1", sources=list(sources))


@pytest.mark.parametrize(
    ("sources", "new"),
    [
        ((Source("ses_1", [12], []),), False),
        ((Source("ses_1", [9, 12], []),), True),  # one message is not sent
        ((Source("ses_2", [12], []),), True),
        ((Source("ses_1", [12], []), Source("ses_2", [12], [])), True),
        ((), True),
    ],
)
def test_a_hit_is_news_unless_all_its_messages_are_sent(sources: tuple[Source, ...], new: bool) -> None:
    found = heard_in(*sources)
    assert news([found], [], "ses_1", NOT_SENT) == ([found] if new else [])
    assert news([found], ["mem_1"], "ses_1", NOT_SENT) == [], "the pack shows it"


def marked(count: int) -> list[Block]:
    """Return `count` blocks of a caller with a mark each."""
    return [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}} for _ in range(count)]


@pytest.mark.parametrize("own", range(MOST_BREAKPOINTS + 1))
def test_the_pack_has_a_breakpoint_unless_the_caller_uses_all_of_them(own: int) -> None:
    *callers, pack, hint = system_blocks(marked(own), "The pack.", ["", "A hint."])
    assert len(callers) == own
    assert (pack["text"], hint) == ("The pack.", {"type": "text", "text": "A hint."})
    assert ("cache_control" in pack) is (own < MOST_BREAKPOINTS)


def test_more_breakpoints_than_the_api_accepts_are_refused() -> None:
    with pytest.raises(InvalidInput, match="5 cache_control marks"):
        system_blocks(marked(MOST_BREAKPOINTS + 1), "The pack.", [])


def test_only_the_marks_of_high_priority_are_sent_to_a_model() -> None:
    pack = "* 🔴 A.\n* 🟡 B.\n* 🟢 C says * 🟡 D."
    assert for_model(pack) == "* 🔴 A.\n* B.\n* C says * 🟡 D."
