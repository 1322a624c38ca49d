"""Finds rows that a newer row speaks against: the newer one quotes the older one, which may still hold."""

import re
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
    def said_at(self) -> datetime: ...


_R = TypeVar("_R", bound=_Row)


def contradicted(rows: Iterable[_Row]) -> dict[str, str]:
    """Return the id of each row that another row says otherwise about, with the id of the newest such row."""
    every = list(rows)
    found: dict[str, _Row] = {}
    for newer in every:
        quoted = newer.content.partition(labels.UNLIKE)[2].removesuffix(")")
        words = re.compile(".{1,80}".join(map(re.escape, quoted.split(labels.LEFT_OUT)))) if quoted else None
        for older in every if words else ():
            if older.said_at <= newer.said_at and older.id != newer.id and words and words.search(older.content):
                known = found.get(older.id)
                found[older.id] = newer if known is None or known.said_at < newer.said_at else known
    return {row_id: newer.id for row_id, newer in found.items()}


def newer_first(rows: Iterable[_R], otherwise: Mapping[str, str]) -> list[_R]:
    """Return rows in order, but each contradicted row behind the row that speaks against it."""
    ordered = list(rows)
    for older, newer in otherwise.items():
        places = {row.id: place for place, row in enumerate(ordered)}
        if older in places and newer in places and places[older] < places[newer]:
            ordered.insert(places[older], ordered.pop(places[newer]))
    return ordered
