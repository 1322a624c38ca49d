"""Finds the messages that a fact comes from when the model did not cite any."""

from collections import Counter
from dataclasses import dataclass, field

from esker.server.core.facts.grounding import grounds_in, joined
from esker.server.core.facts.records import TranscriptSlice
from esker.server.core.text.terms import terms

# The least share of a fact's terms, by weight, that the message it comes from has.
_LEAST_SHARED = 0.3
_MOST_SOURCES = 4
_MOST_LOOKED_AT = 20


@dataclass(slots=True)
class Attribution:
    """The messages of a slice by the terms that they contain."""

    shown: TranscriptSlice
    _terms: dict[int, frozenset[str]] = field(init=False)
    _rarity: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self._terms = {message.seq: frozenset(terms(message.text)) for message in self.shown.messages}
        self._rarity = Counter(term for held in self._terms.values() for term in held)

    def sources(self, text: str) -> list[int]:
        """Return the message that a fact comes from, then others with its names or numbers; [] if none fits.

        The rarer a term is in the slice, the more it counts.
        """
        asked = set(terms(text))
        whole = sum(self._weight(term) for term in asked)
        shares = {seq: self._share(asked, held) / whole for seq, held in self._terms.items()} if whole else {}
        ordered = sorted(shares, key=lambda seq: (-shares[seq], seq))
        if not ordered or shares[ordered[0]] < _LEAST_SHARED:
            return []
        return self._completed(text, ordered)

    def _weight(self, term: str) -> float:
        return 1 / (1 + self._rarity[term])

    def _share(self, asked: set[str], held: frozenset[str]) -> float:
        return sum(self._weight(term) for term in asked & held)

    def _completed(self, text: str, ordered: list[int]) -> list[int]:
        """Return the best message, and others with the names and numbers of the text that it lacks."""
        by_seq = {message.seq: message.text for message in self.shown.messages}
        taken, grounds = [ordered[0]], grounds_in(by_seq[ordered[0]])
        missing = grounds.missing(text)
        for seq in ordered[1:_MOST_LOOKED_AT]:
            if not missing or len(taken) == _MOST_SOURCES:
                break
            more = joined([grounds, grounds_in(by_seq[seq])])
            if len(left := more.missing(text)) < len(missing):
                taken, grounds, missing = [*taken, seq], more, left
        return sorted(taken)
