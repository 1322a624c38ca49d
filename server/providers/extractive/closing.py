"""Reads what an agent reports in a turn: findings and causes, what was changed, and what is left.

Each telling statement becomes a row that names its subject: by its heading or list, by the sentence before it, or else
by the request that the turn fulfils. Short items of one list become one row together.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.facts.records import Fact
from esker.server.core.records import Category, Memory
from esker.server.core.text import labels
from esker.server.core.text.terms import terms
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.advice import is_remedy, without_procedures, without_remedy
from esker.server.providers.extractive.sentences import CODE_FENCE, clip, split_sentences, word_count
from esker.server.providers.extractive.statements import BRACKETED, Statement, statements
from esker.server.providers.extractive.tools import changed_files
from esker.server.providers.extractive.weighing import content_words, leans, names, stands_alone, weight

Kind = Literal["found", "done", "open", "proposed"]

# Minimum weight of a statement that is kept, of one that gets medium priority, and of one before the end of a turn, in
# the first answer to the request and elsewhere.
_TELLING, _IMPORTANT, _ANSWERING, _IN_PASSING = 2, 4, 3, 4
# Minimum weight of a proposal that the user agreed to.
_PROPOSED = 1
# Minimum weight of a statement whose subject only the request names.
_LEANING = 4
# A report of more words gives more rows, up to a maximum.
_FEWEST, _WORDS_PER_ROW, _MOST, _MOST_AROUND_CODE = 3, 40, 10, 3
# Maximum rows of a message before the end of a turn, and of an answer that the agent gives after some work.
_MOST_IN_PASSING, _MOST_AFTER_WORK = 4, 2
# Maximum characters of an item that is put into one row with its neighbours, and of such a row.
_LONGEST_ITEM, _LONGEST_ROW = 120, 320
# Maximum characters of a sentence before and of a request that are put beside a statement.
_LONGEST_BEFORE, _LONGEST_REQUEST = 160, 120
# Minimum words of a sentence that is a report.
_SHORTEST = 3
# Minimum names of an instruction that also says how something works ("change `modelSize` in config.json").
_EXPLAINING = 2
# A message offers to go ahead in its last sentences.
_LAST_WORDS = 2
# Minimum share of the terms of a row that another row must have to tell it as well, that an outcome must have to close
# an open end, and that a newer open end must have to replace it: a newer list of what is left replaces the one before.
_TOLD, _FULFILLED, _STILL_OPEN = 0.8, 0.6, 0.25
# Minimum later messages with outcomes that pass over an open end.
_PASSED_OVER = 5
_FIGURE = re.compile(r"\d[\d.,:]*")
# Words in brackets at the end of a text, and five or more words in brackets, which state something of their own.
_IN_BRACKETS = re.compile(r"(?<=\S)\s*[(（][^()（）]*[)）][.:：]?$")
_ASIDE = re.compile(r"\((?:[^()\s]+\s+){5,}[^()\s]+\)")
_LABELLED = re.compile(r"\w+[:：]")
# A file or folder, and the target of a link to it.
_FILE = re.compile(
    r"`?[\w./@~-]*[\w\])]\.[A-Za-z]\w{0,4}`?(?![\w.])|`?[\w.@~-]+/[\w./*\[\]@~-]*`?|\([^()\s]*/[^()\s]*\)"
)
# Words that exports of transcripts put in place of a call, a list of tasks or an older part.
_TRANSCRIBED = re.compile(r"\[?(?i:tool use|agent task list|compacted history)\b")
_ARROW = re.compile(r"→|->|=>")
_ROWS: dict[Kind, tuple[str, Category]] = {
    "found": (labels.FOUND, "fact"),
    "done": (labels.OUTCOME, "outcome"),
    "open": (labels.LEFT_OPEN, "next_step"),
}


@dataclass(frozen=True, slots=True)
class _Report:
    """A statement of a report: its words, the words above it that name its subject, its kind and weight."""

    text: str
    above: str
    kind: Kind
    weight: int
    is_item: bool
    has_heading: bool
    is_discovery: bool
    in_plan: bool

    @property
    def whole(self) -> str:
        return f"{self.above}: {self.text}" if self.above else self.text


def closing_message(work: Sequence[StoredMessage]) -> StoredMessage | None:
    """Return the message that ends a turn: the assistant's last words, if no tool is called after them."""
    for message in reversed(work):
        if message.role != "assistant":
            continue
        if any(block.get("type") == "tool_use" for block in message.content):
            return None
        if spoken(message.content):
            return message
    return None


def reported_facts(
    work: Sequence[StoredMessage], request: str | None, asked_by: int | None, *, shows_error: bool = False
) -> list[Fact]:
    """Return the facts that an agent reports in a turn; `asked_by` is the number of the message with the request.

    The closing message is read whole. Of the messages before it only what weighs most is kept, first of all the direct
    answer to the request, or to the error that the user pasted without one (`shows_error`): the first message that
    reports anything. Temporary work is not kept.
    """
    closing = closing_message(work)
    wanted = [said for said in split_sentences(request or "") if not cues.asks(said)]
    temporary = any(map(cues.TEMPORARY.search, wanted))
    answers = bool(request) or shows_error
    changes = any(path for message in work for path in changed_files(message))
    facts: list[Fact] = []
    for place, message in enumerate([each for each in work if each.role == "assistant" and spoken(each.content)]):
        told = [
            each
            for each in _reports(message, changes=changes, is_note=message is not closing)
            if each.kind != "proposed"
        ]
        reports = _grouped([each for each in told if not (temporary and _is_change(each))])
        if message is closing:
            best = _best(reports, *_limits(message, request))
        else:
            most = _MOST_AFTER_WORK if answers and place else _MOST_IN_PASSING
            least = _ANSWERING if answers else _IN_PASSING
            best = _best([report for report in reports if _is_lasting(report, least)], most, least)
        answers = answers and not reports
        facts += [_fact(message, report, request, asked_by) for report in best]
    return facts


def _is_change(report: _Report) -> bool:
    """Whether a report tells what was changed: it is done, or an item without a cause."""
    return report.kind == "done" or (report.is_item and not cues.CAUSE.search(report.text))


def proposals(message: StoredMessage) -> list[str]:
    """Return the telling statements of a message that propose something, those that weigh most first."""
    proposed = [report for report in _reports(message) if report.kind == "proposed" and report.weight >= _PROPOSED]
    return [report.whole for report in sorted(proposed, key=lambda report: -report.weight)]


def _is_lasting(report: _Report, least: int) -> bool:
    """Whether a statement before the end of a turn is sure and lasting.

    It explains something, has a heading, or answers the request (`least` is lower then).
    """
    if cues.ANNOUNCEMENT.search(report.text):
        return False
    explains = report.is_discovery or cues.CAUSE.search(report.text) or cues.EFFECT.search(report.text)
    return not cues.GUESS.search(report.text) and bool(explains or report.has_heading or least == _ANSWERING)


def _limits(message: StoredMessage, request: str | None) -> tuple[int, int]:
    """Return the maximum rows of a closing message and their minimum weight.

    Of the words around code that the user wanted to see, only what weighs much is kept.
    """
    if request and _is_mostly_code(spoken(message.content)) and cues.MOMENTARY.search(cues.order(request)):
        return _MOST_AROUND_CODE, _IMPORTANT
    return min(_MOST, _FEWEST + word_count(spoken(message.content)) // _WORDS_PER_ROW), _TELLING


def _is_mostly_code(text: str) -> bool:
    """Whether more than half of the characters of a text are in blocks of code."""
    in_code, code = False, 0
    for line in text.splitlines():
        in_code ^= bool(CODE_FENCE.match(line))
        code += len(line) * in_code
    return 2 * code > len(text)


def _best(reports: Sequence[_Report], most: int, least: int) -> list[_Report]:
    """Return the reports that weigh at least `least`, at most `most` of them, in their order."""
    telling = [place for place, report in enumerate(reports) if report.weight >= least]
    chosen = sorted(telling, key=lambda place: -reports[place].weight)[:most]
    return [reports[place] for place in sorted(chosen)]


def _reports(message: StoredMessage, *, changes: bool = False, is_note: bool = False) -> list[_Report]:
    """Return the reports in a message; in one that asks to go ahead, all behind its first proposal is proposed.

    If the turn changes no file, the remedy that a statement names is only proposed. So is one that begins a statement
    of a note (`is_note`), which was written before the end of the turn.
    """
    said = list(without_procedures(statements(spoken(message.content))))
    if changes and is_note:
        said = [each for each in said if not is_remedy(each)]
    reports = [report for each in said if (report := _report(each if changes else without_remedy(each)))]
    proposed = next((place for place, report in enumerate(reports) if report.in_plan), len(reports))
    if not any(cues.OFFER.search(each.text) and _is_question(each.text) for each in said[-_LAST_WORDS:]):
        return reports
    return [
        replace(report, kind="proposed") if place > proposed and report.is_item else report
        for place, report in enumerate(reports)
    ]


def _report(said: Statement) -> _Report | None:
    """Return what a statement reports, or None if it only announces, offers or instructs."""
    text = cues.OPENING.sub("", BRACKETED.sub(r"\1", said.text)).strip()
    if (word_count(text) < _SHORTEST and not said.is_item) or _is_question(text):
        return None
    if any(cue.search(text) for cue in (cues.OFFER, cues.PARTING, cues.OBEYS)):
        return None
    kind = _kind(said, text)
    if text.endswith((":", "：")) and kind != "done":
        return None
    text = text.rstrip(":： ")
    orders = kind == "found" and not said.is_item and cues.REQUEST.search(text) and not _LABELLED.match(text)
    says_nothing = orders or cues.PASSING.search(text) or _instructs(text) or _introduces_steps(said)
    if _is_heading(text) or any(map(_TRANSCRIBED.match, (text, said.topic))) or (kind != "proposed" and says_nothing):
        return None
    above = _above(said, text)
    if (kind == "done" and _only_files(text)) or (kind == "found" and not above and _only_names(text)):
        return None
    if not above and said.before and leans(text) and _goes_on(said.before):
        before = cues.OPENING.sub("", said.before).strip()
        kind = "open" if kind == "found" and _kind(said, before) == "open" else kind
        text = f"{before} {text}"
    points = weight(f"{above}: {text}" if above else text) - bool(cues.GUESS.search(text))
    points -= 2 * any(map(cues.HEADING_FORMER.search, (text, said.topic, *said.headings[-1:])))
    points += (kind in ("done", "open")) + bool(cues.NEXT_STEP.search(text))
    if (leans(text) and not above and points < _LEANING) or (cues.GUESS.search(text) and points < _IMPORTANT):
        return None
    in_plan = kind == "proposed" and any(map(cues.HEADING_PROPOSED.search, said.headings))
    return _Report(
        text, above, kind, points, said.is_item, bool(said.headings), bool(cues.DISCOVERY.search(said.text)), in_plan
    )


def _is_heading(text: str) -> bool:
    """Whether a text has no words, or only those of a heading of what is left: "Next steps (optional)"."""
    return not any(map(str.isalnum, cues.HEADING_OPEN.sub("", _IN_BRACKETS.sub("", text))))


def _only_files(text: str) -> bool:
    """Whether a text is a list of files; one under "Files changed" says nothing of the change."""
    return bool(_FILE.search(text)) and not content_words(_FILE.sub(" ", text)) and not _ARROW.search(text)


def _only_names(text: str) -> bool:
    """Whether a text has names and nothing that is said of them."""
    for name in names(text):
        text = text.replace(name, " ")
    return not content_words(text) and not _ARROW.search(text)


def _instructs(text: str) -> bool:
    """Whether a text announces what the agent does now, or tells the reader what to do."""
    if not text:
        return False
    if cues.ANNOUNCEMENT.search(text):
        return not cues.CONDITION.search(text)
    return bool(cues.ADDRESS.search(text)) and len(set(names(text))) < _EXPLAINING


def _is_question(text: str) -> bool:
    """Whether a text is a question; agents write the mark, and "When a run fails, …" is not one."""
    return text.rstrip(' :：*"”)」』）').endswith(("?", "？", "؟"))


def _introduces_steps(said: Statement) -> bool:
    """Whether the introduction or the heading of a statement tells the reader what to do."""
    above = (said.topic, *said.headings[-1:])
    return any(_instructs(each) and not cues.HEADING_DONE.search(each) for each in above)


def _goes_on(before: str) -> bool:
    """Whether a sentence can name the subject of the next."""
    return len(before) <= _LONGEST_BEFORE and not cues.ANNOUNCEMENT.search(before) and not cues.asks(before)


def _kind(said: Statement, text: str) -> Kind:
    """Return the kind of a statement: by its own words, else by its heading and introduction."""
    above = f"{' '.join(said.headings[-1:])} {said.topic}"
    tells_done = cues.HEADING_DONE.match(said.topic or " ".join(said.headings[-1:]))
    if said.is_item and cues.WOULD.search(said.topic) and not cues.HEADING_OPEN.search(above):
        return "proposed"
    if (cues.HEADING_OPEN.search(above) and not tells_done) or cues.NEXT_STEP.search(_ASIDE.sub("", _masked(text))):
        return "open"
    if _is_proposed(said, text):
        return "proposed"
    outcome = cues.OUTCOME.search(text)
    if outcome and not cues.is_not_done(text[: outcome.end()]):
        return "done"
    opening = said.text[: len(said.text) - len(text)]
    is_done = cues.HEADING_DONE.match(text) or cues.HEADING_DONE.search(f"{opening} {above}")
    return "done" if is_done else "found"


def _is_proposed(said: Statement, text: str) -> bool:
    """Whether a statement proposes: by a heading that it is under, its introduction, its lead or its own words."""
    lead = re.split("[:：]", text, maxsplit=1)[0]
    above = (*said.headings, said.topic, said.columns, lead if lead != text else "")
    asked = any("?" in each or "？" in each for each in above)
    proposes = any(cues.HEADING_PROPOSED.search(each) and not cues.HEADING_DONE.search(each) for each in above)
    return asked or proposes or bool(cues.WOULD.search(text))


def _masked(text: str) -> str:
    """Return a text with its names replaced, so that a file called TODO.md is not a word."""
    for name in names(text):
        if not cues.HEADING_OPEN.fullmatch(name):
            text = text.replace(name, "X")
    return text


def _above(said: Statement, text: str) -> str:
    """Return the introduction or heading that names the subject of a statement; empty if its own words do."""
    for above in (said.topic, *said.headings[:-2:-1]):
        above = cues.OPENING.sub("", f"{above}.").rstrip(".")
        if above and not cues.HEADING_GENERAL.search(above) and not {*terms(above)} <= {*terms(text)}:
            return above
    return ""


def _grouped(some: Sequence[_Report]) -> list[_Report]:
    """Return reports with the short items of one list joined; a list of mostly done items was done."""
    joined: list[_Report] = []
    for (is_item, _, is_open), group in groupby(some, key=lambda each: (each.is_item, each.above, each.kind == "open")):
        items = list(group)
        done = sum(item.kind == "done" for item in items)
        if is_item and not is_open and 2 * done > len(items):
            items = [replace(item, kind="done") for item in items]
        joined += _joined(items) if is_item else items
    return joined


def _joined(items: Sequence[_Report]) -> Iterator[_Report]:
    """Yield items, those that are short joined as far as one row holds them."""
    row: _Report | None = None
    for item in items:
        fits = len(item.text) <= _LONGEST_ITEM and item.weight >= 0
        if row and fits and len(row.whole) + len(item.text) <= _LONGEST_ROW:
            row = replace(row, text=f"{row.text.rstrip('.')}; {item.text}", weight=_together(row, item))
            continue
        if row:
            yield row
        row = item if fits else None
        if not fits:
            yield item
    if row:
        yield row


def _together(row: _Report, item: _Report) -> int:
    """Return the weight of an item together with the row before it: two telling ones weigh more than each."""
    both = row.weight >= _TELLING and item.weight >= _TELLING
    return max(row.weight, item.weight, _IMPORTANT if both else 0)


def _fact(message: StoredMessage, report: _Report, request: str | None, asked_by: int | None) -> Fact:
    label, category = _ROWS[report.kind]
    said = _masked(report.whole)
    is_cause = report.kind == "found" and bool(cues.CAUSE.search(said) or cues.ISSUE.search(said))
    alone = stands_alone(report.whole)
    purpose = "" if alone or not request else f"{labels.PURPOSE}{clip(request, _LONGEST_REQUEST)}"
    return Fact(
        content=f"{label}: {report.whole}{purpose}",
        priority="medium" if report.weight >= _IMPORTANT and (alone or purpose) else "low",
        category="issue" if is_cause else category,
        trust="assistant",
        source_seqs=(asked_by, message.seq) if purpose and asked_by else (message.seq,),
        said_at=message.sent_at,
    )


def still_telling(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield the facts that no later fact of the list tells more fully, and the open ends that none reports as done.

    An open end of the agent that many later reports pass over is no longer open.
    """
    marks = [_marks(fact.content) for fact in facts]
    for place, fact in enumerate(facts):
        if not _is_passed_over(fact, facts[place + 1 :]) and not any(
            _is_told(fact, marks[place], other, its)
            for other, its in zip(facts, marks, strict=True)
            if other is not fact
        ):
            yield fact


def _is_passed_over(fact: Fact, later: Sequence[Fact]) -> bool:
    """Whether a fact is an open end of the agent, and many of its later messages report what was done."""
    if fact.category != "next_step" or fact.trust != "assistant":
        return False
    reports = {other.source_seqs[-1] for other in later if other.category == "outcome" and other.trust == "assistant"}
    return len(reports) >= _PASSED_OVER


def _marks(content: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of a row's own statement, and its names and figures; what it quotes is told elsewhere."""
    text = labels.own_statement(content)
    return frozenset(terms(text)), frozenset((*names(text), *_FIGURE.findall(text)))


def _is_told(
    fact: Fact, marks: tuple[frozenset[str], frozenset[str]], other: Fact, its: tuple[frozenset[str], frozenset[str]]
) -> bool:
    """Whether the other fact makes this one superfluous; a user's words are only told by a user's."""
    words, named = marks
    if fact.trust == "user" or not words:
        return False
    shared = len(words & its[0]) / len(words)
    later = (other.source_seqs[-1], its[0] >= words) >= (fact.source_seqs[-1], False)
    if fact.category == "next_step" and other.source_seqs[-1] > fact.source_seqs[-1] and _closes(other, words):
        return True
    return shared >= _TOLD and named <= its[1] and len(its[0]) > len(words) and later


def with_closed_ends(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts, each with the open end among the session's earlier rows that it reports as done or lists again.

    Once many reports have passed over an open end, the next outcome replaces it.
    """
    ends = {row.id: _marks(row.content) for row in previous if row.category == "next_step" and row.trust == "assistant"}
    closed: list[Fact] = []
    reports: set[int] = set()
    for fact in facts:
        end = next((name for name, marks in ends.items() if _closes(fact, marks[0])), None)
        if fact.category == "outcome" and fact.trust == "assistant":
            reports.add(fact.source_seqs[-1])
            end = end or (next(iter(ends), None) if len(reports) >= _PASSED_OVER else None)
        if end:
            del ends[end]
            fact = replace(fact, replaces=end)
        closed.append(fact)
    return closed


def _closes(fact: Fact, end: frozenset[str]) -> bool:
    """Whether a fact reports an open end with these terms as done, or belongs to a newer list of what is left."""
    if fact.trust != "assistant" or fact.category not in ("next_step", "outcome") or not end:
        return False
    return len(end & _marks(fact.content)[0]) / len(end) >= (_FULFILLED if fact.category == "outcome" else _STILL_OPEN)
