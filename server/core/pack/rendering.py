"""Memory as text: a pack (`<global_observations>`, then `<local_observations>` with the session's own groups).

Rendering is a pure function of the rows, so that the same rows give the same bytes. Rows are data: a row cannot
close or open one of our elements.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple, Protocol
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from esker.server.core.clock import zone
from esker.server.core.conversation.records import Group, StoredSession
from esker.server.core.pack.records import PackRow
from esker.server.core.records import Kind, Memory, Priority, Trust
from esker.server.core.similar_projects import UnknownProject
from esker.server.core.text.fencing import fenced, visible
from esker.server.core.text.tokens import estimate_tokens

MARK: dict[Priority, str] = {"high": "🔴", "medium": "🟡", "low": "🟢"}
SAID = "💬"
"""Marks a passage, as opposed to a memory."""
DONE = "✅"
TENTATIVE = " (tentative)"
UNCONFIRMED = " (pinned by an agent)"
"""Marks a pinned row that no person has confirmed."""
_READ = {"tool": " (from tool)", "external": " (from outside)"}
CONTRADICTED = " (older; a newer row says otherwise)"
CLOSE_GROUP = "</observation-group>"
LINE_END = 1
"""Tokens of a line end."""


class RenderedRow(NamedTuple):
    """A row as a line of a pack, and the tokens of that line with its end."""

    row: PackRow
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class PackLines:
    """The lines of a pack: the pool's rows in rank order, the session's own rows by time, and their groups."""

    pool: Sequence[RenderedRow]
    own: Sequence[RenderedRow]
    groups: Mapping[str, Group]


def render_pack(lines: PackLines, timezone: str) -> tuple[str, int]:
    """Return the text of a pack, with dates in a time zone, and its tokens. Both elements are included, even if empty.

    The tokens equal `estimate_tokens` of the text, since nothing that it counts as a unit crosses a line end.
    """
    return _joined([*_pool_parts(lines), *_own_parts(lines, timezone)])


def render_own(lines: PackLines, timezone: str) -> tuple[str, int]:
    """Return the part of a pack that is about the session itself, and its tokens."""
    return _joined([*_own_parts(lines, timezone)])


def _joined(parts: Sequence[tuple[str, int]]) -> tuple[str, int]:
    texts, tokens = zip(*parts, strict=True)
    return "\n".join(texts), sum(tokens) - LINE_END


def _pool_parts(lines: PackLines) -> Iterator[tuple[str, int]]:
    """Yield every line about the pool with its tokens."""
    yield _tag("<global_observations>")
    yield from ((line.text, line.tokens) for line in lines.pool)
    yield _tag("</global_observations>")


def _own_parts(lines: PackLines, timezone: str) -> Iterator[tuple[str, int]]:
    """Yield every line about the session itself with its tokens."""
    yield _tag("<local_observations>")
    for group_id, of_group in groupby(lines.own, key=lambda line: line.row.group_id):
        group = lines.groups.get(group_id) if group_id else None
        if group is None:
            yield from _dated(of_group, timezone)
            continue
        yield _tag(open_group(group))
        yield from _dated(of_group, timezone)
        yield _tag(CLOSE_GROUP)
    yield _tag("</local_observations>")


def _dated(lines: Iterable[RenderedRow], timezone: str) -> Iterator[tuple[str, int]]:
    for day, dated in groupby(lines, key=lambda line: local_date(line.row.said_at, timezone)):
        yield _tag(date_line(day))
        yield from ((line.text, line.tokens) for line in dated)


def _tag(text: str) -> tuple[str, int]:
    return text, label_tokens(text) + LINE_END


def pool_line(row: PackRow, session: StoredSession, *, contradicted: bool = False) -> RenderedRow:
    """Return one row of the pool with its date and, if it is not the session's, its project."""
    about = f" (project {fenced(row.project)})" if row.project and row.project != session.project else ""
    about = (CONTRADICTED if contradicted else "") + about
    return _line(row, f"* {_mark(row)} {local_date(row.said_at, session.timezone)}", about)


def own_line(row: PackRow, timezone: str, *, contradicted: bool = False) -> RenderedRow:
    """Return one row of the session itself with its time of day."""
    time = row.said_at.astimezone(zone(timezone)).strftime("%H:%M")
    return _line(row, f"* {_mark(row)} ({time})", CONTRADICTED if contradicted else "")


def _line(row: PackRow, label: str, about: str) -> RenderedRow:
    said, about = fenced(row.content), reservations(row) + about
    text = f"{label} {said}{about}"
    # The content was counted when it was written; a single space between two texts costs nothing.
    if said == row.content:
        return RenderedRow(row, text, label_tokens(label) + row.tokens + label_tokens(about) + LINE_END)
    return RenderedRow(row, text, estimate_tokens(text) + LINE_END)


@lru_cache(maxsize=4_096)
def label_tokens(text: str) -> int:
    """Return the tokens of a text that many lines share, cached: a mark with a date, a project, a tag."""
    return estimate_tokens(text)


def offered_line(memory: Memory, timezone: str) -> str:
    """Return one row as the observer sees it: on one line, with the id that names it, its date and its priority."""
    reserved = TENTATIVE if memory.tentative else ""
    about = f"{local_date(memory.said_at, timezone)} {memory.priority}{reserved}"
    return f"- {memory.id} {about} {' '.join(memory.content.split())}"


def offered_cost(memory: Memory) -> int:
    """Return the tokens of that line."""
    # A date has the same tokens in every time zone.
    return estimate_tokens(offered_line(memory, "UTC")) + 1


def date_line(day: str) -> str:
    """Return the line above the session's own rows of one day."""
    return f"Date: {day}"


def open_group(group: Group) -> str:
    """Return the opening tag of an observation group; ids in a range are percent-encoded, so `:` separates them."""
    outside = f"{_encoded(group.first_external_id)}:{_encoded(group.last_external_id)}"
    attributes = {"id": group.id, "range": outside, "kind": group.kind} | ({"cwd": group.cwd} if group.cwd else {})
    return "<observation-group " + " ".join(f"{name}={_attribute(value)}" for name, value in attributes.items()) + ">"


def _encoded(external_id: str) -> str:
    return quote(external_id, safe="-_.~")


def _attribute(value: str) -> str:
    # A bracket may begin the mark of a turn: `[INST]`.
    return quoteattr(visible(value), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;", "[": "&#91;"})


def _mark(row: PackRow) -> str:
    return MARK[row.priority] + (f" {DONE}" if row.category == "outcome" else "")


_RESERVATION = re.compile(
    "|".join(re.escape(each) for each in (TENTATIVE, UNCONFIRMED, *_READ.values())) + r"(?= \(|\Z)"
)


def without_reservations(text: str) -> str:
    """Return a shown text without the reservations at its end."""
    return _RESERVATION.sub("", text)


class Reservable(Protocol):
    """A row that a model is shown without its trust."""

    @property
    def kind(self) -> Kind: ...
    @property
    def trust(self) -> Trust: ...
    @property
    def tentative(self) -> bool: ...


def reservations(row: Reservable) -> str:
    """Return why a row is not to be taken for a person's word: it is tentative, was read, or an agent pinned it."""
    unconfirmed = UNCONFIRMED if row.kind == "manual" and row.trust != "user" else ""
    return (TENTATIVE if row.tentative else "") + _READ.get(row.trust, "") + unconfirmed


def unknown_line(unknown: UnknownProject) -> str:
    """Return a sentence that says that a project is unknown and names similar ones."""
    name, like = fenced(unknown.name), ", ".join(map(fenced, unknown.nearest))
    return f"Memory has no project {name}; {f'names like it: {like}' if like else 'no project has a name like it'}."


def local_date(moment: datetime, timezone: str) -> str:
    """Return the ISO date of `moment` in `timezone`."""
    return moment.astimezone(zone(timezone)).date().isoformat()
