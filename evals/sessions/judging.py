"""Verdicts on the facts and rows of a labelled session."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from esker.server.core.records import Priority
from esker.server.core.text.labels import without_label
from esker.server.core.text.tokens import estimate_tokens
from evals.case_files import Language
from evals.scoring.row_scores import repeats
from evals.scoring.text import share, stems
from evals.sessions.alone import not_alone, own_statement, own_words
from evals.sessions.labels import LabelledFact, SessionLabels

FactFate = Literal["kept", "only asked", "missed"]
"""`only asked`: a row names the fact only in the request that a change fulfils."""
_LEAST_REPEATED = 3
"""Minimum distinct words of a row that counts as repeated within a longer one."""

_REQUEST_TOO = 0.8
"""Share of a row's words, those of its request included, that another must have to be repeated by it."""

Worth = Literal["fact", "topic", "junk", "unmatched", "unlabelled"]
"""Of a row that states nothing labelled: its messages are all junk, or state facts that it does not state, or are not
labelled."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A row that an observer wrote, its source messages by number, and whether the next session's pack shows it."""

    id: str
    text: str
    priority: Priority
    messages: tuple[int, ...]
    in_pack: bool = False

    @property
    def tokens(self) -> int:
        """The estimated tokens of its text."""
        return estimate_tokens(self.text)


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """The worth of a row, why it is junk, wrong or not understood alone (None if it is not), and the row it repeats."""

    row: SessionRow
    worth: Worth
    junk: str | None
    wrong: str | None
    not_alone: str | None

    @property
    def is_useful(self) -> bool:
        """Whether it states a fact or a topic, nothing wrong, and nothing that another row states."""
        return self.worth in ("fact", "topic") and not self.wrong and not self.junk


@dataclass(frozen=True, slots=True)
class FactVerdict:
    """The fate of a fact, and the rows that state it (or name it in the request that they fulfil)."""

    fact: LabelledFact
    fate: FactFate
    rows: tuple[SessionRow, ...]


def judge_facts(labels: SessionLabels, rows: Sequence[SessionRow]) -> list[FactVerdict]:
    """Return a verdict on each fact of the labels, in their order."""
    return [_fact_verdict(fact, rows) for fact in labels.facts]


def _fact_verdict(fact: LabelledFact, rows: Sequence[SessionRow]) -> FactVerdict:
    if stating := tuple(row for row in rows if fact.is_stated_by(own_words(row.text))):
        return FactVerdict(fact, "kept", stating)
    if naming := tuple(row for row in rows if fact.is_stated_by(row.text)):
        return FactVerdict(fact, "only asked", naming)
    return FactVerdict(fact, "missed", ())


def judge_rows(labels: SessionLabels, rows: Sequence[SessionRow]) -> list[RowVerdict]:
    """Return a verdict on each row, in their order."""
    return [_row_verdict(labels, row, rows) for row in rows]


def _row_verdict(labels: SessionLabels, row: SessionRow, rows: Sequence[SessionRow]) -> RowVerdict:
    said = own_words(row.text)
    worth = _worth(labels, row, said)
    repeated = next(_repeated(row, rows, labels.language), None)
    reasons = [f"repeats {repeated.id}"] if repeated else []
    reasons += [_why_junk(labels, row)] if worth == "junk" else []
    wrong = next((each.why for each in labels.wrong if each.is_made_by(own_statement(row.text))), None)
    pointing = not_alone(row.text, labels.language) if row.priority != "low" else None
    return RowVerdict(row, worth, "; ".join(reasons) or None, wrong, pointing)


def _worth(labels: SessionLabels, row: SessionRow, said: str) -> Worth:
    if any(fact.is_stated_by(said) for fact in labels.facts):
        return "fact"
    if any(topic.is_stated_by(said) for topic in labels.topics):
        return "topic"
    if row.messages and all(labels.junk.kind_of(message) for message in row.messages):
        return "junk"
    return "unmatched" if labels.worthy.intersection(row.messages) else "unlabelled"


def _why_junk(labels: SessionLabels, row: SessionRow) -> str:
    return ", ".join(f"message {message} is in junk.{labels.junk.kind_of(message)}" for message in row.messages)


def _repeated(row: SessionRow, rows: Sequence[SessionRow], language: Language) -> Iterator[SessionRow]:
    """Yield the rows that a row repeats: earlier ones with nearly its words, and longer ones that have all of them.

    Two changes that fulfil different requests do not repeat each other.
    """
    said = without_label(own_words(row.text))
    words = {*stems(said, language)}
    is_earlier = True
    for other in rows:
        if other is row:
            is_earlier = False
            continue
        other_said = without_label(own_words(other.text))
        is_within = len(words) >= _LEAST_REPEATED and words < {*stems(other_said, language)}
        is_alike = is_earlier and repeats(other_said, said, language)
        if (is_within or is_alike) and share(without_label(row.text), other.text, language) >= _REQUEST_TOO:
            yield other
