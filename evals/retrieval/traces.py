"""Traces from the hits of a recall to the stored turns."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evals.serving import Server


@dataclass(slots=True)
class Traces:
    """The stored turns, by the id of their memory, and by session and seq.

    `projects` has the project of each conversation, by id.
    """

    projects: Mapping[str, str]
    memories: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    messages: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])

    def covered(self, server: Server, hit: Mapping[str, Any]) -> frozenset[str]:
        """Return the turns that a hit covers: its own, those of its repeats, and those of its sources."""
        own = (self.memories.get(memory, frozenset[str]()) for memory in (hit["id"], *hit.get("same", ())))
        return frozenset[str]().union(*own, self._behind(server, hit["sources"]))

    def _behind(self, server: Server, sources: Iterable[Mapping[str, Any]]) -> frozenset[str]:
        found: set[str] = set()
        for source in sources:
            told = (self.messages.get((source["session_id"], seq)) for seq in source["seqs"])
            found.update(turn for turn in told if turn is not None)
            for memory in source["memory_ids"]:
                found |= self._of_memory(server, memory)
        return frozenset(found)

    def _of_memory(self, server: Server, memory: str) -> frozenset[str]:
        """Return the turns behind a memory (cached); a reflection leads to its source memories."""
        if memory not in self.memories:
            self.memories[memory] = self._behind(server, server.get(f"/v1/memories/{memory}")["sources"])
        return self.memories[memory]
