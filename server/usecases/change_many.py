"""Change many rows in one request, each in its own transaction, so that a failure for one row does not stop the
others."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from esker.server.core.errors import EskerError
from esker.server.core.records import Principal, SourcedMemory
from esker.server.usecases.confirm import confirm
from esker.server.usecases.correct import Correction, correct
from esker.server.usecases.parts import Parts

Change = Literal["pin", "unpin", "high", "medium", "low"]
CHANGES: tuple[Change, ...] = get_args(Change)
_CORRECTIONS: Mapping[Change, Correction] = {
    "pin": Correction(pinned=True),
    "unpin": Correction(pinned=False),
    "high": Correction(priority="high"),
    "medium": Correction(priority="medium"),
    "low": Correction(priority="low"),
}


@dataclass(frozen=True, slots=True)
class ChangeOutcome:
    """The row that replaced the row `id`, or the `problem` for which it was not changed."""

    id: str
    changed: SourcedMemory | None
    problem: str | None


async def change_many(parts: Parts, who: Principal, ids: Sequence[str], change: Change) -> list[ChangeOutcome]:
    """Pin or unpin some rows or give them another priority, by rows that supersede them."""
    return await _each(ids, partial(_corrected, parts, who, _CORRECTIONS[change]))


async def confirm_many(parts: Parts, who: Principal, ids: Sequence[str]) -> list[ChangeOutcome]:
    """Confirm some rows that agents wrote as a person's word."""
    return await _each(ids, partial(confirm, parts, who))


async def _corrected(parts: Parts, who: Principal, correction: Correction, memory_id: str) -> SourcedMemory:
    return await correct(parts, who, memory_id, correction)


async def _each(ids: Sequence[str], change: Callable[[str], Awaitable[SourcedMemory]]) -> list[ChangeOutcome]:
    outcomes: list[ChangeOutcome] = []
    for memory_id in dict.fromkeys(ids):
        try:
            outcomes.append(ChangeOutcome(memory_id, await change(memory_id), None))
        except EskerError as error:
            outcomes.append(ChangeOutcome(memory_id, None, str(error)))
    return outcomes
