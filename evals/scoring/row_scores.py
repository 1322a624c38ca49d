"""Scores of rows: nothing is made up, every row has sources that support it, and nothing is repeated."""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import combinations

from evals.scoring.claims import one_source, unsupported
from evals.scoring.figures import ScoreFigure, figure
from evals.scoring.gold import Gold, LogRow
from evals.scoring.matching import Judge, Left
from evals.scoring.meaning import BESIDE
from evals.scoring.text import stems

_REPEATS = 0.8
"""Jaccard of two rows' words from which one repeats the other."""
_SUPPORTED = 0.5
"""Share of a row's words from which the rows that it cites support it."""


def grounded(log: Sequence[LogRow], gold: Gold, left: Sequence[Left], by: Judge) -> ScoreFigure:
    """Quotations, identifiers, numbers, days and names of a row occur in the log.

    A day may be the one before or after that of a row of the log, which says yesterday or tomorrow. German capitalises
    all nouns, so names are not looked up there.
    """
    told = one_source(row.text for row in log)
    days = {day for row in log for day in _around(row.at.date())}
    days |= {atom.dated for atom in gold.atoms() if atom.dated}
    return figure("grounded", (_made_up(row, told, days, by) for row in left))


def _around(day: date) -> list[date]:
    """Return a day with the one before and the one after, within the calendar."""
    near = (day.toordinal() + off for off in (-1, 0, 1))
    return [date.fromordinal(each) for each in near if 1 <= each <= date.max.toordinal()]


def _made_up(row: Left, told: str, days: set[date], by: Judge) -> str | None:
    found = unsupported(row.text, told, days, names=by.language != "de")
    return f"{row.id} has from nowhere: {', '.join(f'{one.sort} {one.words!r}' for one in found)}" if found else None


def never_said(gold: Gold, left: Sequence[Left], by: Judge) -> ScoreFigure:
    """No row has words that the log never contained."""
    said = ((words, next((row for row in left if by.holds(row.text, words)), None)) for words in gold.never)
    return figure("never said", (f"{words!r} is in {row.id}" if row else None for words, row in said))


def sources(log: Sequence[LogRow], left: Sequence[Left], by: Judge) -> ScoreFigure:
    """Every row cites rows of the log that support it, in its words or in others."""
    texts = {row.id: row.text for row in log}
    cited = [(row.text, [texts[source] for source in row.sources if source in texts]) for row in left]
    in_other_words = ((text, its) for text, its in cited if its and by.share(text, "\n".join(its)) < _SUPPORTED)
    by.meaning.read(each for text, its in in_other_words for each in (text, *its))
    return figure("sources", (_badly_cited(row, texts, by) for row in left))


def _badly_cited(row: Left, texts: Mapping[str, str], by: Judge) -> str | None:
    if not row.sources:
        return f"{row.id} cites nothing"
    if unknown := [source for source in row.sources if source not in texts]:
        return f"{row.id} cites what is not there: {', '.join(unknown)}"
    cited = [texts[source] for source in row.sources]
    said = by.share(row.text, "\n".join(cited))
    if said < _SUPPORTED and max(by.meaning.cosine(row.text, text) for text in cited) < BESIDE[by.language]:
        return f"{row.id} has {said:.0%} of its words from what it cites"
    return None


def said_once(left: Sequence[Left], by: Judge) -> ScoreFigure:
    """No row repeats another."""
    repeated = {second.id: first.id for first, second in combinations(left, 2) if _repeats(first, second, by)}
    return figure("said once", (f"{row.id} repeats {repeated[row.id]}" if row.id in repeated else None for row in left))


def _repeats(first: Left, second: Left, by: Judge) -> bool:
    one, other = {*stems(first.text, by.language)}, {*stems(second.text, by.language)}
    return bool(one | other) and len(one & other) / len(one | other) >= _REPEATS
