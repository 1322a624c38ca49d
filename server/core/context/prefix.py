"""What goes before the messages of a request to the Messages API: what stays the same, a breakpoint, what changes."""

import re
from collections.abc import Sequence

from esker.server.core.conversation.records import Block, Session
from esker.server.core.errors import InvalidInput
from esker.server.core.pack.rendering import fenced

MOST_BREAKPOINTS = 4
"""How many `cache_control` marks the Messages API takes in one request."""

HINT = (
    "This conversation began before the messages below. What mattered in the earlier ones is kept in the observations"
    " above. Go on where the messages leave off: do not greet anew, and do not ask again for what stands above."
)
"""What a model is told where earlier messages are left out."""

# The mark of a row stands at the beginning of its line, and a row cannot begin a line of its own.
_MINOR = re.compile("^\\* [🟡🟢] ", re.MULTILINE)


def for_model(pack: str) -> str:
    """Return the text of a pack without the marks of medium and low priority; what is 🔴 stands out by them alone."""
    return _MINOR.sub("* ", pack)


def task_text(session: Session) -> str:
    """Return what a session is at and how it goes on, a line each; empty if neither is known."""
    known = (("Current task", session.current_task), ("Suggested continuation", session.suggested_continuation))
    return "\n".join(f"{label}: {fenced(text)}" for label, text in known if text and text.strip())


def system_blocks(caller: Sequence[Block], pack: str, changing: Sequence[str]) -> list[Block]:
    """Return the `system` of a request: the caller's blocks, the pack with a breakpoint, then what may change.

    The breakpoint is left out where the caller's own marks are as many as the API takes; blank texts are left out.
    Raises InvalidInput for more marks than that.
    """
    marks = sum("cache_control" in block for block in caller)
    if marks > MOST_BREAKPOINTS:
        raise InvalidInput(
            f"system has {marks} cache_control marks; the Messages API takes {MOST_BREAKPOINTS}.",
            hint="Leave out those in the middle: a later mark covers what stands before it.",
        )
    stable: Block = {"type": "text", "text": pack}
    if marks < MOST_BREAKPOINTS:
        stable["cache_control"] = {"type": "ephemeral"}
    behind: list[Block] = [{"type": "text", "text": text} for text in changing if text]
    return [*caller, stable, *behind]
