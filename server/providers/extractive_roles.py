"""The extractive observer and reflector. Their rules are loaded with the first work: a start needs none of them."""

from esker.server.core.budgets import LARGE_OBSERVER, REFLECTION_TOKENS, ObserverBudget
from esker.server.core.facts.records import Observed, Reflected, ReflectionTask, TranscriptSlice
from esker.server.core.json_input import characters
from esker.server.core.records import EXTRACTIVE
from esker.server.providers.roles import Meter
from esker.server.providers.text_processes import TextProcesses

# The rules take about ten times as long for a character as what `TextProcesses` was made for.
_COST = 10


class ExtractiveObserver:
    """Finds preferences, decisions, corrections, failures and their causes, changes and outcomes by rules."""

    name = EXTRACTIVE

    def __init__(self, processes: TextProcesses | None = None) -> None:
        self._processes = processes or TextProcesses()

    async def budget(self) -> ObserverBudget:
        """Return the usual budget."""
        return LARGE_OBSERVER

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts of a slice, each citing the messages whose words it uses."""
        long = sum(characters([*message.content]) for message in shown.messages)
        return await self._processes.run(_COST * long, _observe, shown)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


class ExtractiveReflector:
    """Condenses by leaving out rows that were repeated, replaced or meant for the moment."""

    name = EXTRACTIVE

    def __init__(self, processes: TextProcesses | None = None) -> None:
        self._processes = processes or TextProcesses()

    async def batch_tokens(self) -> int:
        """Return the usual size of a task."""
        return REFLECTION_TOKENS

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return fewer rows that replace those of a task, or none when nothing can be left out."""
        long = sum(len(row.content) for row in task.rows)
        return await self._processes.run(_COST * long, _reflect, task)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


def _observe(shown: TranscriptSlice) -> Observed:
    from esker.server.providers.extractive.observer import observe  # noqa: PLC0415 - see above

    return observe(shown)


def _reflect(task: ReflectionTask) -> Reflected:
    from esker.server.providers.extractive.reflector import reflect  # noqa: PLC0415 - see above

    return reflect(task)
