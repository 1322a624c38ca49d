"""Scores of facts: what should be there is, as it was meant, and what should not hold any more does not."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date

from evals.case_files import Language
from evals.scoring import cues
from evals.scoring.dates import names_day
from evals.scoring.figures import Figure, figure
from evals.scoring.gold import Atom, Change
from evals.scoring.matching import Judge, Left, Verdict
from evals.scoring.text import holds_all, sentences

_STILL_THERE = 0.8
"""How many of the words of a fact, beside all that is exact, stand in a row that still says it."""


def retention(name: str, verdicts: Sequence[Verdict], good: Callable[[Verdict], bool]) -> Figure:
    """What should be there can still be known."""
    return figure(name, (None if good(each) else f"{each.fate}: {each.atom.fact} ({each.why})" for each in verdicts))


def supersession(changes: Sequence[Change], new: Sequence[Verdict], left: Sequence[Left], by: Judge) -> Figure:
    """What holds now is there, and no row says what held before as though it still did."""
    pairs = zip(changes, new, strict=True)
    return figure("supersession", (_of_change(change, verdict, left, by) for change, verdict in pairs))


def _of_change(change: Change, new: Verdict, left: Sequence[Left], by: Judge) -> str | None:
    if not new.kept:
        return f"{new.fate}: {change.new.fact}"
    for place, old in enumerate(change.old):
        now_old = [row for row in left if not _tells_of_change(old, change.old[:place], change.new, row, by)]
        stated = by.judge(old, now_old)
        if stated.kept:
            return f"as though it still held: {stated.statement}"
    return None


def _tells_of_change(old: Atom, older: Sequence[Atom], new: Atom, row: Left, by: Judge) -> bool:
    """Tell whether every sentence of a row that has the old says that it is old: in so many words, or beside the new.

    "From the older to the old" says that of the older alone.
    """
    marks = [words for words in old.exact if not by.holds(new.fact, words)]
    about = [each for each in sentences(row.text) if all(by.holds(each, words) for words in marks)]
    return all(_calls_it_old(each, old, older, new, by) for each in about)


def _calls_it_old(sentence: str, old: Atom, older: Sequence[Atom], new: Atom, by: Judge) -> bool:
    if any(by.holds(sentence, words) for words in new.exact if not by.holds(old.fact, words)):
        return True
    if any(by.holds(sentence, words) for atom in older for words in atom.exact if not by.holds(old.fact, words)):
        return False
    more_denied = cues.denials(sentence, by.language) > cues.denials(old.fact, by.language)
    return more_denied or cues.is_past(sentence, by.language)


def noise_gone(noise: Sequence[Atom], left: Sequence[Left], by: Judge) -> Figure:
    """What mattered to nobody is gone: no row has all that is exact of it and most of its other words."""
    return figure("noise gone", (_still_there(atom, left, by) for atom in noise))


def _still_there(atom: Atom, left: Sequence[Left], by: Judge) -> str | None:
    for row in left:
        if holds_all(row.text, atom.exact, by.language) and by.share(atom.fact, row.text) >= _STILL_THERE:
            return f"still there: {atom.fact} ({row.id})"
    return None


def still_open(verdicts: Sequence[Verdict], by: Judge) -> Figure:
    """What was put off, planned or limited still reads as that. What is lost counts for retention alone."""
    return figure("still open", (_turned(each, by.language) for each in verdicts if each.fate != "lost"))


def _turned(verdict: Verdict, language: Language) -> str | None:
    fact, said = verdict.atom.fact, verdict.statement
    if verdict.fate == "contradicted":
        return f"turned around: {said}"
    if cues.is_done(said, language) and not cues.is_done(fact, language):
        return f"turned into done: {said}"
    if any(cue(fact, language) and cue(said, language) for cue in (cues.is_open, cues.is_limited)):
        return None
    return f"without its reservation: {said}"


def unsettled(atoms: Sequence[Atom], left: Sequence[Left], by: Judge) -> Figure:
    """What was only asked, offered, claimed or turned down does not read as though it held."""
    return figure("not taken for fact", (_taken_for_fact(by.judge(atom, left), by.language) for atom in atoms))


def _taken_for_fact(verdict: Verdict, language: Language) -> str | None:
    said = verdict.statement
    if not verdict.kept or any(cue(said, language) for cue in (cues.is_unsettled, cues.is_past, cues.is_open)):
        return None
    return f"taken for a fact: {said}"


def ruling_stands(verdicts: Sequence[Verdict]) -> Figure:
    """What somebody ruled still stands."""
    return figure("ruling stands", (None if each.kept else f"{each.fate}: {each.atom.fact}" for each in verdicts))


def attribution(verdicts: Sequence[Verdict]) -> Figure:
    """Rows go back to who said it. A row that does not tell who counts for nothing."""
    return figure("attribution", _speakers(verdicts))


def _speakers(verdicts: Sequence[Verdict]) -> Iterator[str | None]:
    for verdict in verdicts:
        if verdict.kept and verdict.row and verdict.atom.by and (said := verdict.row.by or _named(verdict.row.text)):
            right = verdict.atom.by
            yield None if said == right else f"{right} said it, not {said}: {verdict.atom.fact}"


def _named(text: str) -> str | None:
    """Return who said a row by its first words."""
    first = text.split(" ", 1)[0].strip(":,").casefold()
    return {"user": "user", "assistant": "assistant", "agent": "assistant", "tool": "tool"}.get(first)


def dates(verdicts: Sequence[Verdict]) -> Figure:
    """The day of a fact can be told from its row: from its text or from its times."""
    return figure("dates", _days(verdicts))


def _days(verdicts: Sequence[Verdict]) -> Iterator[str | None]:
    for verdict in verdicts:
        if verdict.kept and verdict.row and (day := verdict.atom.dated):
            yield None if _tells_day(verdict.row, day) else f"{day} is not told: {verdict.statement}"


def _tells_day(row: Left, day: date) -> bool:
    return names_day(row.text, day) or any(moment.date() == day for moment in (row.at, *row.refers) if moment)
