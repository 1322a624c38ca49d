"""The `system` of a request to the Messages API: the stable prefix, a cache breakpoint, then texts that change."""

import re
from collections.abc import Sequence

from esker.server.core.conversation.records import Block, StoredSession
from esker.server.core.errors import InvalidInput
from esker.server.core.text.fencing import fenced

MOST_BREAKPOINTS = 4
"""Most `cache_control` marks that the Messages API accepts in one request."""

HINT = (
    "This conversation began before the messages below. What mattered in the earlier ones is kept in the observations"
    " above. Continue where the messages leave off: do not greet again, and do not ask for anything stated above."
)
"""Sent to the model if earlier messages are left out."""

# A line of a pack begins with the mark of its row, and no row can begin a line by itself.
_MINOR = re.compile("^\\* [🟡🟢] ", re.MULTILINE)


def for_model(pack: str) -> str:
    """Return the text of a pack without the marks of medium and low priority, so that 🔴 rows stand out."""
    return _MINOR.sub("* ", pack)


def task_text(session: StoredSession) -> str:
    """Return a session's current task and suggested continuation, a line each; empty if neither is known."""
    known = (("Current task", session.current_task), ("Suggested continuation", session.suggested_continuation))
    return "\n".join(f"{label}: {fenced(text)}" for label, text in known if text and text.strip())


def system_blocks(caller: Sequence[Block], pack: str, changing: Sequence[str]) -> list[Block]:
    """Return the `system` of a request: the caller's blocks, the pack with a cache breakpoint, then the changing texts.

    The breakpoint is left out if the caller's own marks are as many as the API accepts; empty texts are left out.
    Raises InvalidInput for more marks than that.
    """
    marks = sum("cache_control" in block for block in caller)
    if marks > MOST_BREAKPOINTS:
        raise InvalidInput(
            f"system has {marks} cache_control marks; the Messages API takes {MOST_BREAKPOINTS}.",
            hint="Leave out those in the middle: a mark covers everything before it.",
        )
    stable: Block = {"type": "text", "text": pack}
    if marks < MOST_BREAKPOINTS:
        stable["cache_control"] = {"type": "ephemeral"}
    behind: list[Block] = [{"type": "text", "text": text} for text in changing if text]
    return [*caller, stable, *behind]
