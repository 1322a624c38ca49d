"""Probe recall: ask for the newest memories of every pool in their own words, after a restore."""

from dataclasses import dataclass

from esker.server.core.records import Filter
from esker.server.store import pools
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import list_memories

_QUESTIONS = 5
_LONGEST = 300
"""Characters of a question."""


@dataclass(frozen=True, slots=True)
class Probed:
    """How many questions were asked, how many found a memory, and the pools in which none of several did."""

    asked: int
    found: int
    silent: list[str]


async def probe_recall(parts: Parts) -> Probed:
    """Ask every pool for its newest memories, by keyword: no model is needed."""
    asked, found, silent = 0, 0, list[str]()
    for pool in await pools.listed(parts.database):
        rows = await list_memories(parts, pool.id, Filter(parts.clock()), before=None, limit=_QUESTIONS)
        there = 0
        for row in rows:
            request = RecallRequest(row.content[:_LONGEST], tier="memories", ranking="keyword")
            there += bool((await recall(parts, pool.id, request)).hits)
        asked, found = asked + len(rows), found + there
        if rows and not there:
            silent.append(pool.name)
    return Probed(asked, found, silent)
