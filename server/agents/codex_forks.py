"""Forks in Codex: a rollout that begins with a copy of another thread's history, under new times.

The second header of a fork is that of the thread it was made from, and the copy ends where the fork's own first turn
starts. Copied turns may have starts as well; these are recognised by the time in them or, without one, since no
model can have answered so fast. Early builds recorded no starts: there the copy, which is written at once, ends at the
first pause. Newer builds only refer to the history (`history_base`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from esker.server.agents.content import as_text
from esker.server.agents.lines import JsonLine
from esker.server.agents.reader_entries import as_moment
from esker.server.core.json_input import as_object

# Least time between two lines at which the second is not part of a copy.
_PAUSE = timedelta(seconds=1)
# Least time from the start of a turn to the model's first words.
_FASTEST_ANSWER = timedelta(milliseconds=100)
_ANSWERS = ("agent_message", "task_complete", "turn_complete", "reasoning", "function_call", "custom_tool_call")
_STARTS = ("task_started", "turn_started")
_TURN = (*_STARTS, "user_message", "agent_message", "item_completed")
_ORIGINS = ("forked_from_id", "forked_from_thread_id", "forked_from")
# A UUID of version 7 begins with its time, in milliseconds since 1970.
_TIMED_ID = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
# From this time on (the year 2100, in milliseconds) an id was made up.
_LATEST = 4_102_444_800_000


@dataclass(slots=True)
class _TurnStart:
    """The start of a turn: whether it began before the fork (if recorded), or continued faster than a model answers."""

    number: int
    at: datetime | None
    older: bool | None
    too_fast: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the fork and not its origin began the turn."""
        return not (self.too_fast if self.older is None else self.older)


@dataclass(slots=True)
class _ForkScan:
    """The lines of a fork, while the end of the copied part is searched."""

    begun: datetime | None
    last_header: int = 0  # number of the last header of another thread
    previous: datetime | None = None
    pause: int = 0  # number of the first line after a pause, 0 for none
    last: int = 0
    starts: list[_TurnStart] = field(default_factory=list[_TurnStart])


def is_fork(header: JsonLine, beginning: Iterable[JsonLine]) -> bool:
    """Return whether a rollout is a fork, by its header and the lines after it up to the first one of a turn."""
    if origin_of(header) and not header.get("history_base"):
        return True
    for line in beginning:
        payload = as_object(line.get("payload"))
        if line.get("type") == "session_meta":
            if _thread(payload) not in (None, _thread(header)):
                return True
        elif line.get("type") == "response_item" or payload.get("type") in _TURN:
            return False
    return False


def origin_of(header: JsonLine) -> str | None:
    """Return the thread from which a fork was made, if its header has it."""
    return next((found for key in _ORIGINS if (found := as_text(header.get(key)))), None)


def end_of_copy(header: JsonLine, lines: Iterable[tuple[int, JsonLine]]) -> int:
    """Return the number of the last copied line of a fork; `lines` are those after the header."""
    scan = _ForkScan(as_moment(header.get("timestamp")))
    for number, line in lines:
        _look_at(scan, _thread(header), number, line)
    starts = [start for start in scan.starts if start.number > scan.last_header and not start.older]
    own = next((start for start in starts if start.is_own), starts[0] if starts else None)
    if own is not None:
        return own.number - 1
    return scan.pause - 1 if scan.pause > scan.last_header else scan.last


def _look_at(scan: _ForkScan, thread: str | None, number: int, line: JsonLine) -> None:
    payload, at = as_object(line.get("payload")), as_moment(line.get("timestamp"))
    kind = payload.get("type")
    scan.last = number
    if line.get("type") == "session_meta" and _thread(payload) != thread:
        scan.last_header = number
    if scan.starts and (kind in (*_ANSWERS, *_STARTS) or payload.get("role") == "assistant"):
        latest = scan.starts[-1]
        latest.too_fast |= bool(at and latest.at and at - latest.at < _FASTEST_ANSWER)
    if kind in _STARTS:
        scan.starts.append(_TurnStart(number, at, _is_older(payload, scan.begun)))
    if line.get("type") != "session_meta":
        if at and scan.previous and at - scan.previous >= _PAUSE and not scan.pause:
            scan.pause = number
        scan.previous = at or scan.previous


def _is_older(start: JsonLine, begun: datetime | None) -> bool | None:
    """Return whether a turn started before the fork began, None if that is not recorded."""
    moment = as_moment(start.get("started_at") or None) or _moment_in_id(as_text(start.get("turn_id")) or "")
    return moment < begun - _PAUSE if moment and begun else None


def _moment_in_id(name: str) -> datetime | None:
    found = _TIMED_ID.fullmatch(name)
    milliseconds = int(found[1] + found[2], 16) if found else _LATEST
    return datetime.fromtimestamp(milliseconds / 1_000, UTC) if milliseconds < _LATEST else None


def _thread(header: JsonLine) -> str | None:
    return as_text(header.get("id")) or as_text(header.get("session_id"))
