"""Reading the server's HTTP answers: when to retry, and the message of an error.

Shared by the command line and the hooks (`server/agents/api.py`) and by the Python client
(`server/client/connection.py`). It uses the standard library alone, since hooks start in every turn of an agent.
"""

import json
from dataclasses import dataclass
from typing import Any

from esker.server.core.errors import EskerError, Misconfigured, Unavailable
from esker.server.core.json_input import as_object

BUSY = (429, 503)
"""Statuses after which a request is retried: the server was overloaded and changed nothing."""
MOST_TRIES = 4
"""The most times that a request is sent; with the longest pauses that takes half a minute."""
LONGEST_PAUSE = 10.0
"""The longest pause before a retry, in seconds; a longer Retry-After is cut to it."""
# The pauses before retries, in seconds, if the server sends no Retry-After.
_USUAL_PAUSE = 1.0

_KEY_HINT = "Set ESKER_KEY to a key of the server; `esker key create NAME` makes one where its database is."
_URL_HINT = "Set ESKER_URL to an address such as http://127.0.0.1:8377."


class ServerRefused(EskerError):
    """The server refused the request."""

    def __init__(self, message: str, *, status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


@dataclass(frozen=True, slots=True)
class Problem:
    """An error response of the server: what happened, and what to do next."""

    status: int
    detail: str
    hint: str | None


def pause(retry_after: str | None) -> float:
    """Return how many seconds to wait before the next try, from a Retry-After header.

    A proxy may send a date instead of seconds; it is ignored.
    """
    seconds = retry_after.strip() if retry_after else ""
    return min(LONGEST_PAUSE, float(seconds)) if seconds.isascii() and seconds.isdecimal() else _USUAL_PAUSE


def read_answer(status: int, text: bytes) -> Any:
    """Return the value of an answer, or a Problem for an error. Raises Unavailable if Esker did not send it."""
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise Unavailable(f"Another program answers at this address, not Esker (status {status}).") from error
    if status < 400:
        return value
    problem = as_object(value)
    hint = _KEY_HINT if status == 401 else problem.get("hint")
    return Problem(status, problem.get("detail") or f"The server answered {status}.", hint)


def unreachable(url: str, error: Exception) -> Unavailable:
    """Return the error for an address at which no server answers."""
    return Unavailable(
        f"No Esker answers at {_redacted(url)} ({str(error) or type(error).__name__}).",
        hint="Start it with `esker serve`, or set ESKER_URL to its address.",
    )


def no_address(url: str) -> Misconfigured:
    """Return the error for a URL that is not the address of a server."""
    return Misconfigured(f"{_redacted(url)!r} is not the address of a server.", hint=_URL_HINT)


def _redacted(url: str) -> str:
    """Return an address without a secret."""
    # The rules take a fifth of the time in which a hook starts, and few hooks report an address.
    from esker.server.core.redaction import redact  # noqa: PLC0415

    return redact(url)
