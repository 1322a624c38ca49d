"""A backlog is cut into slices that lose nothing and end where a turn ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.conversation.blocks import is_spoken
from esker.server.core.conversation.records import Role, StoredMessage
from esker.server.core.conversation.slices import first_half, first_slice, gap_before, starts_turn
from esker.server.core.json_input import Json
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens
from tests.support.records import call, message, result

LIMIT = 60


def _message(seq: int, kind: str, words: int) -> StoredMessage:
    text = "word " * words
    match kind:
        case "user":
            return message(seq, "user", text)
        case "assistant":
            return message(seq, "assistant", text)
        case "call":
            return message(seq, "assistant", call("Bash", command=text))
        case _:
            return message(seq, "user", result(text))


kinds = st.tuples(st.sampled_from(["user", "assistant", "call", "result"]), st.integers(min_value=1, max_value=90))
backlogs = st.lists(kinds, min_size=1, max_size=25).map(
    lambda items: [_message(seq, kind, words) for seq, (kind, words) in enumerate(items, start=1)]
)


@given(backlogs)
def test_slices_cover_everything_once_and_in_order(backlog: list[StoredMessage]) -> None:
    rest, covered = backlog, list[int]()
    while rest:
        taken = first_slice(rest, LIMIT)
        assert taken
        covered += [shown.seq for shown in taken]
        rest = rest[len(taken) :]
    assert covered == [shown.seq for shown in backlog]


@given(backlogs)
def test_a_slice_is_within_its_limit(backlog: list[StoredMessage]) -> None:
    taken = first_slice(backlog, LIMIT)
    assert sum(estimate_tokens(shown.text) for shown in taken) <= LIMIT


@given(backlogs)
def test_a_slice_ends_at_the_end_of_a_turn_if_it_contains_one(backlog: list[StoredMessage]) -> None:
    taken = len(first_slice(backlog, LIMIT))
    if taken == len(backlog):
        return
    fitting = next(n for n in range(len(backlog), -1, -1) if sum(m.shown_tokens for m in backlog[:n]) <= LIMIT)
    turn_ends = [n for n in range(1, fitting + 1) if starts_turn(backlog[n])]
    if turn_ends:
        assert taken == turn_ends[-1]
    elif any(is_spoken(backlog[n].content) for n in range(1, fitting + 1)):
        assert is_spoken(backlog[taken].content)


def test_a_message_larger_than_a_slice_shows_its_head_and_tail() -> None:
    huge = message(1, "user", "Begin. " + "middle " * 500 + "The end.")
    [shown] = first_slice([huge, message(2, "user", "next")], LIMIT)
    assert shown.text.startswith("Begin.")
    assert shown.text.endswith("The end.")
    assert "left out" in shown.text
    assert estimate_tokens(shown.text) <= LIMIT


def test_images_are_counted_and_a_message_with_too_many_is_a_slice_of_its_own() -> None:
    image: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    images: Json = [image, image, image, image, image, image]
    backlog = [message(seq, "user", images) for seq in range(1, 5)]
    assert backlog[0].shown_tokens > 6 * IMAGE_TOKENS
    assert len(first_slice(backlog, 20 * IMAGE_TOKENS)) == 3
    [alone] = first_slice(backlog, 3 * IMAGE_TOKENS)
    assert alone.shown_tokens <= 3 * IMAGE_TOKENS


def test_a_slice_never_ends_between_a_call_and_its_result() -> None:
    # Clients send a result in the role of the user or of a tool.
    for role in ("user", "tool"):
        backlog = [
            message(1, "user", "Start."),
            message(2, "assistant", "I look."),
            message(3, "assistant", call("Bash", command="ls")),
            message(4, role, result("word " * LIMIT)),
            message(5, "assistant", "Done."),
        ]
        limit = sum(each.shown_tokens for each in backlog[:3])
        assert [shown.seq for shown in first_slice(backlog, limit)] == [1, 2]


def test_a_half_ends_at_the_turn_boundary_nearest_to_half_of_the_tokens() -> None:
    sizes = {"user": 10, "assistant": 40}
    roles: list[Role] = ["user", "assistant", "user", "assistant", "user", "assistant", "user", "assistant"]
    backlog = [message(seq, role, "word " * sizes[role]) for seq, role in enumerate(roles, start=1)]
    half = first_half(backlog)
    assert half is not None
    assert [shown.seq for shown in half] == [1, 2, 3, 4]
    assert first_half(backlog[:2]) is None


@pytest.mark.parametrize(
    ("minutes", "line"),
    [
        (9, ""),
        (10, "[10 minutes later]\n"),
        (60, "[1 hour later]\n"),
        (179, "[2 hours later]\n"),
        (1_440, "[1 day later]\n"),
        (3_000, "[2 days later]\n"),
    ],
)
def test_a_silence_of_ten_minutes_or_more_is_marked_in_its_largest_unit(minutes: int, line: str) -> None:
    before, after = message(1, "user", "One."), message(1 + minutes, "user", "Two.")
    assert gap_before(after, before) == line
    assert gap_before(after, None) == ""
