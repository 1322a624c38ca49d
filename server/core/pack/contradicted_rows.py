"""Finds rows that a newer row contradicts: the newer one quotes the older one, which may still hold."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol, TypeVar

from esker.server.core.text import labels

# Words that a quotation leaves out.
_LEFT_OUT = ".{1,80}"


class _Row(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def content(self) -> str: ...
    @property
    def project(self) -> str | None: ...
    @property
    def said_at(self) -> datetime: ...


_R = TypeVar("_R", bound=_Row)


def contradicted(rows: Iterable[_Row]) -> dict[str, str]:
    """Return the id of each row that a newer row contradicts, with the id of the newest such row."""
    every = sorted(rows, key=lambda row: row.said_at)
    found: dict[str, str] = {}
    for place, newer in enumerate(every):
        quoted = newer.content.partition(labels.UNLIKE)[2].removesuffix(")")
        if quoted:
            words = re.compile(_LEFT_OUT.join(map(re.escape, quoted.split(labels.LEFT_OUT))))
            older = (row for row in every[:place] if row.project == newer.project and words.search(row.content))
            found.update((row.id, newer.id) for row in older)
    return found


def newer_first(rows: Iterable[_R], contradicted_by: Mapping[str, str]) -> list[_R]:
    """Return rows in order, but each contradicted row behind the row that contradicts it."""
    ordered = list(rows)
    for older, newer in contradicted_by.items():
        places = {row.id: place for place, row in enumerate(ordered)}
        if older in places and newer in places and places[older] < places[newer]:
            ordered.insert(places[older], ordered.pop(places[newer]))
    return ordered
