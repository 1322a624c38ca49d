"""Scores of rows: nothing is made up, every row has sources that support it, and nothing is repeated."""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import combinations

from evals.case_files import Language
from evals.scoring.claims import one_source, unsupported
from evals.scoring.figures import ScoreFigure, figure
from evals.scoring.gold import Gold, LogRow
from evals.scoring.matching import Judge, KeptRow
from evals.scoring.meaning import BESIDE
from evals.scoring.text import stems

_REPEATS = 0.8
"""Jaccard of two rows' words from which one repeats the other."""
_SUPPORTED = 0.5
"""Share of a row's words from which the rows that it cites support it."""


def grounded(log: Sequence[LogRow], gold: Gold, rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    """Quotations, identifiers, numbers, days and names of a row occur in the log.

    A day may be the one before or after that of a row of the log, which says yesterday or tomorrow. German capitalises
    all nouns, so names are not looked up there.
    """
    source = one_source(row.text for row in log)
    days = {day for row in log for day in _adjacent_days(row.at.date())}
    days |= {atom.dated for atom in gold.atoms() if atom.dated}
    return figure("grounded", (_made_up(row, source, days, by) for row in rows))


def _adjacent_days(day: date) -> list[date]:
    """Return a day with the one before and the one after, within the calendar."""
    near = (day.toordinal() + off for off in (-1, 0, 1))
    return [date.fromordinal(each) for each in near if 1 <= each <= date.max.toordinal()]


def _made_up(row: KeptRow, source: str, days: set[date], by: Judge) -> str | None:
    found = unsupported(row.text, source, days, names=by.language != "de")
    return (
        f"{row.id} has unsupported claims: {', '.join(f'{one.kind} {one.words!r}' for one in found)}" if found else None
    )


def never_said(gold: Gold, rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    """No row has words that the log never contained."""
    said = ((words, next((row for row in rows if by.holds(row.text, words)), None)) for words in gold.never)
    return figure("never said", (f"{words!r} is in {row.id}" if row else None for words, row in said))


def sources(log: Sequence[LogRow], rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    """Every row cites rows of the log that support it, in its words or in others."""
    texts = {row.id: row.text for row in log}
    cited = [(row.text, [texts[source] for source in row.sources if source in texts]) for row in rows]
    in_other_words = ((text, its) for text, its in cited if its and by.share(text, "\n".join(its)) < _SUPPORTED)
    by.meaning.read(each for text, its in in_other_words for each in (text, *its))
    return figure("sources", (_badly_cited(row, texts, by) for row in rows))


def _badly_cited(row: KeptRow, texts: Mapping[str, str], by: Judge) -> str | None:
    if not row.sources:
        return f"{row.id} cites nothing"
    if unknown := [source for source in row.sources if source not in texts]:
        return f"{row.id} cites unknown rows: {', '.join(unknown)}"
    cited = [texts[source] for source in row.sources]
    said = by.share(row.text, "\n".join(cited))
    if said < _SUPPORTED and max(by.meaning.cosine(row.text, text) for text in cited) < BESIDE[by.language]:
        return f"{row.id} has {said:.0%} of its words from what it cites"
    return None


def said_once(rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    """No row repeats another."""
    repeated = {
        second.id: first.id for first, second in combinations(rows, 2) if repeats(first.text, second.text, by.language)
    }
    return figure("said once", (f"{row.id} repeats {repeated[row.id]}" if row.id in repeated else None for row in rows))


def repeats(first: str, second: str, language: Language) -> bool:
    """Whether two texts have nearly the same words."""
    one, other = {*stems(first, language)}, {*stems(second, language)}
    return bool(one | other) and len(one & other) / len(one | other) >= _REPEATS
