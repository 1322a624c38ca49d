"""The messages of a history that state a fact, for gold without sources, and the words that must stay verbatim."""

import re
from collections.abc import Iterable, Iterator, Sequence

from evals.observation.cases import CaseMessage
from evals.scoring.gold import Atom
from evals.scoring.text import holds, share

_NAME = re.compile(r"[A-Z][\w'’]*(?: [A-Z][\w'’]*)*")
# Not the ends of a range ("3-5"): people rarely say both.
_NUMBER = re.compile(r"(?<![A-Za-z\d.,-])[$€£]?\d+(?:[.,]\d+)*[KM%]?(?![\d.,]*-\d)")


class Evidence:
    """The messages of a history, searched for words."""

    def __init__(self, messages: Iterable[CaseMessage]) -> None:
        """`messages` are in order."""
        self._messages = list(messages)
        self._all = "\n".join(message.text for message in self._messages)

    def atom(self, fact: str, value: str, *, rows: Sequence[str] = (), **more: object) -> Atom:
        """Return an atom with the names and numbers of `value` as `exact`, from `rows` and the messages with those."""
        return self.made(fact, self.exact(value), rows, **more)

    def made(self, fact: str, exact: Sequence[str], rows: Sequence[str], **more: object) -> Atom:
        """Return an atom from `rows`, else from the message with most of its words, and from those with its `exact`."""
        there = [*rows] or [self._most(fact, self._messages).id]
        for words in exact:
            if not any(holds(message.text, words, "en") for message in self._messages if message.id in there):
                holding = [message for message in self._messages if holds(message.text, words, "en")]
                there.append(self._most(fact, holding).id)
        return Atom.model_validate({"fact": fact, "exact": exact, "rows": tuple(dict.fromkeys(there)), **more})

    def exact(self, value: str) -> tuple[str, ...]:
        """Return the names and numbers of a text that a message contains verbatim."""
        return tuple(dict.fromkeys(words for words in self._candidates(value) if self._is_said(words)))

    def _candidates(self, value: str) -> Iterator[str]:
        yield from (found[0] for found in _NAME.finditer(value))
        yield from (found[0] for found in _NUMBER.finditer(value))

    def _is_said(self, words: str) -> bool:
        return words in self._all and any(holds(message.text, words, "en") for message in self._messages)

    def _most(self, fact: str, among: Sequence[CaseMessage]) -> CaseMessage:
        """Return the last message with most of the words of a fact."""
        return max(reversed(among), key=lambda message: share(fact, message.text, "en"))
