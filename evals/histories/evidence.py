"""Where in a history something is said, for gold that does not tell, and which of its words stay letter by letter."""

import re
from collections.abc import Iterable, Iterator, Sequence

from evals.observation.cases import Said
from evals.scoring.gold import Atom
from evals.scoring.text import holds, share

_NAME = re.compile(r"[A-Z][\w'’]*(?: [A-Z][\w'’]*)*")
_NUMBER = re.compile(r"(?<![A-Za-z\d.,])[$€£]?\d+(?:[.,]\d+)*[KM%]?")


class Evidence:
    """The messages of a history, looked through for words."""

    def __init__(self, messages: Iterable[Said]) -> None:
        """Messages in their order."""
        self._messages = list(messages)
        self._all = "\n".join(message.text for message in self._messages)

    def atom(self, fact: str, value: str, *, rows: Sequence[str] = (), **more: object) -> Atom:
        """Return an atom of which the names and numbers in `value` stay; it stands in `rows` and where those are."""
        exact = self.exact(value)
        return self.made(fact, exact, rows or (self._saying(fact).id,), **more)

    def made(self, fact: str, exact: Sequence[str], rows: Sequence[str], **more: object) -> Atom:
        """Return an atom that stands in `rows` and, what of `exact` is not in them, in the last message that has it."""
        there = [*rows]
        for words in exact:
            if not any(holds(message.text, words) for message in self._messages if message.id in there):
                there.append(self._holding(words).id)
        return Atom.model_validate({"fact": fact, "exact": exact, "rows": tuple(dict.fromkeys(there)), **more})

    def exact(self, value: str) -> tuple[str, ...]:
        """Return the names and numbers of a text that somebody says in the same letters; others only describe."""
        return tuple(dict.fromkeys(words for words in self._candidates(value) if self._is_said(words)))

    def _candidates(self, value: str) -> Iterator[str]:
        yield from (found[0] for found in _NAME.finditer(value))
        yield from (found[0] for found in _NUMBER.finditer(value))

    def _is_said(self, words: str) -> bool:
        return words in self._all and any(holds(message.text, words) for message in self._messages)

    def _holding(self, words: str) -> Said:
        return next(message for message in reversed(self._messages) if holds(message.text, words))

    def _saying(self, fact: str) -> Said:
        """Return the message that has most of the words of a fact; of several the last."""
        return max(reversed(self._messages), key=lambda message: share(fact, message.text, "en"))
