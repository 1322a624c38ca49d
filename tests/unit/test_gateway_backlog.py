"""Exchanges that wait while the database is away: bounded in bytes, the newest of them, each session in its order."""

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.records import Principal, TokenUse
from esker.server.gateway.backlog import Backlog, Exchange
from esker.server.gateway.identity import identified
from esker.server.gateway.records import ModelAnswer, Turn
from esker.server.usecases.open_session import SessionRequest

WHO = Principal("pool", "default", "local", frozenset({"write"}))
KIB = 1024


def exchange(words: list[str], session: str = "s", *, is_fork: bool = False, size: int = KIB) -> Exchange:
    """Return an exchange whose conversation has these words, and an answer that was the last of them."""
    turns = [Turn("user", [{"type": "text", "text": each}]) for each in words]
    answer = ModelAnswer(words[-1], None, turns[-1:], TokenUse(1, 1))
    return Exchange(WHO, SessionRequest("api", session), identified(turns), is_fork, answer, size)


def drained(backlog: Backlog, session: str = "s") -> list[Exchange]:
    """Take all exchanges of a session, in their order."""
    found: list[Exchange] = []
    while first := backlog.first(exchange(["x"], session).key):
        backlog.remove(first.number)
        found.append(first.exchange)
    return found


def words(each: Exchange) -> list[str]:
    """Return the words of an exchange."""
    return [str(block["text"]) for turn in each.turns for block in turn.content]


def test_a_long_session_waits_with_its_latest_transcript_alone_and_the_usage_of_every_call() -> None:
    backlog = Backlog()
    transcript = [f"turn {number}" for number in range(300)]
    dropped = sum(backlog.add(exchange(transcript[:end], size=end * KIB)) for end in range(1, 301))
    assert dropped == 0
    assert backlog.bytes <= 300 * KIB + 300 * 4 * KIB
    found = drained(backlog)
    assert [words(each) for each in found if each.turns] == [transcript]
    assert [each.answer.id for each in found if each.answer] == transcript
    assert (backlog.bytes, len(backlog)) == (0, 0)


def test_a_history_that_was_rewound_loses_no_turn() -> None:
    backlog = Backlog()
    for each in (["a", "b"], ["a", "b", "c"], ["a", "d"], ["a", "d", "e"]):
        backlog.add(exchange(each))
    assert [words(each) for each in drained(backlog)] == [[], ["a", "b", "c"], [], ["a", "d", "e"]]


def test_a_fork_stays_one_when_the_next_exchange_takes_its_turns() -> None:
    backlog = Backlog()
    backlog.add(exchange(["a"], is_fork=True))
    backlog.add(exchange(["a", "b"]))
    assert [each.is_fork for each in drained(backlog)] == [True, True]


def test_the_newest_exchange_stays_however_large_it_is() -> None:
    backlog = Backlog(most_bytes=64 * KIB)
    backlog.add(exchange(["a"], "one"))
    assert backlog.add(exchange(["b"], "two", size=1024 * KIB)) == 1
    assert (drained(backlog, "one"), [words(each) for each in drained(backlog, "two")]) == ([], [["b"]])


@given(
    st.lists(st.tuples(st.sampled_from("pqr"), st.lists(st.sampled_from("abc"), min_size=1, max_size=3)), max_size=30)
)
def test_the_oldest_ones_are_dropped_and_counted_and_the_rest_keeps_its_order(
    sent: list[tuple[str, list[str]]],
) -> None:
    backlog = Backlog(most_bytes=30 * KIB)
    dropped = sum(backlog.add(exchange([*said, str(number)], session)) for number, (session, said) in enumerate(sent))
    assert backlog.bytes <= 30 * KIB
    found = {
        session: [int(each.answer.id or 0) for each in drained(backlog, session) if each.answer] for session in "pqr"
    }
    assert all(numbers == sorted(numbers) for numbers in found.values())
    assert sorted(number for numbers in found.values() for number in numbers) == [*range(dropped, len(sent))]
    assert (backlog.bytes, len(backlog)) == (0, 0)
