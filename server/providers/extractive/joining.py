"""Joins rows about one subject into one row that names it once: changes of the same files, parts of one report."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.text.tokens import estimate_tokens

JOINED_TOKENS = 150
"""Maximum tokens of a row that joins others; a row that does not fit begins another one."""
_BETWEEN = "; "
_HEADING = ": "
# Maximum characters of a heading; a longer text before a colon is a statement.
_LONGEST_HEADING = 80


@dataclass(slots=True)
class JoinedRow:
    """The text of a row that joins others, and the ids of their rows, by time."""

    content: str
    ids: list[str]


class _Parts(NamedTuple):
    """A row as its subject, what it says of it, and the request that it fulfils; rows of one `key` can be joined."""

    key: Hashable
    subject: str
    said: str
    purpose: str


def joined_rows(rows: Sequence[Memory]) -> list[JoinedRow]:
    """Return the rows that can be joined, at least two each, by time.

    A row that is a reflection already is not extended: it would grow with every reflection.
    """
    by_subject: dict[Hashable, list[JoinedRow]] = defaultdict(list)
    for row in rows:
        parts = _change(row) or _part_of_report(row) if row.kind == "observation" else None
        if parts is None:
            continue
        joined = by_subject[parts.key]
        longer = _longer(joined[-1].content, parts) if joined else ""
        if joined and estimate_tokens(longer) <= JOINED_TOKENS:
            joined[-1].content = longer
            joined[-1].ids.append(row.id)
        else:
            joined.append(JoinedRow(row.content, [row.id]))
    return [one for joined in by_subject.values() for one in joined if len(one.ids) > 1]


def _longer(content: str, parts: _Parts) -> str:
    return f"{content.removesuffix(parts.purpose).rstrip('.')}{_BETWEEN}{parts.said}{parts.purpose}"


def _change(row: Memory) -> _Parts | None:
    """Return the parts of a change of files; its purpose is what it says."""
    files, separator, purpose = row.content.partition(labels.PURPOSE)
    if not separator or (row.category, row.priority) != ("state_change", "low"):
        return None
    return _Parts(files, files, purpose, "")


def _part_of_report(row: Memory) -> _Parts | None:
    """Return the parts of a statement of a report, if it has a heading or fulfils a request.

    Only statements of one message are joined, so that the date of the row is that of each.
    """
    if row.trust != "assistant" or labels.IN_ANSWER in row.content or labels.ABOUT in row.content:
        return None
    said, separator, purpose = row.content.partition(labels.PURPOSE)
    text = without_label(said)
    heading, colon, behind = text.partition(_HEADING)
    if not (colon and behind and len(heading) <= _LONGEST_HEADING):
        heading, colon, behind = "", "", text
    if not heading and not purpose:
        return None
    subject = f"{said.removesuffix(text)}{heading}{colon}"
    kind = (row.category, row.priority, row.tentative, row.session_id, row.said_at)
    return _Parts((subject, purpose, *kind, row.refers_from, row.refers_to), subject, behind, separator + purpose)
