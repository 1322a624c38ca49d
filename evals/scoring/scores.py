"""The scores of what is left of a log: shares from 0 to 1, each with what it was made of, so that a person can check it.

A score that a case has nothing for is left out; it is not 1.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from evals.scoring import cues
from evals.scoring.claims import unsupported
from evals.scoring.dates import names_day
from evals.case_files import Language
from evals.scoring.gold import Atom, Change, Gold, Row
from evals.scoring.matching import Left, Verdict, judge
from evals.scoring.meaning import Meaning
from evals.scoring.text import holds, holds_all, share, words_of
from server.core.tokens import estimate_tokens

_REPEATS = 0.8
"""Jaccard of two rows' words from which one repeats the other."""
_SUPPORTED = 0.5
"""How many of a row's words stand in the rows that it cites."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One score: how many of how many, and a line about each that is not as it should be."""

    name: str
    good: int
    of: int
    faults: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """From 0 to 1, the more the better."""
        return self.good / self.of


@dataclass(frozen=True, slots=True)
class Scored:
    """All that is known of what is left: verdicts of the facts, figures by name, and sizes in tokens."""

    verdicts: Mapping[str, Sequence[Verdict]]
    figures: Mapping[str, Figure]
    tokens_before: int
    tokens_after: int
    facts: int = field(default=0)

    @property
    def kept(self) -> int:
        """How many of the facts that should be there are."""
        return sum(verdict.kept for name in _LASTING for verdict in self.verdicts.get(name, ()))

    @property
    def per_thousand_tokens(self) -> float:
        """Facts that are known to a thousand tokens of what is left."""
        return 1_000 * self.kept / self.tokens_after if self.tokens_after else 0.0

    @property
    def shorter(self) -> float:
        """Which share of the tokens is gone."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0


_LASTING = ("keep", "new", "open", "asserted")


def score(gold: Gold, log: Sequence[Row], left: Sequence[Left], language: Language, meaning: Meaning) -> Scored:
    """Return the scores of what is left of a log."""
    facts = {
        "keep": gold.keep,
        "new": tuple(change.new for change in gold.replaced),
        "open": gold.open,
        "asserted": gold.asserted,
    }
    meaning.read([atom.fact for atom in gold.atoms()] + [row.text for row in left])
    verdicts = {name: [judge(atom, left, meaning) for atom in atoms] for name, atoms in facts.items() if atoms}
    lasting = [verdict for name in _LASTING for verdict in verdicts.get(name, ())]
    figures = [
        _retention("retention", lasting, lambda verdict: verdict.kept),
        _retention("verbatim", lasting, lambda verdict: verdict.fate == "verbatim"),
        _supersession(gold.replaced, verdicts.get("new", ()), left, meaning),
        _noise(gold.noise, left),
        _open(verdicts.get("open", ())),
        _asserted(verdicts.get("asserted", ())),
        _grounded(log, left, language),
        _never(gold, left),
        _attribution(lasting),
        _dates(lasting),
        _provenance(log, left),
        _unique(left),
    ]
    return Scored(
        verdicts,
        {figure.name: figure for figure in figures if figure.of},
        sum(estimate_tokens(row.text) for row in log),
        sum(estimate_tokens(row.text) for row in left),
        len(lasting),
    )


def _figure(name: str, faults: Sequence[str | None]) -> Figure:
    """Return a figure from a line for each thing that was looked at, None where it is as it should be."""
    wrong = tuple(fault for fault in faults if fault is not None)
    return Figure(name, len(faults) - len(wrong), len(faults), wrong)


def _retention(name: str, verdicts: Sequence[Verdict], good: Callable[[Verdict], bool]) -> Figure:
    return _figure(name, [None if good(each) else f"{each.fate}: {each.atom.fact} ({each.why})" for each in verdicts])


def _supersession(changes: Sequence[Change], new: Sequence[Verdict], left: Sequence[Left], meaning: Meaning) -> Figure:
    """What holds now is there, and no row says what held before as though it still did."""
    faults = [_of_change(change, verdict, left, meaning) for change, verdict in zip(changes, new, strict=True)]
    return _figure("supersession", faults)


def _of_change(change: Change, new: Verdict, left: Sequence[Left], meaning: Meaning) -> str | None:
    if not new.kept:
        return f"{new.fate}: {change.new.fact}"
    old = judge(change.old, [row for row in left if not _tells_of_change(change, row)], meaning)
    return f"as though it still held: {old.statement}" if old.kept else None


def _tells_of_change(change: Change, row: Left) -> bool:
    """Tell whether a row says that the old is old: beside the new, or in words for what is past."""
    old = [words for words in change.old.exact if not holds(change.new.fact, words)]
    around = [part for part in row.text.splitlines() if not old or any(holds(part, words) for words in old)]
    return all(cues.is_past(part) for part in around) if around else True


def _noise(noise: Sequence[Atom], left: Sequence[Left]) -> Figure:
    """What mattered to nobody is gone: no row has its exact words and most of the others."""
    return _figure("noise gone", [_still_there(atom, left) for atom in noise])


def _still_there(atom: Atom, left: Sequence[Left]) -> str | None:
    for row in left:
        if holds_all(row.text, atom.exact) and share(atom.fact, row.text) >= _REPEATS:
            return f"still there: {atom.fact} ({row.id})"
    return None


def _open(verdicts: Sequence[Verdict]) -> Figure:
    """What was put off, planned or limited is there and still reads as that. What is lost counts for retention alone."""
    return _figure("still open", [_turned(verdict) for verdict in verdicts if verdict.fate != "lost"])


def _turned(verdict: Verdict) -> str | None:
    fact, said = verdict.atom.fact, verdict.statement
    if verdict.fate == "contradicted":
        return f"turned around: {said}"
    if cues.is_done(said) and not cues.is_done(fact):
        return f"turned into done: {said}"
    if (cues.is_open(fact) and cues.is_open(said)) or (cues.is_limited(fact) and cues.is_limited(said)):
        return None
    return f"without its reservation: {said}"


def _asserted(verdicts: Sequence[Verdict]) -> Figure:
    """What somebody ruled still stands."""
    return _figure("ruling stands", [None if each.kept else f"{each.fate}: {each.atom.fact}" for each in verdicts])


def _grounded(log: Sequence[Row], left: Sequence[Left], language: Language) -> Figure:
    """Quotations, identifiers, numbers, days and names of a row stand in the log."""
    told = [row.text for row in log] + [row.at.date().isoformat() for row in log]
    return _figure("grounded", [_made_up(row, told, language) for row in left])


def _made_up(row: Left, told: Sequence[str], language: Language) -> str | None:
    found = unsupported(row.text, told, names=language != "de")
    return f"{row.id} has from nowhere: {', '.join(f'{one.sort} {one.words!r}' for one in found)}" if found else None


def _never(gold: Gold, left: Sequence[Left]) -> Figure:
    """Words that nobody said are in no row."""
    said = ((words, next((row for row in left if holds(row.text, words)), None)) for words in gold.never)
    return _figure("never said", [f"{words!r} is in {row.id}" if row else None for words, row in said])


def _attribution(verdicts: Sequence[Verdict]) -> Figure:
    """Rows go back to who said it. A row that does not tell counts for nothing, neither does one of several speakers."""
    told = [
        (each, each.row.by or _named(each.row.text)) for each in verdicts if each.kept and each.row and each.atom.by
    ]
    wrong = (
        f"{each.atom.by} said it, not the {by}: {each.atom.fact}" if by != each.atom.by else None
        for each, by in told
        if by
    )
    return _figure("attribution", [*wrong])


def _named(text: str) -> str | None:
    """Return who said a row by its first words."""
    first = text.split(" ", 1)[0].strip(":,").casefold()
    return {"user": "user", "assistant": "assistant", "agent": "assistant", "tool": "tool"}.get(first)


def _dates(verdicts: Sequence[Verdict]) -> Figure:
    """The day of a fact can be told from its row: from its text or from its times."""
    dated = [(each, each.atom.dated, each.row) for each in verdicts if each.kept and each.row and each.atom.dated]
    faults = (None if _has_day(row, day) else f"{day} is not told: {each.statement}" for each, day, row in dated)
    return _figure("dates", [*faults])


def _has_day(row: Left, day: object) -> bool:
    from datetime import date

    assert isinstance(day, date)
    return names_day(row.text, day) or any(moment.date() == day for moment in (row.at, *row.refers) if moment)


def _provenance(log: Sequence[Row], left: Sequence[Left]) -> Figure:
    """Every row cites rows of the log, and they say what it says."""
    texts = {row.id: row.text for row in log}
    return _figure("sources", [_badly_cited(row, texts) for row in left])


def _badly_cited(row: Left, texts: Mapping[str, str]) -> str | None:
    if not row.sources:
        return f"{row.id} cites nothing"
    if unknown := [source for source in row.sources if source not in texts]:
        return f"{row.id} cites what is not there: {', '.join(unknown)}"
    cited = "\n".join(texts[source] for source in row.sources)
    if (said := share(row.text, cited)) < _SUPPORTED:
        return f"{row.id} has {said:.0%} of its words from what it cites"
    return None


def _unique(left: Sequence[Left]) -> Figure:
    """No row says what another says."""
    repeated = {second.id: first.id for first, second in combinations(left, 2) if _repeats(first, second)}
    return _figure(
        "said once", [f"{row.id} repeats {repeated[row.id]}" if row.id in repeated else None for row in left]
    )


def _repeats(first: Left, second: Left) -> bool:
    one, other = words_of(first.text), words_of(second.text)
    return bool(one | other) and len(one & other) / len(one | other) >= _REPEATS


def lines(scored: Scored) -> Iterator[str]:
    """Yield what a person wants to read of a score: what became of each fact, and what is wrong beside that."""
    for name, verdicts in scored.verdicts.items():
        for verdict in verdicts:
            where = f" in {verdict.row.id}" if verdict.row else ""
            yield f"{name}: {verdict.fate}{where}: {verdict.atom.fact} ({verdict.why})"
    for figure in scored.figures.values():
        if figure.name not in ("retention", "verbatim"):
            yield from (f"{figure.name}: {fault}" for fault in figure.faults)
