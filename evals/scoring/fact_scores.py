"""Scores of facts: lasting ones are kept with their meaning, and replaced ones are not stated as current."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date

from esker.server.core.records import Trust
from esker.server.core.text.labels import own_statement, question_and_answer
from esker.server.core.words.lists import words
from evals.case_files import Language
from evals.scoring import cues
from evals.scoring.dates import names_day
from evals.scoring.denials import denials
from evals.scoring.figures import ScoreFigure, figure
from evals.scoring.gold import Atom, FactChange, Gold, LogRow
from evals.scoring.matching import AtomVerdict, Judge, KeptRow
from evals.scoring.text import holds_all, normalised, parts, sentences

_NOISE_WORDS = 0.8
"""Share of the words of noise from which a row that also has all exact words still states it."""
_NOISE_COSINE, _NOISE_LEAD = 0.55, 0.25
"""Cosine from which a part of a row states noise, and the lead that it must have over the nearest lasting fact."""
_NOISE_CHARACTERS = 0.4
"""Share of the characters of noise from which on a part states it, in Chinese and Japanese, which the model knows
poorly."""


def retention(name: str, verdicts: Sequence[AtomVerdict], good: Callable[[AtomVerdict], bool]) -> ScoreFigure:
    """Lasting facts are kept."""
    return figure(name, (None if good(each) else f"{each.fate}: {each.atom.fact} ({each.why})" for each in verdicts))


def supersession(
    changes: Sequence[FactChange], new: Sequence[AtomVerdict], rows: Sequence[KeptRow], by: Judge
) -> ScoreFigure:
    """The current value is kept, and no row states a former one as current."""
    pairs = zip(changes, new, strict=True)
    return figure("supersession", (change_fault(change, verdict, rows, by) for change, verdict in pairs))


def change_fault(change: FactChange, new: AtomVerdict, rows: Sequence[KeptRow], by: Judge) -> str | None:
    """Return the fault of a change, or None; `new` is the verdict on the current value."""
    if not new.kept:
        return f"{new.fate}: {change.new.fact}"
    # A row states neither the question that it answers nor the row that it replaces.
    stating = [replace(row, text=own_statement(question_and_answer(row.text)[1])) for row in rows]
    for place, old in enumerate(change.old):
        now_old = [row for row in stating if not _marks_as_old(old, change.old[:place], change.new, row, by)]
        stated = by.judge(old, now_old)
        if stated.kept:
            return f"stated as current: {stated.statement}"
    return None


def _marks_as_old(old: Atom, older: Sequence[Atom], new: Atom, row: KeptRow, by: Judge) -> bool:
    """Whether every sentence of a row with the old value marks it as old: explicitly, or beside the new one.

    "From the older to the old" marks only the older one.
    """
    marks = [words for words in old.exact if not by.holds(new.fact, words)]
    told = [each for each in (*sentences(row.text), row.text) if all(by.holds(each, words) for words in marks)]
    about = told[:-1] or told  # the whole text if its words are in several sentences
    return all(_sentence_marks_as_old(each, old, older, new, by) for each in about)


def _sentence_marks_as_old(sentence: str, old: Atom, older: Sequence[Atom], new: Atom, by: Judge) -> bool:
    if any(by.holds(sentence, words) for words in new.exact if not by.holds(old.fact, words)):
        return cues.tells_of_change(sentence, by.language) or denials(sentence, by.language) > 0
    if any(by.holds(sentence, words) for atom in older for words in atom.exact if not by.holds(old.fact, words)):
        return False
    more_denied = denials(sentence, by.language) > denials(old.fact, by.language)
    past = cues.is_past(sentence, by.language) or any(
        cues.is_old_value(words, sentence, by.language) for words in old.exact
    )
    return more_denied or past


def noise_gone(gold: Gold, rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    """Noise is gone: no row has its exact words and most others, or paraphrases it."""
    lasting = [atom.fact for atom in gold.lasting()]
    return figure("noise gone", (noise_fault(atom, lasting, rows, by) for atom in gold.noise))


def noise_fault(atom: Atom, lasting: Sequence[str], rows: Sequence[KeptRow], by: Judge) -> str | None:
    """Return which row still states noise, or None; `lasting` are facts that a row may be about instead."""
    for row in rows:
        if holds_all(row.text, atom.exact, by.language) and by.share(atom.fact, row.text) >= _NOISE_WORDS:
            return f"still there: {atom.fact} ({row.id})"
        for said in [part for sentence in sentences(row.text) for part in parts(sentence)]:
            if _paraphrases(atom.fact, said, lasting, by):
                return f"still there: {atom.fact} ({row.id}: {said})"
    return None


def _paraphrases(noise: str, said: str, lasting: Sequence[str], by: Judge) -> bool:
    """Whether a part of a row states noise rather than one of the lasting facts."""
    if by.language in ("zh", "ja"):
        return by.share(noise, said) >= _NOISE_CHARACTERS and by.share(noise, said) > max(
            (by.share(fact, said) for fact in lasting), default=0.0
        )
    near = by.meaning.cosine(noise, said)
    return (
        near >= _NOISE_COSINE
        and near - max((by.meaning.cosine(fact, said) for fact in lasting), default=0.0) >= _NOISE_LEAD
    )


def still_open(verdicts: Sequence[AtomVerdict], by: Judge) -> ScoreFigure:
    """Deferred, planned and limited facts are still stated as such. Lost ones count for retention alone."""
    return figure("still open", (open_fault(each, by.language) for each in verdicts if each.fate != "lost"))


def open_fault(verdict: AtomVerdict, language: Language) -> str | None:
    """Return how a statement misstates an open fact, or None."""
    fact, said = verdict.atom.fact, verdict.statement
    if verdict.fate == "contradicted":
        return f"contradicted: {said}"
    if (cues.is_done(said, language) and not cues.is_done(fact, language)) or cues.has_happened(fact, said, language):
        return f"stated as done: {said}"
    return None if cues.keeps_reservation(fact, said, language) else f"without its reservation: {said}"


def unsettled(atoms: Sequence[Atom], rows: Sequence[KeptRow], by: Judge) -> ScoreFigure:
    """Facts that were only asked, offered, claimed or rejected are not stated as true."""
    return figure("not taken for fact", (unsettled_fault(atom, rows, by) for atom in atoms))


def unsettled_fault(atom: Atom, rows: Sequence[KeptRow], by: Judge) -> str | None:
    """Return which row states an unsettled fact as true, or None."""
    for row in (row for row in rows if holds_all(row.text, atom.exact, by.language)):
        verdict = by.judge(atom, [row])
        if verdict.kept and not _is_qualified(verdict.statement, atom.fact, by.language):
            return f"stated as true: {verdict.statement}"
    return None


def _is_qualified(said: str, fact: str, language: Language) -> bool:
    """Whether a statement has a word for asked, claimed, past or undecided that the fact does not have."""
    if cues.unsettled_cues(said, language) - cues.unsettled_cues(fact, language):
        return True
    return any(cue(said, language) and not cue(fact, language) for cue in (cues.is_past, cues.is_undecided))


def ruling_stands(verdicts: Sequence[AtomVerdict], by: Judge) -> ScoreFigure:
    """Rulings are kept and not withdrawn."""
    return figure("ruling stands", (ruling_fault(each, by.language) for each in verdicts))


def ruling_fault(verdict: AtomVerdict, language: Language) -> str | None:
    """Return how a ruling was lost or withdrawn, or None."""
    if not verdict.kept:
        return f"{verdict.fate}: {verdict.atom.fact}"
    if cues.withdraws(verdict.statement, language) and not cues.withdraws(verdict.atom.fact, language):
        return f"withdrawn or softened: {verdict.statement}"
    return None


def attribution(verdicts: Sequence[AtomVerdict], log: Sequence[LogRow]) -> ScoreFigure:
    """Rows name the right speaker. A row without a speaker or with several is not counted."""
    speakers: dict[str, Trust] = {row.id: row.by for row in log}
    return figure("attribution", _speakers(verdicts, speakers))


def _speakers(verdicts: Sequence[AtomVerdict], speakers: Mapping[str, Trust]) -> Iterator[str | None]:
    for verdict in verdicts:
        right = verdict.atom.by
        if verdict.kept and verdict.row and right and (said := _speaker(verdict.row, speakers)):
            yield None if said == right else f"{right} said it, not {said}: {verdict.atom.fact}"


def _speaker(row: KeptRow, speakers: Mapping[str, Trust]) -> str | None:
    cited = {speakers[source] for source in row.sources if source in speakers}
    if len(cited) > 1:
        return None
    return row.by or _named(row.text) or next(iter(cited), None)


_SPEAKERS = {who: re.compile("|".join(words(f"scores.speakers.{who}"))) for who in ("user", "assistant", "tool")}


def _named(text: str) -> str | None:
    """Return the speaker of a row by its first words."""
    return next((who for who, named in _SPEAKERS.items() if named.match(normalised(text))), None)


def dates(verdicts: Sequence[AtomVerdict]) -> ScoreFigure:
    """The row of a fact has its day, in its text or in its times."""
    return figure("dates", _days(verdicts))


def _days(verdicts: Sequence[AtomVerdict]) -> Iterator[str | None]:
    for verdict in verdicts:
        if verdict.kept and verdict.row and (day := verdict.atom.dated):
            yield None if _tells_day(verdict.row, day) else f"{day} is missing: {verdict.statement}"


def _tells_day(row: KeptRow, day: date) -> bool:
    return names_day(row.text, day) or any(moment.date() == day for moment in (row.at, *row.refers) if moment)
