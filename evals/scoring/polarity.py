"""Whether a statement contradicts a fact: it denies what the fact states, or states what the fact denies.

Denials are counted by clause, since "pnpm, not npm" denies one thing and states another. A paraphrase may move them
("linux: never" for "in none on linux"), so a clause is compared with its nearest clause and with all clauses that share
words with it, and is contradicted only if both comparisons agree.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from evals.case_files import Language
from evals.scoring.denials import denials, denials_of, denied_in, opposite, possible_denials, without_denials
from evals.scoring.text import clauses, sentences, words_of

_SAME_CLAUSE = 0.6
"""Share of a clause's words from which another is about the same."""
_OF_THE_FACT = 2 / 3
"""Share of the denied words that must be the fact's for the fact to be denied."""


@lru_cache(maxsize=16_384)
def turned_around(fact: str, statement: str, language: Language) -> tuple[str, str] | None:
    """Return a part of a fact and the part of a statement that contradicts it; None if there is none."""
    stated = _statements(statement, language)
    told = [(clause, [*_about(clause, stated, language)]) for clause in _statements(fact, language)]
    for clause, found in told:
        about = [each for each in found if _says(each, clause, language)]
        # A clause of the statement that covers several clauses of the fact is also compared with them together.
        together = ", ".join(other for other, its in told if its[0] == found[0] and _says(its[0], other, language))
        if about and all(
            _turns(part, each, fact, statement, language) for each in about for part in (clause, together or clause)
        ):
            return clause, about[0]
    return None


def _says(said: str, clause: str, language: Language) -> bool:
    return _share(clause, said, language) >= _SAME_CLAUSE


def _statements(text: str, language: Language) -> list[str]:
    """Return the clauses of a text; one without content words (`never`, `do`) is joined to its neighbour."""
    return [each for sentence in sentences(text) for each in _joined(clauses(sentence, language), language)]


def _joined(parts: Sequence[str], language: Language) -> list[str]:
    found: list[str] = []
    for part in parts:
        if found and not (_words(part, language) and _words(found[-1], language)):
            found[-1] = f"{found[-1]} {part}"
        else:
            found.append(part)
    return found


def _about(clause: str, stated: Sequence[str], language: Language) -> Iterator[str]:
    """Yield the clause nearest to another, and all those that share words with it, joined."""
    denied = denials(clause, language) % 2
    if stated:
        yield max(
            stated,
            key=lambda each: (
                _share(clause, each, language),
                denials(each, language) % 2 == denied,
                _share(each, clause, language),
            ),
        )
    some = (each for each in stated if _words(each, language) & _words(clause, language))
    yield ", ".join(each for each in some if not denials(each, language) or _denies(each, clause, language))


def _denies(part: str, clause: str, language: Language) -> bool:
    """Whether a part of a statement denies the subject of a clause of a fact."""
    denied = denied_in(part, language)
    return len(denied & _words(clause, language)) >= _OF_THE_FACT * len(denied)


def _turns(clause: str, about: str, fact: str, statement: str, language: Language) -> bool:
    words = _words(clause, language)
    more = denials_of(words, about, language, _words(fact, language) - words) - denials(clause, language)
    fewer, other = (statement, fact) if more < 0 else (fact, statement)
    contrary = opposite(clause, about, language)
    own = possible_denials(about, language) - possible_denials(fact, language)
    if more % 2 == 0:
        # Beside an opposite, a word such as "turned away" may restore the meaning.
        return contrary is not None and all(word in contrary or contrary in word for word in own)
    if own or possible_denials(fewer, language) - possible_denials(other, language):
        return False
    return contrary is None


def _share(of: str, within: str, language: Language) -> float:
    wanted = _words(of, language)
    return len(wanted & _words(within, language)) / len(wanted) if wanted else 0.0


def _words(text: str, language: Language) -> frozenset[str]:
    return words_of(without_denials(text, language), language)
