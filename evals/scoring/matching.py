"""Verdicts on facts: kept in the same words, kept in others, changed, contradicted or lost.

Rules come first: a row must have the exact words, most of the other words, and no clause that denies what the fact
states or states what it denies. If the words differ and the exact ones are there, the embedding model decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from typing import Literal, get_args

from esker.server.core.records import Trust
from evals.case_files import Language
from evals.scoring import cues
from evals.scoring.gold import Atom, Gold
from evals.scoring.meaning import ALONE, BESIDE, Meaning
from evals.scoring.pairing import torn_apart
from evals.scoring.polarity import turned_around
from evals.scoring.roles import exchanged
from evals.scoring.text import holds, holds_all, parts, sentences, share, words_of

Fate = Literal["verbatim", "by meaning", "contradicted", "changed", "lost"]
_FATES: tuple[Fate, ...] = get_args(Fate)

_Rank = tuple[int, int, float]

_WORDS = 0.6
"""Share of a fact's words from which a row states it in the same words."""
_CERTAIN = 0.8
"""The same for a row that does not cite the fact's source, while one that does contradicts the fact."""
_WORDS_BESIDE = 0.5
"""The same for a row that also has all exact words."""


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row that memory kept; `sources` are the rows of the log that it cites."""

    id: str
    text: str
    sources: tuple[str, ...] = ()
    by: Trust | None = None
    at: datetime | None = None
    refers: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True)
class AtomVerdict:
    """The fate of an atom, the row and the statement that decide it, and the reason."""

    atom: Atom
    fate: Fate
    row: KeptRow | None
    statement: str
    why: str
    cosine: float | None = None

    @property
    def kept(self) -> bool:
        """Whether the fact is kept, in the same words or in others."""
        return self.fate in ("verbatim", "by meaning")


class Judge:
    """Judges texts of one language."""

    def __init__(self, language: Language, meaning: Meaning) -> None:
        """`meaning` decides if the words differ."""
        self.language: Language = language
        self.meaning = meaning

    def read(self, gold: Gold, *outputs: Sequence[KeptRow]) -> None:
        """Embed in one batch, which is faster than one at a time, what is compared with facts and noise per output."""
        compared = [text for rows in outputs for atom in gold.lasting() for text in self._compared(atom, rows)]
        if gold.noise and self.language not in ("zh", "ja"):
            said = [sentence for rows in outputs for row in rows for sentence in sentences(row.text)]
            compared += [*(atom.fact for atom in gold.noise), *(part for each in said for part in parts(each))]
        self.meaning.read(compared)

    def _compared(self, atom: Atom, rows: Sequence[KeptRow]) -> list[str]:
        """Return the texts whose meanings have to be compared to judge an atom; none if a row has its very words."""
        bounds = [self._upper_bound(atom, row) for row in rows]
        if any(bound.fate == "verbatim" for bound in bounds):
            return []
        statements = (bound.statement for bound in bounds)
        return [atom.fact, *statements, *(row.text for row in rows)]

    def judge(self, atom: Atom, rows: Sequence[KeptRow]) -> AtomVerdict:
        """Return the best verdict on an atom among rows.

        Judging a row is slow, and its words give an upper bound: rows with the best bound are judged first.
        """
        bounds = [self._upper_bound(atom, row) for row in rows]
        best: tuple[_Rank, int, AtomVerdict] | None = None
        for rank, place in sorted((self._order(bound), place) for place, bound in enumerate(bounds)):
            if best and best[:2] < (rank, place):
                break
            if found := self._verdict(bounds[place], rows[place]):
                made = self._order(found), place, found
                best = min(made, best or made, key=itemgetter(0, 1))
        return best[2] if best else AtomVerdict(atom, "lost", None, "", "no row says it")

    def share(self, of: str, within: str) -> float:
        """Return how many of the words of one text are in another, from 0 to 1."""
        return share(of, within, self.language)

    def holds(self, text: str, words: str) -> bool:
        """Whether a text contains words literally."""
        return holds(text, words, self.language)

    def _order(self, verdict: AtomVerdict) -> _Rank:
        """Return a sort key, best first: among rows that keep an atom, one that cites its source comes first.

        A citing row that contradicts the atom outranks another row that happens to have some of its words.
        """
        cited = verdict.row is not None and bool({*verdict.row.sources} & {*verdict.atom.rows})
        share = self.share(verdict.atom.fact, verdict.statement)
        if verdict.kept:
            rank = 0 if cited else 1 if share >= _CERTAIN else 3
        else:
            rank = 2 if cited and verdict.fate == "contradicted" else 4
        return rank, _FATES.index(verdict.fate), -share

    def _upper_bound(self, atom: Atom, row: KeptRow) -> AtomVerdict:
        """Return an upper bound of the verdict on an atom by a row, from the words that the row has."""
        whole = holds_all(row.text, atom.exact, self.language)
        said = self.share(atom.fact, row.text)
        statement = _statement(atom.fact, atom.exact, row.text, self.language)
        if whole and said >= (_WORDS_BESIDE if atom.exact else _WORDS):
            return AtomVerdict(atom, "verbatim", row, statement, f"{said:.0%} of its words")
        if whole:
            return AtomVerdict(atom, "by meaning", row, statement, "")
        return AtomVerdict(atom, "changed", row, statement, "")

    def _verdict(self, bound: AtomVerdict, row: KeptRow) -> AtomVerdict | None:
        """Return the verdict on an atom by a row, given its upper bound; None if the row is about something else."""
        atom, statement = bound.atom, bound.statement
        if bound.fate == "verbatim":
            return self._with_meaning(bound)
        cosine = max(self.meaning.cosine(atom.fact, each) for each in {statement, row.text})
        if cosine < (BESIDE if bound.fate == "by meaning" and atom.exact else ALONE)[self.language]:
            return None
        if bound.fate == "by meaning":
            return self._with_meaning(replace(bound, why=f"cosine {cosine:.2f}", cosine=cosine))
        missing = ", ".join(repr(words) for words in atom.exact if not self.holds(row.text, words))
        return replace(bound, why=f"without {missing}", cosine=cosine)

    def _with_meaning(self, verdict: AtomVerdict) -> AtomVerdict:
        """Return the verdict, or a worse one if the statement has the words with another meaning."""
        atom, statement = verdict.atom, verdict.statement
        turned = self._taken_back(atom.fact, verdict) or turned_around(atom.fact, statement, self.language)
        if turned is not None:
            return replace(verdict, fate="contradicted", why=f"{turned[1]!r} against {turned[0]!r}")
        torn = torn_apart(atom.fact, atom.exact, statement)
        if torn is not None:
            return replace(verdict, fate="contradicted", why=torn)
        swapped = exchanged(atom.fact, statement, self.language)
        if swapped is not None:
            return replace(verdict, fate="contradicted", why=swapped)
        old = [words for words in atom.exact if self._is_old_only(words, atom.fact, statement)]
        if old:
            return replace(verdict, fate="changed", why=f"{old[0]!r} is reported as a former value")
        if self._is_taken_for_fact(atom, statement):
            return replace(verdict, fate="changed", why="stated as a fact, not as an opinion")
        return verdict

    def _taken_back(self, fact: str, verdict: AtomVerdict) -> tuple[str, str] | None:
        """Return a fact and the row that calls it untrue in another sentence; else None."""
        row = verdict.row.text if verdict.row else ""
        if cues.is_called_untrue(row, self.language) and not cues.is_called_untrue(fact, self.language):
            return fact, row
        return None

    def _is_old_only(self, words: str, fact: str, statement: str) -> bool:
        named = cues.is_old_value(words, statement, self.language)
        return named and not cues.is_old_value(words, fact, self.language) and not cues.is_past(fact, self.language)

    def _is_taken_for_fact(self, atom: Atom, statement: str) -> bool:
        """Whether a statement omits that a fact is only an opinion of a person."""
        reported = cues.reported(atom.fact, self.language)
        if reported is None:
            return False
        speaker, said = reported
        if cues.unsettled_cues(statement, self.language) - cues.unsettled_cues(said, self.language):
            return False
        return not words_of(speaker, self.language) & words_of(statement, self.language)


@lru_cache(maxsize=65_536)
def _statement(fact: str, exact: tuple[str, ...], text: str, language: Language) -> str:
    """Return the sentence of a text nearest to a fact, or the whole text if no sentence has all exact words.

    A fact of several sentences is compared with the whole text.
    """
    if len(sentences(fact)) > 1:
        return text
    told = [(sum(holds(each, words, language) for words in exact), each) for each in sentences(text) or (text,)]
    held, best = max(told, key=lambda each: (each[0], share(fact, each[1], language)))
    return best if held == len(exact) else text
