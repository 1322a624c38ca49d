"""Notes: lines of an answer, each read in the light of the headers and of the fact above it."""

from collections.abc import Iterator, Sequence
from datetime import date

from esker.server.core.text.terms import says_something
from esker.server.providers.written.facts import (
    FactDraft,
    WrittenFact,
    is_field,
    is_other_field,
    is_unset_field,
    read_fact,
)
from esker.server.providers.written.lines import WrittenLine, shown
from esker.server.providers.written.marks import FactMarks, heading_marks, read_marks
from esker.server.providers.written.moments import day_in, is_date_header
from esker.server.providers.written.remarks import is_json, says_nothing

_LONGEST_HEADING = 80


class Notes:
    """What the lines read so far say. In a text that is no more than a list, a line without a bullet is prose.

    `preamble` is what stands before the first item, `prose` whether any line is no item, `said_nothing` whether a line
    says that there is nothing.
    """

    def __init__(self, *, lists_only: bool, listed: bool) -> None:
        """Begin. `listed` says that some line will have a bullet, so that a bold line without one is a heading."""
        self._lists_only = lists_only
        self._listed = listed
        self._drafts: list[FactDraft] = []
        self._top: FactDraft | None = None
        self._indent = 0
        self._day: date | None = None
        self._section = FactMarks()
        self.preamble: list[str] = []
        self.prose = False
        self.said_nothing = False

    @property
    def empty(self) -> bool:
        """Tell whether there is nothing but headers, prose beside a list, and the word that there is nothing."""
        return not self._drafts

    def facts(self) -> Iterator[WrittenFact]:
        """Yield what says something. A line that ends with a colon and has no details is a heading."""
        for draft in self._drafts:
            fact = draft.fact()
            if says_something(fact.text) and not draft.introduces and not is_json(fact.text):
                yield fact

    def read(self, line: WrittenLine) -> None:
        """Read the next line."""
        if not (self._drafts or line.bullet or line.marked):
            self.preamble.append(line.text)
        steps = (self._date, self._heading, self._nothing, self._field, self._detail, self._prose)
        if not any(step(line) for step in steps):
            self._open(read_fact(line.text), line)

    def _date(self, line: WrittenLine) -> bool:
        if not is_date_header(line.text):
            return False
        self._day, self._top = day_in(line.text), None
        return True

    def _heading(self, line: WrittenLine) -> bool:
        text = line.text.lstrip("#").strip()
        if len(text) > _LONGEST_HEADING or is_field(text):
            return False
        marks = read_marks(text)
        titled = line.text.startswith(("# ", "##")) or (line.bold and self._listed and not line.marked)
        introduces = text.endswith((":", "：")) and not line.marked
        if not (marks or titled or introduces) or (not marks and line.bullet):
            return False
        self._section, self._top = heading_marks(text), None
        self._day = day_in(text) or self._day
        return True

    def _nothing(self, line: WrittenLine) -> bool:
        said = says_nothing(line.text)
        self.said_nothing |= said
        return said

    def _field(self, line: WrittenLine) -> bool:
        """Give "Priority: high" on a line of its own to the fact above, else to a new one whose text follows."""
        if is_unset_field(line.text):
            return True
        marks = read_marks(line.text) if is_field(line.text) else None
        if marks is None:
            return False
        about = self._top
        if about is None or about.has(marks):
            about = self._open(FactDraft(), line)
        about.add(marks)
        return True

    def _detail(self, line: WrittenLine) -> bool:
        top = self._top
        if top is None or not self._is_below(top, line):
            return False
        top.append(line)
        return True

    def _is_below(self, top: FactDraft, line: WrittenLine) -> bool:
        if line.arrow or is_other_field(line.text):
            return True
        if line.indent >= self._indent + 2:
            # A mark below a line without one: that line was a topic, this is a fact.
            return not (line.ranked and top.parts and top.priority is None)
        return top.introduces and not (line.bullet or line.marked)

    def _prose(self, line: WrittenLine) -> bool:
        if not self._lists_only or line.bullet or line.marked:
            return False
        self._top, self.prose = None, True
        return True

    def _open(self, draft: FactDraft, line: WrittenLine) -> FactDraft:
        draft.day = draft.day or self._day
        draft.section = self._section
        self._drafts.append(draft)
        self._top, self._indent = draft, line.indent
        return draft


def read_notes(lines: Sequence[str], *, lists_only: bool) -> Notes:
    """Read the lines of an answer; `lists_only`, nothing but items of a list are facts."""
    every = list(shown(lines))
    notes = Notes(lists_only=lists_only, listed=any(line.bullet or line.marked for line in every))
    for line in every:
        notes.read(line)
    return notes
