"""Reading other people's text takes time in proportion to its length, whatever it repeats.

A pattern that takes quadratic time makes a server slow for every pool, by one message.
"""

import time
from collections.abc import Callable

import pytest

from esker.server.core.conversation.observer_text import message_text
from esker.server.core.conversation.passages import passages_of
from esker.server.core.json_input import Json
from esker.server.core.redaction import redact
from esker.server.core.text.fencing import neutral
from esker.server.core.text.indexing import indexed_parts
from esker.server.providers.extractive.observer import observe
from tests.support.records import conversation

# Pieces that a hostile text repeats: those on which patterns of text and of tools begin, or may end.
PIECES = (
    " ", "\t", "\n", "a", "7", "-", "=", "/a", ".", "\\", '"', "<", "a ", "a, ", "a. ", "7.", "a.b", "A_", "# ", "* ",
    "| ", "1) ", "<a>", "a=", "a: ", "\n ", "。", "日", '"a"', "(a)", "[a]", "“。", "error ", "Error: ", "git commit ",
    "curl ", "esker ", "://", "a@", "{", "next ", "we use ", "I said ", "token=", "eyJa", "<system ", "password: ", "E",
)  # fmt: skip
# The largest text has eight times the length of the smallest, so quadratic time grows to 64 times.
SMALLEST, HALF, LARGEST = 1, 4, 8
MOST_GROWTH = 20.0
# The last doubling of the length counts as well: a first one may reach a rule that shorter texts did not.
MOST_GROWTH_AT_LAST = 2.8
TRIES = 3
# Times below the clock's noise are not compared.
NOISE_SECONDS = 0.03
# Without --full, this part of the pieces is tried, in texts of this part of their length. Those of the slowest reader
# are short enough.
PART = 3


def as_user(text: str) -> None:
    """Observe a text that a person wrote."""
    observe(conversation(("user", text)))


def as_agent(text: str) -> None:
    """Observe a text that an agent wrote."""
    observe(conversation(("user", "Why does it fail?"), ("assistant", text)))


def as_command(text: str) -> None:
    """Observe a command."""
    use: Json = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": text}}]
    observe(conversation(("user", "Run it."), ("assistant", use)))


def as_output(text: str) -> None:
    """Observe the output of a command that failed."""
    use: Json = [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]
    result: Json = [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": text}]
    observe(conversation(("user", "Run it."), ("assistant", use), ("user", result)))


def as_message(text: str) -> None:
    """Turn a message into text and into passages."""
    message_text("user", [{"type": "text", "text": text}], {})
    passages_of(conversation(("user", text)).messages)


@pytest.mark.parametrize(
    ("read", "characters"),
    [
        (as_user, 250),  # its rules take longest
        (as_agent, 3_000),
        (as_command, 5_000),
        (as_output, 6_000),
        (as_message, 4_000),
        (redact, 4_000),
        (indexed_parts, 3_000),
        (neutral, 6_000),
    ],
)
def test_text_is_read_in_linear_time(
    read: Callable[[str], object], characters: int, request: pytest.FixtureRequest
) -> None:
    pieces = PIECES
    if not request.config.getoption("--full"):
        pieces, characters = PIECES[::PART], characters if read is as_user else characters // PART
    read("warm")
    for piece in pieces:

        def taken(size: int, piece: str = piece) -> float:
            return seconds(read, hostile(piece, size * characters))

        # A busy processor makes one reading slow, and a quadratic pattern all of them.
        slow: list[tuple[float, float]] = []
        while len(slow) < TRIES and (times := grown(taken)):
            slow.append(times)
        assert len(slow) < TRIES, (piece, slow)


def grown(taken: Callable[[int], float]) -> tuple[float, float] | None:
    """Return the times of the longest and the shortest text if they are out of proportion.

    Shorter texts are read only if the longest gives reason to.
    """
    longest = taken(LARGEST)
    if longest <= NOISE_SECONDS or longest <= MOST_GROWTH_AT_LAST * taken(HALF):
        return None
    shortest = taken(SMALLEST)
    return None if longest <= MOST_GROWTH * shortest else (longest, shortest)


def hostile(piece: str, size: int) -> str:
    """Return lines that repeat a piece, from their beginning and within them."""
    repeated = piece * (size // len(piece) // 2)
    return f"{repeated}b\na{repeated}b"


def seconds(read: Callable[[str], object], text: str) -> float:
    """Return the CPU time that reading a text takes."""
    before = time.thread_time()
    read(text)
    return time.thread_time() - before
