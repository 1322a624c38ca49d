"""Finds rows that a newer row contradicts: the newer one quotes the older one, which may still hold."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol, TypeVar

from esker.server.core.text import labels


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
        if labels.UNLIKE in newer.content:
            older = (row for row in every[:place] if row.project == newer.project)
            quoted = (row for row in older if labels.note_quotes(labels.UNLIKE, newer.content, row.content))
            found.update((row.id, newer.id) for row in quoted)
    return found


def newer_first(rows: Iterable[_R], contradicted_by: Mapping[str, str]) -> list[_R]:
    """Return rows in order, but each contradicted row behind the row that contradicts it."""
    ordered = list(rows)
    for older, newer in contradicted_by.items():
        places = {row.id: place for place, row in enumerate(ordered)}
        if older in places and newer in places and places[older] < places[newer]:
            ordered.insert(places[older], ordered.pop(places[newer]))
    return ordered
