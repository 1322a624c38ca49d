"""Whether what was said is still there: in the same words, in others, turned into something else, or gone.

Rules first: the words that must stay letter by letter, most of the other words, and no clause that denies what the fact
states or states what it denies. Where the words differ and all that must stay is there, the embedding model decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from evals.case_files import Language
from evals.scoring import cues
from evals.scoring.gold import Atom
from evals.scoring.meaning import ALONE, BESIDE, Meaning
from evals.scoring.text import clauses, holds, holds_all, sentences, share
from server.core.records import Trust

Fate = Literal["verbatim", "by meaning", "contradicted", "changed", "lost"]
_FATES: tuple[Fate, ...] = get_args(Fate)

_WORDS = 0.6
"""How many of a fact's words stand in a row that says it in the same words."""
_WORDS_BESIDE = 0.5
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


class Judge:
    """Judges texts of one language."""

    def __init__(self, language: Language, meaning: Meaning) -> None:
        """`meaning` has the last word where the words differ."""
        self.language: Language = language
        self.meaning = meaning

    def judge(self, atom: Atom, rows: Sequence[Left]) -> Verdict:
        """Return what became of an atom in rows: the best that one of them makes of it."""
        verdicts = [found for row in rows if (found := self._in_row(atom, row))]
        nothing = Verdict(atom, "lost", None, "", "no row says it")
        return min(verdicts, key=self._order, default=nothing)

    def share(self, of: str, within: str) -> float:
        """Return how many of the words of one text are in another, from 0 to 1."""
        return share(of, within, self.language)

    def holds(self, text: str, words: str) -> bool:
        """Tell whether a text holds words letter by letter."""
        return holds(text, words, self.language)

    def _order(self, verdict: Verdict) -> tuple[int, bool, float]:
        """Order verdicts: of two rows that keep an atom the one that goes back to where it stands is the one meant."""
        cited = verdict.row is not None and bool({*verdict.row.sources} & {*verdict.atom.rows})
        rank = 0 if verdict.kept else _FATES.index(verdict.fate)
        # A row that cites it and says something else tells more than one that happens to have its words.
        return (rank if cited or rank else 1), not cited, -self.share(verdict.atom.fact, verdict.statement)

    def _in_row(self, atom: Atom, row: Left) -> Verdict | None:
        """Return what a row makes of an atom; None where it is about something else."""
        whole = holds_all(row.text, atom.exact, self.language)
        said = self.share(atom.fact, row.text)
        statement = self._statement(atom, row.text)
        if whole and said >= (_WORDS_BESIDE if atom.exact else _WORDS):
            return self._unless_denied(Verdict(atom, "verbatim", row, statement, f"{said:.0%} of its words"))
        cosine = max(self.meaning.cosine(atom.fact, each) for each in {statement, row.text})
        if cosine < (BESIDE if whole and atom.exact else ALONE)[self.language]:
            return None
        if whole:
            return self._unless_denied(Verdict(atom, "by meaning", row, statement, f"cosine {cosine:.2f}", cosine))
        missing = ", ".join(repr(words) for words in atom.exact if not self.holds(row.text, words))
        return Verdict(atom, "changed", row, statement, f"without {missing}", cosine)

    def _statement(self, atom: Atom, text: str) -> str:
        """Return the sentence of a text that is most about an atom, or all of it where none has what must stay."""
        best = max(sentences(text) or [text], key=lambda each: (self._held(atom, each), self.share(atom.fact, each)))
        return best if self._held(atom, best) == len(atom.exact) else text

    def _held(self, atom: Atom, text: str) -> int:
        return sum(self.holds(text, words) for words in atom.exact)

    def _unless_denied(self, verdict: Verdict) -> Verdict:
        denied = self._denied(verdict.atom.fact, verdict.statement)
        if denied is None:
            return verdict
        return replace(verdict, fate="contradicted", why=f"{denied[1]!r} against {denied[0]!r}")

    def _denied(self, fact: str, statement: str) -> tuple[str, str] | None:
        """Return a clause of a fact and one of a statement about the same of which one denies what the other says."""
        if cues.is_called_untrue(statement, self.language) and not cues.is_called_untrue(fact, self.language):
            return fact, statement
        for clause in clauses(fact):
            about = max(clauses(statement), key=lambda each: self.share(clause, each), default="")
            if self.share(clause, about) < _SAME_CLAUSE:
                continue
            odd = (cues.denials(clause, self.language) - cues.denials(about, self.language)) % 2
            if odd or cues.opposite(clause, about, self.language):
                return clause, about
        return None
