"""Whether what was said is still there: in the same words, in others, turned into something else, or gone.

Rules first: the words that must stay letter by letter, most of the other words, and no clause that denies what the fact
states or states what it denies. Where the words differ and all that must stay is there, the embedding model decides.
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
from evals.scoring.text import holds, holds_all, parts, sentences, share, words_of

Fate = Literal["verbatim", "by meaning", "contradicted", "changed", "lost"]
_FATES: tuple[Fate, ...] = get_args(Fate)

_Rank = tuple[int, int, float]

_WORDS = 0.6
"""How many of a fact's words stand in a row that says it in the same words."""
_CERTAIN = 0.8
"""The same in a row that does not go back to where the fact stands, while one that does turns it around."""
_WORDS_BESIDE = 0.5
"""The same where what must stay letter by letter is there as well."""


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
class AtomVerdict:
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

    def read(self, gold: Gold, left: Sequence[Left]) -> None:
        """Embed all that is going to be compared, which is quicker together than one by one."""
        texts = [row.text for row in left]
        said = [sentence for text in texts for sentence in sentences(text)]
        if gold.noise and self.language not in ("zh", "ja"):
            said = [part for sentence in said for part in parts(sentence)]
        self.meaning.read([*(atom.fact for atom in gold.atoms()), *texts, *said])

    def judge(self, atom: Atom, rows: Sequence[Left]) -> AtomVerdict:
        """Return what became of an atom in rows: the best that one of them makes of it.

        A look at a row takes long, and finds no more in it than its words promise: those that promise most come first.
        """
        promised = [self._promise(atom, row) for row in rows]
        best: tuple[_Rank, int, AtomVerdict] | None = None
        for rank, place in sorted((self._order(promise), place) for place, promise in enumerate(promised)):
            if best and best[:2] < (rank, place):
                break
            if found := self._looked_at(promised[place], rows[place]):
                made = self._order(found), place, found
                best = min(made, best or made, key=itemgetter(0, 1))
        return best[2] if best else AtomVerdict(atom, "lost", None, "", "no row says it")

    def share(self, of: str, within: str) -> float:
        """Return how many of the words of one text are in another, from 0 to 1."""
        return share(of, within, self.language)

    def holds(self, text: str, words: str) -> bool:
        """Tell whether a text holds words letter by letter."""
        return holds(text, words, self.language)

    def _order(self, verdict: AtomVerdict) -> _Rank:
        """Order verdicts: of two rows that keep an atom the one that goes back to where it stands is the one meant.

        A row that goes back there and turns it around tells more than another that happens to have some of its words.
        """
        cited = verdict.row is not None and bool({*verdict.row.sources} & {*verdict.atom.rows})
        share = self.share(verdict.atom.fact, verdict.statement)
        if verdict.kept:
            rank = 0 if cited else 1 if share >= _CERTAIN else 3
        else:
            rank = 2 if cited and verdict.fate == "contradicted" else 4
        return rank, _FATES.index(verdict.fate), -share

    def _promise(self, atom: Atom, row: Left) -> AtomVerdict:
        """Return the best that a row may make of an atom, going by whether it has its words."""
        whole = holds_all(row.text, atom.exact, self.language)
        said = self.share(atom.fact, row.text)
        statement = _statement(atom.fact, atom.exact, row.text, self.language)
        if whole and said >= (_WORDS_BESIDE if atom.exact else _WORDS):
            return AtomVerdict(atom, "verbatim", row, statement, f"{said:.0%} of its words")
        if whole:
            return AtomVerdict(atom, "by meaning", row, statement, "")
        return AtomVerdict(atom, "changed", row, statement, "")

    def _looked_at(self, promise: AtomVerdict, row: Left) -> AtomVerdict | None:
        """Return what a row makes of an atom, given what it promises; None where it is about something else."""
        atom, statement = promise.atom, promise.statement
        if promise.fate == "verbatim":
            return self._as_meant(promise)
        cosine = max(self.meaning.cosine(atom.fact, each) for each in {statement, row.text})
        if cosine < (BESIDE if promise.fate == "by meaning" and atom.exact else ALONE)[self.language]:
            return None
        if promise.fate == "by meaning":
            return self._as_meant(replace(promise, why=f"cosine {cosine:.2f}", cosine=cosine))
        missing = ", ".join(repr(words) for words in atom.exact if not self.holds(row.text, words))
        return replace(promise, why=f"without {missing}", cosine=cosine)

    def _as_meant(self, verdict: AtomVerdict) -> AtomVerdict:
        """Return the verdict, or another where the statement has the words and says something else."""
        atom, statement = verdict.atom, verdict.statement
        turned = self._taken_back(atom.fact, verdict) or turned_around(atom.fact, statement, self.language)
        if turned is not None:
            return replace(verdict, fate="contradicted", why=f"{turned[1]!r} against {turned[0]!r}")
        torn = torn_apart(atom.fact, atom.exact, statement)
        if torn is not None:
            return replace(verdict, fate="contradicted", why=torn)
        old = [words for words in atom.exact if self._is_old_only(words, atom.fact, statement)]
        if old:
            return replace(verdict, fate="changed", why=f"{old[0]!r} is told as what was before")
        if self._is_taken_for_fact(atom, statement):
            return replace(verdict, fate="changed", why="told as a fact, and not as what somebody says")
        return verdict

    def _taken_back(self, fact: str, verdict: AtomVerdict) -> tuple[str, str] | None:
        """Return a fact and a row that says of it in another sentence that it is not so."""
        row = verdict.row.text if verdict.row else ""
        if cues.is_called_untrue(row, self.language) and not cues.is_called_untrue(fact, self.language):
            return fact, row
        return None

    def _is_old_only(self, words: str, fact: str, statement: str) -> bool:
        named = cues.is_old_value(words, statement, self.language)
        return named and not cues.is_old_value(words, fact, self.language) and not cues.is_past(fact, self.language)

    def _is_taken_for_fact(self, atom: Atom, statement: str) -> bool:
        """Tell whether what a fact reports as somebody's word is told without a hint of that."""
        reported = cues.reported(atom.fact, self.language)
        if reported is None:
            return False
        speaker, said = reported
        if cues.unsettled_cues(statement, self.language) - cues.unsettled_cues(said, self.language):
            return False
        return not words_of(speaker, self.language) & words_of(statement, self.language)


@lru_cache(maxsize=65_536)
def _statement(fact: str, exact: tuple[str, ...], text: str, language: Language) -> str:
    """Return the sentence of a text that is most about a fact, or all of it where none has what must stay.

    A fact of several sentences is held against all of a text.
    """
    if len(sentences(fact)) > 1:
        return text
    told = [(sum(holds(each, words, language) for words in exact), each) for each in sentences(text) or (text,)]
    held, best = max(told, key=lambda each: (each[0], share(fact, each[1], language)))
    return best if held == len(exact) else text
