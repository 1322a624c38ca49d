"""Memory as text: a pack (`<global_observations>`, then `<local_observations>` with the session's own groups), a hit.

Rendering is a pure function of the rows, so that the same rows give the same bytes. Rows are data: a row cannot
close or open one of our elements.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from server.core.clock import zone
from server.core.recalled import Hit
from server.core.records import Group, Memory, Priority, Session
from server.core.tokens import estimate_tokens

MARK: dict[Priority, str] = {"high": "🔴", "medium": "🟡", "low": "🟢"}
DONE = "✅"
TENTATIVE = " (tentative)"
_OUR_TAGS = re.compile(
    r"<(?=\s{0,9}/?\s{0,9}(?:global[-_]observations|local[-_]observations|observation[-_]group|recalled[-_]memories"
    r"|expanded[-_]memory)\b)",
    re.IGNORECASE,
)
# What a terminal obeys, and what turns the direction of writing.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+")


@dataclass(frozen=True, slots=True)
class PackRows:
    """What a pack shows: the pool's rows in rank order, the session's own rows by time, and their groups.

    `pins_left` pinned rows did not fit.
    """

    pool: Sequence[Memory]
    own: Sequence[Memory]
    groups: dict[str, Group]
    pins_left: int = 0


def render_pack(rows: PackRows, session: Session) -> str:
    """Return the text of a session's pack, with dates in its time zone. Both elements are there, if need be empty."""
    return "\n".join(
        [
            "<global_observations>",
            *(pool_line(memory, session) for memory in rows.pool),
            "</global_observations>",
            "<local_observations>",
            *_own_lines(rows, session.timezone),
            "</local_observations>",
        ]
    )


def pool_line(memory: Memory, session: Session) -> str:
    """Return one row of the pool with its date and, where it is another one, its project."""
    about = f" (project {fenced(memory.project)})" if memory.project and memory.project != session.project else ""
    return f"* {_mark(memory)} {local_date(memory.said_at, session.timezone)} {_said(memory)}{about}"


def offered_line(memory: Memory) -> str:
    """Return one row as an observer is shown it: by its id, so that it can be named, and on one line."""
    return f"- {memory.id} {' '.join(memory.content.split())}"


def offered_cost(memory: Memory) -> int:
    """Return the tokens of that line."""
    return estimate_tokens(offered_line(memory)) + 1


def _own_lines(rows: PackRows, timezone: str) -> Iterable[str]:
    for group_id, memories in groupby(rows.own, key=lambda memory: memory.group_id):
        group = rows.groups.get(group_id) if group_id else None
        if group is None:
            yield from _dated_lines(memories, timezone)
            continue
        yield open_group(group)
        yield from _dated_lines(memories, timezone)
        yield "</observation-group>"


def _dated_lines(memories: Iterable[Memory], timezone: str) -> Iterable[str]:
    for day, dated in groupby(memories, key=lambda memory: local_date(memory.said_at, timezone)):
        yield f"Date: {day}"
        yield from (own_line(memory, timezone) for memory in dated)


def own_line(memory: Memory, timezone: str) -> str:
    """Return one row of the session itself with its time of day."""
    time = memory.said_at.astimezone(zone(timezone)).strftime("%H:%M")
    return f"* {_mark(memory)} ({time}) {_said(memory)}"


def _said(memory: Memory) -> str:
    return fenced(memory.content) + (TENTATIVE if memory.tentative else "")


def open_group(group: Group) -> str:
    """Return the opening tag of an observation group; ids in a range are percent-encoded, so `:` separates them."""
    outside = f"{_encoded(group.first_external_id)}:{_encoded(group.last_external_id)}"
    attributes = {"id": group.id, "range": outside, "kind": group.kind} | ({"cwd": group.cwd} if group.cwd else {})
    return "<observation-group " + " ".join(f"{name}={_attribute(value)}" for name, value in attributes.items()) + ">"


def _encoded(external_id: str) -> str:
    return quote(external_id, safe="-_.~")


def _attribute(value: str) -> str:
    return quoteattr(value, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})


def _mark(memory: Memory) -> str:
    return MARK[memory.priority] + (f" {DONE}" if memory.category == "outcome" else "")


def fenced(text: str) -> str:
    """Return `text` on one line, unable to open or close one of our elements, without what a terminal obeys."""
    return _OUR_TAGS.sub("&lt;", " ".join(_CONTROLS.sub(" ", text).split()))


def recalled_line(hit: Hit) -> str:
    """Return one hit as a model reads it: with its id, its age, its project and whose words it is."""
    where = f", project {fenced(hit.project)}" if hit.project else ""
    cut = " …" if hit.truncated else ""
    reserved = TENTATIVE if hit.tentative else ""
    mark = f"{MARK[hit.priority]} " if hit.priority else ""
    return f"* {mark}{fenced(hit.content)}{cut}{reserved} [{hit.id}, {hit.age}{where}, from {hit.trust}]"


def local_date(moment: datetime, timezone: str) -> str:
    """Return the ISO date of `moment` in `timezone`."""
    return moment.astimezone(zone(timezone)).date().isoformat()
