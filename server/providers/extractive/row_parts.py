"""Reads the parts of a row that a reflector compares: its subject and values, and what its words say that it does."""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from esker.server.core.facts.same_fact import Fingerprint, fingerprint
from esker.server.core.records import Category, Memory
from esker.server.core.text.labels import own_statement
from esker.server.core.text.languages import ENGLISH, STOP_WORDS, language_of
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import Cue, any_of, words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.assertions import Assertion, read_assertion
from esker.server.providers.extractive.passed_over import is_question
from esker.server.providers.extractive.values import Values, read_values

MARKED = Cue(*(word for name in ("changes", "changes_behind", "becomes") for word in words(f"assertions.{name}")))
"""Says that something changed."""
UNDECIDED = Cue(*words("reflector.undecided"))
"""Leaves a choice open."""
DISTRUSTED = Cue(*words("reflector.distrusted"))
"""Says that a source of reports is not believed."""
CHANGES: tuple[Category, ...] = ("decision", "state_change")
"""Categories of rows that rule on something or change it."""
_LIMITED = Cue(*words("reflector.limited"))
_SAID = re.compile(rf"^{any_of(words('reflector.speakers'))}\s?[:：]\s?", re.IGNORECASE)
SPEAKERS = frozenset(terms(" ".join(words("reflector.speakers"))))
"""The terms of the words that name a speaker; they are not a subject."""
_SUSPECTED = Cue(*words("reflector.suspected"))
_CAUSE_FOUND = Cue(*words("reflector.cause_found"))


@dataclass(frozen=True, eq=False)
class RowParts:
    """A row with the parts that are compared."""

    memory: Memory
    vector: npt.NDArray[np.float32] | None

    @cached_property
    def text(self) -> str:
        """The row without its label, the purpose of a change, and notes on older rows."""
        return own_statement(self.memory.content)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the text."""
        return fingerprint(self.text)

    @cached_property
    def subject(self) -> frozenset[str]:
        """The terms of what the text is about, without its values."""
        small = STOP_WORDS[language_of(self.text) or ENGLISH]
        return self.fingerprint.subject.difference(
            small, SPEAKERS, *(terms(value.text) for value in self.values.values)
        )

    @cached_property
    def said(self) -> frozenset[str]:
        """All terms of the text, and words that name no thing."""
        return self.fingerprint.terms | STOP_WORDS[language_of(self.text) or ENGLISH] | SPEAKERS

    @cached_property
    def values(self) -> Values:
        """The numbers, identifiers and names of the text."""
        return read_values(self.text)

    @cached_property
    def answer(self) -> str:
        """The text without the speaker before a colon."""
        return _SAID.sub("", self.text)

    @cached_property
    def is_limited(self) -> bool:
        """Whether the row holds for one case only."""
        return bool(_LIMITED.search(self.text))

    @cached_property
    def suspects(self) -> bool:
        """Whether the row names a suspected cause."""
        return bool(_SUSPECTED.search(self.text))

    @cached_property
    def finds_cause(self) -> bool:
        """Whether the row names a cause that was found."""
        return bool(_CAUSE_FOUND.search(self.text)) and not self.suspects

    @cached_property
    def distrusts(self) -> bool:
        """Whether the user does not believe a source."""
        return self.memory.trust == "user" and bool(DISTRUSTED.search(self.text))

    @cached_property
    def is_undecided(self) -> bool:
        """Whether the row leaves a choice open."""
        return bool(UNDECIDED.search(self.text))

    @cached_property
    def asks(self) -> bool:
        """Whether the row is a question, or tells that a speaker asked something."""
        return is_question(self.memory.content)

    @cached_property
    def is_firm(self) -> bool:
        """Whether the row is asserted by its speaker, without a condition."""
        return self._assertion.firm

    @cached_property
    def scope(self) -> frozenset[str]:
        """The terms of where or for what the row holds, without those of its values."""
        read = self._assertion
        return read.scope.difference(*(value.terms for value in read.values), *map(terms, self.values.texts))

    @cached_property
    def _assertion(self) -> Assertion:
        return read_assertion(self.memory.id, self.memory.content)

    @cached_property
    def says_change(self) -> bool:
        """Whether the words of the row say that something changed or is corrected."""
        return bool(cues.CORRECTION.search(self.memory.content) or MARKED.search(self.text))

    @property
    def is_marked(self) -> bool:
        """Whether the row says, or the observer found, that something changed."""
        return self.memory.category == "state_change" or self.says_change

    @cached_property
    def changes(self) -> bool:
        """Whether the row rules on something, or changes it."""
        return self.memory.category in CHANGES or self.is_marked

    @cached_property
    def asserts(self) -> bool:
        """Whether the row states something, without a reservation."""
        return not self.asks and not self.memory.tentative and not cues.TENTATIVE.search(self.memory.content)
