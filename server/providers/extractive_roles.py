"""The extractive observer and reflector. Their rules are loaded with the first work: a start needs none of them."""

import asyncio

from esker.server.core.facts.records import Observed, Reflected, ReflectionTask, TranscriptSlice
from esker.server.core.records import EXTRACTIVE
from esker.server.providers.roles import Meter


class ExtractiveObserver:
    """Finds preferences, decisions, corrections, failures and their causes, changes and outcomes by rules."""

    name = EXTRACTIVE

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts of a slice, each citing the messages whose words it uses."""
        return await asyncio.to_thread(_observe, shown)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


class ExtractiveReflector:
    """Condenses by leaving out rows that were repeated, replaced or meant for the moment."""

    name = EXTRACTIVE

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return fewer rows that replace those of a task, or none when nothing can be left out."""
        return await asyncio.to_thread(_reflect, task)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


def _observe(shown: TranscriptSlice) -> Observed:
    from esker.server.providers.extractive.observer import observe  # noqa: PLC0415 - see above

    return observe(shown)


def _reflect(task: ReflectionTask) -> Reflected:
    from esker.server.providers.extractive.reflector import reflect  # noqa: PLC0415 - see above

    return reflect(task)
