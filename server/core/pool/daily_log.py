"""Daily logs: the observations of a day, by session, as Markdown for people.

The same rows give the same bytes. The first line identifies a log, so that no other file is taken for one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from esker.server.core.clock import zone
from esker.server.core.pack.rendering import DONE, MARK, reservations
from esker.server.core.records import Category, Kind, Priority, Trust
from esker.server.core.text.fencing import fenced

_NAME = re.compile(r"\d{4}-\d\d-\d\d\.md\Z")
_REPLACED = " (replaced later)"


@dataclass(frozen=True, slots=True)
class LoggedSession:
    """A session, as its heading in a log shows it."""

    id: str
    client: str
    project: str | None
    timezone: str
    thread_title: str | None


@dataclass(frozen=True, slots=True)
class Logged:
    """An observation. `superseded_by` is the row that replaced or condensed it."""

    id: str
    session_id: str
    content: str
    kind: Kind
    priority: Priority
    category: Category
    tentative: bool
    trust: Trust
    said_at: datetime
    superseded_by: str | None


def first_line(project: str | None) -> str:
    """Return the line that identifies a log; each project has its own."""
    of = f" of {fenced(project).replace('--', '- -')}" if project else ""
    return f"<!-- Esker's log{of}: written anew by each `esker export daily`, so do not edit it. -->"


def is_log_name(name: str) -> bool:
    """Return whether a file's name is that of a log."""
    return bool(_NAME.match(name))


def daily_logs(
    rows: Iterable[Logged], sessions: Mapping[str, LoggedSession], project: str | None, since: date | None = None
) -> dict[str, str]:
    """Return the logs by file name: one for each day with an observation, in the time zone of its session.

    Days before `since` are left out.
    """
    found = sorted((row for row in rows if row.session_id in sessions), key=lambda row: (row.said_at, row.id))
    observed = {row.id for row in found}
    days: dict[date, list[Logged]] = {}
    for row in found:
        day = _local(row, sessions).date()
        if since is None or day >= since:
            days.setdefault(day, []).append(row)
    return {f"{day.isoformat()}.md": _log(day, days[day], sessions, project, observed) for day in sorted(days)}


def _local(row: Logged, sessions: Mapping[str, LoggedSession]) -> datetime:
    return row.said_at.astimezone(zone(sessions[row.session_id].timezone))


def _log(
    day: date,
    rows: Sequence[Logged],
    sessions: Mapping[str, LoggedSession],
    project: str | None,
    observed: set[str],
) -> str:
    lines = [first_line(project), "", f"# {day.isoformat()}"]
    by_session: dict[str, list[Logged]] = {}
    for row in rows:
        by_session.setdefault(row.session_id, []).append(row)
    for session_id, of_session in by_session.items():
        times = [f"{_local(row, sessions):%H:%M}" for row in of_session]
        lines += ["", f"## {_heading(sessions[session_id], times[0], times[-1])}", ""]
        lines += [_line(row, time, observed) for row, time in zip(of_session, times, strict=True)]
    return "\n".join(lines) + "\n"


def _heading(session: LoggedSession, first: str, last: str) -> str:
    """Return the time of a session, its client, project and title."""
    about = (session.client, session.project, session.thread_title)
    time = first if first == last else f"{first}–{last}"
    return " · ".join([f"{time} {session.timezone}", *(fenced(part) for part in about if part)])


def _line(row: Logged, time: str, observed: set[str]) -> str:
    """Return an observation with its marks. A row that a reflection condensed does not count as replaced."""
    done = f" {DONE}" if row.category == "outcome" else ""
    reserved = reservations(row)
    replaced = _REPLACED if row.superseded_by in observed else ""
    return f"- {MARK[row.priority]}{done} ({time}) {fenced(row.content).replace('<!--', '&lt;!--')}{reserved}{replaced}"
