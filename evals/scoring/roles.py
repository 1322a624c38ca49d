"""Roles: who does what to whom, and which side of a comparison is which.

A text that exchanges the two has all the right words. Only English is read: in the other languages the order of words
does not tell the roles.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from evals.case_files import Language
from evals.scoring.text import by_language, clauses, normalised, stems

_ACTS = by_language("acts")
_SUBJECT = re.compile(r"(\w+(?:[.-]\w+)*) (?:(?:will|must|should|can|may|always|never|still|only) )*$")

_WORD = re.compile(r"\w+(?:[.-]\w+)*")

Role = tuple[str, str, frozenset[str]]
"""The word before an act, the act, and the words after it."""


@lru_cache(maxsize=16_384)
def exchanged(fact: str, statement: str, language: Language) -> str | None:
    """Return which words a statement exchanges, as a reason; None if it does not.

    Only clauses with the same content words and the same voice are compared.
    """
    if language not in _ACTS:
        return None
    said = [(_content(clause, language), clause) for clause in clauses(statement, language)]
    for clause in clauses(fact, language):
        wanted = _content(clause, language)
        alike = (other for content, other in said if content == wanted)
        if found := next((each for other in alike if (each := _exchanged(clause, other, language))), None):
            return found
    return None


def _content(clause: str, language: Language) -> tuple[frozenset[str], bool]:
    """Return the content words of a clause, and whether it names an agent (`by Ann`)."""
    return frozenset(stems(clause, language)), " by " in f" {normalised(clause)} "


def _exchanged(clause: str, other: str, language: Language) -> str | None:
    for subject, act, rest in _roles(clause, language):
        for another, same, others in _roles(other, language):
            if same == act and subject != another and subject in others and another in rest:
                return f"{another!r} and {subject!r} are exchanged around {act!r}"
    return None


def _roles(clause: str, language: Language) -> Iterator[Role]:
    plain = normalised(clause)
    for act in _ACTS[language].finditer(plain):
        if subject := _SUBJECT.search(plain[: act.start()]):
            yield subject[1], act[0], frozenset(_WORD.findall(plain[act.end() :]))
