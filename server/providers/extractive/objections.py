"""The user's words that contradict what the agent reported before them: it did not help, was undone, or failed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from esker.server.core.facts.identifiers import is_name
from esker.server.core.facts.records import Fact
from esker.server.core.text import labels
from esker.server.core.text.labels import own_statement
from esker.server.providers.extractive.sentences import clip
from esker.server.providers.extractive.speech import Speech
from esker.server.providers.extractive.weighing import names

# Maximum characters of the words that are quoted.
_LONGEST = 120
# Minimum characters of a name that an error repeats, and what is not part of it: "()", "/1".
_NAME = 4
_CALLED = re.compile(r"\(.*|/\d+$")
_PART = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Objection:
    """The words of a user's message that object to the agent's reports: see the properties of `Speech`."""

    seq: int
    discards: str | None
    refutes: str | None
    errors: Sequence[str]

    @classmethod
    def read(cls, speech: Speech) -> "Objection":
        """Return the objection in a message, which may be empty."""
        return cls(speech.message.seq, speech.discards, speech.refutes, speech.errors)

    def noted(self, facts: Sequence[Fact], last: Sequence[Fact]) -> list[Fact]:
        """Return facts, of which `last` are those of the turn before, with the words that contradict them."""
        just_told = set(map(id, last))
        return [
            self._noted(fact, is_last=id(fact) in just_told) if self.discards or id(fact) in just_told else fact
            for fact in facts
        ]

    def _noted(self, fact: Fact, *, is_last: bool) -> Fact:
        if fact.trust != "assistant" or labels.BUT in fact.content:
            return fact
        words = self._contradicting(fact, is_last=is_last)
        if words is None:
            return fact
        return replace(
            fact,
            content=f"{fact.content}{labels.BUT}“{clip(words, _LONGEST)}”)",
            priority="low" if words == self.discards else fact.priority,
            source_seqs=(*fact.source_seqs, self.seq),
        )

    def _contradicting(self, fact: Fact, *, is_last: bool) -> str | None:
        """Return the words that contradict a fact: all work or this was taken back, or an error has its names.

        Words that name the work make an exception of it ("I discarded everything except the TODO").
        """
        stems = [_CALLED.sub("", name) for name in names(own_statement(fact.content))]
        parts = {part for stem in stems for part in _PART.findall(stem)}
        if fact.category == "outcome" and self.discards and parts.isdisjoint(_PART.findall(self.discards)):
            return self.discards
        if fact.category == "outcome" and is_last and self.refutes:
            return self.refutes
        if not is_last or fact.category == "next_step":
            return None
        told = [each for each in stems if len(each) >= _NAME and is_name(each)]
        return next((line for line in self.errors if any(each in line for each in told)), None)
