"""Whether what was said is still there: in the same words, in others, turned into something else, or gone.

Rules first: the words that must stay letter by letter, most of the other words, and no clause that denies what the fact
states or states what it denies. Where the words differ and all that must stay is there, the embedding model decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from evals.scoring import cues
from evals.scoring.gold import Atom
from evals.scoring.meaning import ALONE, BESIDE, Meaning
from evals.scoring.text import clauses, holds, holds_all, sentences, share
from server.core.records import Trust

Fate = Literal["verbatim", "by meaning", "contradicted", "changed", "lost"]

_WORDS = 0.6
"""How many of a fact's words stand in a row that says it in the same words."""
_WORDS_BESIDE = 0.4
"""The same where what must stay letter by letter is there as well."""
_SAME_CLAUSE = 0.6
"""How many words of a clause are in another that is about the same."""


@dataclass(frozen=True, slots=True)
class Left:
    """A row that is left when memory has done its work; `sources` are rows of the log that it stands for."""

    id: str
    text: str
    sources: tuple[str, ...] = ()
    by: Trust | None = None
    at: datetime | None = None
    refers: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of an atom, the row that shows it, the statement in that row, and why it counts as that."""

    atom: Atom
    fate: Fate
    row: Left | None
    statement: str
    why: str
    cosine: float | None = None

    @property
    def kept(self) -> bool:
        """Whether it can still be known."""
        return self.fate in ("verbatim", "by meaning")


def judge(atom: Atom, rows: Sequence[Left], meaning: Meaning) -> Verdict:
    """Return what became of an atom in rows: the best that one of them makes of it."""
    verdicts = [found for row in rows if (found := _in_row(atom, row, meaning))]
    order: dict[Fate, int] = {"verbatim": 0, "by meaning": 1, "contradicted": 2, "changed": 3, "lost": 4}
    nothing = Verdict(atom, "lost", None, "", "no row says it")
    return min(verdicts, key=lambda verdict: order[verdict.fate], default=nothing)


def states(row: Left, atom: Atom, meaning: Meaning) -> bool:
    """Tell whether a row says what an atom says."""
    found = _in_row(atom, row, meaning)
    return found is not None and found.kept


def _in_row(atom: Atom, row: Left, meaning: Meaning) -> Verdict | None:
    """Return what a row makes of an atom; None where it is about something else."""
    whole = holds_all(row.text, atom.exact)
    said = share(atom.fact, row.text)
    statement = _statement(atom, row.text)
    if whole and said >= (_WORDS_BESIDE if atom.exact else _WORDS):
        return _unless_denied(atom, row, statement, "verbatim", f"{said:.0%} of its words", None)
    cosine = max((meaning.cosine(atom.fact, each) for each in _parts(row.text, statement)), default=0.0)
    if cosine < (BESIDE if whole and atom.exact else ALONE):
        return None
    if whole:
        return _unless_denied(atom, row, statement, "by meaning", f"cosine {cosine:.2f}", cosine)
    missing = ", ".join(repr(words) for words in atom.exact if not holds(row.text, words))
    return Verdict(atom, "changed", row, statement, f"without {missing}", cosine)


def _parts(text: str, statement: str) -> list[str]:
    return [statement] if statement == text else [statement, text]


def _statement(atom: Atom, text: str) -> str:
    """Return the sentence of a text that is most about an atom, or all of it where no sentence has what must stay."""
    best = max(sentences(text) or [text], key=lambda each: (_held(atom, each), share(atom.fact, each)))
    return best if _held(atom, best) == len(atom.exact) else text


def _held(atom: Atom, text: str) -> int:
    return sum(holds(text, words) for words in atom.exact)


def _unless_denied(atom: Atom, row: Left, statement: str, fate: Fate, why: str, cosine: float | None) -> Verdict:
    denied = _denied(atom.fact, statement)
    if denied is None:
        return Verdict(atom, fate, row, statement, why, cosine)
    return Verdict(atom, "contradicted", row, statement, f"{denied[1]!r} against {denied[0]!r}", cosine)


def _denied(fact: str, statement: str) -> tuple[str, str] | None:
    """Return a clause of a fact and the clause of a statement about the same of which one denies what the other says."""
    for clause in clauses(fact):
        about = max(clauses(statement), key=lambda each: share(clause, each), default="")
        if share(clause, about) < _SAME_CLAUSE:
            continue
        if cues.denials(clause) % 2 != cues.denials(about) % 2:
            return clause, about
    return None
