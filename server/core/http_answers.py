"""Reading the server's HTTP answers: when to retry, and the message of an error.

Shared by the command line and the hooks (`server/agents/api.py`) and by the Python client
(`server/client/connection.py`). It uses the standard library alone, since hooks start in every turn of an agent.
"""

import json
from dataclasses import dataclass
from typing import Any, cast

from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.core.redaction import redact

BUSY = (429, 503)
"""The statuses of a server that is asked again: it has no time, and changed nothing."""
MOST_TRIES = 4
"""How often a busy server is asked in all; with the longest pause that is half a minute."""
LONGEST_PAUSE = 10.0
_USUAL_PAUSE = 1.0

_KEY_HINT = "Set ESKER_KEY to a key of the server; `esker key create NAME` makes one where its database is."
_URL_HINT = "It looks like http://127.0.0.1:8377."


@dataclass(frozen=True, slots=True)
class Problem:
    """What an error of the server says: what happened, and what to do next."""

    status: int
    detail: str
    hint: str | None


def pause(retry_after: str | None) -> float:
    """Return how many seconds a busy server wants to be left alone.

    A proxy may name a date instead, which is not worth reading.
    """
    told = retry_after.strip() if retry_after else ""
    return min(LONGEST_PAUSE, float(told)) if told.isascii() and told.isdecimal() else _USUAL_PAUSE


def read_answer(status: int, text: bytes) -> Any:
    """Return an answer, or the Problem that it is. Raises Unavailable for one that is not the server's."""
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise Unavailable(f"What answers there is not Esker (status {status}).") from error
    if status < 400:
        return value
    told = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    hint = _KEY_HINT if status == 401 else told.get("hint")
    return Problem(status, told.get("detail") or f"The server answered {status}.", hint)


def unreachable(url: str, error: Exception) -> Unavailable:
    """Return the error for an address where nobody answers."""
    return Unavailable(
        f"No Esker answers at {redact(url)} ({error or type(error).__name__}).",
        hint="Start it with `esker serve`, or say with ESKER_URL where it is.",
    )


def no_address(url: str) -> Misconfigured:
    """Return the error for what is no address of a server."""
    return Misconfigured(f"{redact(url)!r} is no address of a server (ESKER_URL).", hint=_URL_HINT)
