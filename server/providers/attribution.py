"""Finding the messages that a fact comes from, for a model that did not say."""

from collections import Counter
from dataclasses import dataclass, field

from esker.server.core.clock import zone
from esker.server.core.conversation.records import Message
from esker.server.core.facts.grounding import grounds_in, joined
from esker.server.core.facts.records import TranscriptSlice
from esker.server.core.text.terms import terms
from esker.server.providers.written.facts import WrittenFact

# A message must share so much of a fact's terms to be where it comes from.
_LEAST_SHARED = 0.3
_MOST_SOURCES = 4
_MOST_LOOKED_AT = 20


@dataclass(slots=True)
class Attribution:
    """The messages of a slice by the terms that they hold."""

    shown: TranscriptSlice
    _terms: dict[int, frozenset[str]] = field(init=False)
    _rarity: Counter[str] = field(init=False)

    def __post_init__(self) -> None:
        self._terms = {message.seq: frozenset(terms(message.text)) for message in self.shown.messages}
        self._rarity = Counter(term for held in self._terms.values() for term in held)

    def sources(self, fact: WrittenFact) -> list[int]:
        """Return the message that a fact comes from, with others that hold names or numbers of it; or nothing.

        What many messages say tells little, so a term counts by its rarity.
        """
        asked = set(terms(fact.text))
        whole = sum(self._weight(term) for term in asked)
        shares = {m.seq: self._share(asked, m, fact) / whole for m in self.shown.messages} if whole else {}
        ordered = sorted(shares, key=lambda seq: (-shares[seq], seq))
        if not ordered or shares[ordered[0]] < _LEAST_SHARED:
            return []
        return self._completed(fact.text, ordered)

    def _weight(self, term: str) -> float:
        return 1 / (1 + self._rarity[term])

    def _share(self, asked: set[str], message: Message, fact: WrittenFact) -> float:
        shared = sum(self._weight(term) for term in asked & self._terms[message.seq])
        local = message.sent_at.astimezone(zone(self.shown.session.timezone))
        same_day = fact.day is None or fact.day == local.date()
        same_minute = (
            fact.clock is not None and same_day and fact.clock == local.time().replace(second=0, microsecond=0)
        )
        return shared * (1.5 if same_minute else 1.0 if same_day else 0.5)

    def _completed(self, text: str, ordered: list[int]) -> list[int]:
        """Return the best message, and those of the others that hold what it lacks of the text's names and numbers."""
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
