"""Written facts: what one line says, and what the lines below it add, with marks, times and citations taken out."""

import re
from dataclasses import dataclass, field
from datetime import date, time
from functools import partial

from esker.server.core.records import Category, Priority
from esker.server.providers.written.lines import WrittenLine, unquoted
from esker.server.providers.written.marks import ANY_SIGN, RANKS, SIGNS, FactMarks, read_marks, vocabulary
from esker.server.providers.written.moments import read_moment


@dataclass(frozen=True, slots=True)
class WrittenFact:
    """One fact as it was written.

    `sources` are the message numbers that it cites, unchecked. `day` and `clock` are local to the session: the date of
    the line or of the header above it, and the time at the beginning of the line.
    """

    text: str
    priority: Priority = "medium"
    category: Category | None = None
    done: bool = False
    sources: tuple[int, ...] = ()
    day: date | None = None
    clock: time | None = None


@dataclass(slots=True)
class FactDraft:
    """A fact while its lines are being read. `section` is what the heading above it says."""

    parts: list[str] = field(default_factory=list[str])
    priority: Priority | None = None
    category: Category | None = None
    done: bool = False
    sources: dict[int, None] = field(default_factory=dict[int, None])
    day: date | None = None
    clock: time | None = None
    section: FactMarks = field(default_factory=FactMarks)

    def add(self, marks: FactMarks) -> None:
        """Take what marks say, as far as it is not known yet."""
        self.priority = self.priority or marks.priority
        self.category = self.category or marks.category
        self.done |= marks.done
        self.sources |= dict.fromkeys(marks.sources)

    def has(self, marks: FactMarks) -> bool:
        """Tell whether everything of the kind of some marks is known already, so that they are about another fact."""
        kinds = ((self.priority, marks.priority), (self.category, marks.category), (self.sources, marks.sources))
        return all(known or not said for known, said in kinds)

    @property
    def introduces(self) -> bool:
        """Tell whether more must follow."""
        return bool(self.parts) and self.parts[-1].endswith((":", "："))

    def append(self, line: WrittenLine) -> None:
        """Add a detail from below the fact, or the rest of a line that was wrapped. A lone number is a source."""
        if _NUMBER.fullmatch(line.text):
            self.sources[int(line.text)] = None
            return
        text = line.text
        if not self.parts and (name := _NAME_HEAD.match(text)):
            text = text[name.end() :].strip()
        if (sign := _SIGN_HEAD.match(text)) and sign[1] in SIGNS:
            text = text[sign.end() :].strip()
        text = _take_citations(self, text)
        wrapped = not (line.bullet or line.arrow or line.marked)
        between = "" if not self.parts else " " if wrapped or self.introduces else "; "
        self.parts.append(between + unquoted(text))

    def fact(self) -> WrittenFact:
        """Return the fact, with what the heading says where the fact itself says nothing."""
        return WrittenFact(
            text="".join(self.parts).strip(),
            priority=self.priority or self.section.priority or "medium",
            category=self.category or self.section.category,
            done=self.done or self.section.done,
            sources=tuple(self.sources),
            day=self.day,
            clock=self.clock,
        )


def read_fact(text: str) -> FactDraft:
    """Return what one line says."""
    draft = FactDraft()
    for _ in range(_MOST_HEADS):
        end = _take_head(draft, text)
        if not end:
            break
        behind = _BEHIND_HEAD.match(text, end)
        text = text[behind.end() if behind else end :]
    text = _take_tail(draft, text.strip())
    text = _take_citations(draft, text)
    if sign := _LAST_SIGN.search(text, max(0, len(text) - 4)):
        draft.add(vocabulary(sign[1]))
        text = text[: sign.start()].rstrip()
    draft.parts = [unquoted(text)] if text else []
    return draft


# Fields of the schema, as a model writes them that keeps its words but not its JSON

_KEYS = r"priority|importance|category|type|sources?|source[ _]messages?|messages?|msgs?|优先级|类别|来源|消息"
_KEYED = re.compile(rf"(?:{_KEYS})\s?[:：=]", re.IGNORECASE)
# Fields that a written fact has no place for: told when set, left out when not.
_OTHER_KEYS = r"refers[ _]from|refers[ _]to|valid[ _]until|tags"
_UNSET = re.compile(rf"(?:{_KEYS}|{_OTHER_KEYS})\s?[:：=]\s?(?:null|none|n/a|\[\]|-)?\s?$", re.IGNORECASE)
_OTHER = re.compile(rf"(?:{_OTHER_KEYS})\s?[:：=]", re.IGNORECASE)


def is_field(text: str) -> bool:
    """Tell whether a line names a field that marks tell, such as "Priority: high"."""
    return bool(_KEYED.match(text))


def is_unset_field(text: str) -> bool:
    """Tell whether a line is a field without a value."""
    return bool(_UNSET.match(text))


def is_other_field(text: str) -> bool:
    """Tell whether a line is a field that can only be told as a detail of the fact."""
    return bool(_OTHER.match(text))


# The beginning of a line

_SQUARE = r"[\[【［][^\[\]【】［］]{0,160}[\]】］]"
_ROUND = r"[(（][^()（）]{1,160}[)）]"
_CHECKBOX = re.compile(r"\[([ xX])\]")
_SIGN_HEAD = re.compile(rf"({ANY_SIGN})\ufe0f?")
_SQUARE_HEAD = re.compile(rf"({_SQUARE})(?!\()")
_ROUND_HEAD = re.compile(rf"({_ROUND})")
_WORD_HEAD = re.compile(
    r"((?:(?:priority|importance|category|type)\s?[:：=]\s?)?[^\W\d_][\w ,/&()\[\]-]{0,40}?)"
    r"(?:\s?[:：]|\s[|–—-](?=\s))",
    re.IGNORECASE,
)
_RESTATED = re.compile(rf"({RANKS})(?: PRIORITY)?(?=\s)")
_NAME_HEAD = re.compile(
    r"(?:(?:text|content|observation|description|statement)\s?#?\d{0,3}|fact\s?#?\d{1,3})\s?[:：]", re.IGNORECASE
)
_BEHIND_HEAD = re.compile(r"\s*(?:[:：|·,]|[-–—]{1,2}(?=\s))?\s*")
_MOST_HEADS = 10


def _take_head(draft: FactDraft, text: str) -> int:
    """Take the mark at the beginning of a line into the draft; return where it ends, 0 when there is none."""
    if moment := read_moment(text):
        draft.day, draft.clock = draft.day or moment.day, draft.clock or moment.clock
        return moment.end
    if name := _NAME_HEAD.match(text):
        return name.end()
    for pattern, square in ((_SIGN_HEAD, False), (_SQUARE_HEAD, True), (_ROUND_HEAD, False), (_WORD_HEAD, False)):
        found = pattern.match(text)
        if found and (marks := read_marks(found[1], square=square)):
            draft.add(marks)
            return found.end()
    if checkbox := _CHECKBOX.match(text):
        draft.done |= checkbox[1] in "xX"
        return checkbox.end()
    restated = _RESTATED.match(text)
    return restated.end() if restated and vocabulary(restated[1].casefold()).priority == draft.priority else 0


# The end of a line, and citations anywhere in it

_TAIL = 200
_TAIL_KEY = re.compile(rf"(?<![\w(（\[【])(?:{_KEYS})\s?[:：=]", re.IGNORECASE)
_CITED = re.compile(
    r"(?P<code>`[^`]{1,300}`)|\s{0,3}(?:(?<![A-Za-z0-9_\])])|(?=[【［（]))"
    rf"(?:(?P<square>{_SQUARE}(?:[\s,;]{{0,3}}{_SQUARE}){{0,20}})(?!\()|(?P<round>{_ROUND}))"
)
_FOLLOWED = re.compile(rf"\s{{0,4}}(?:[.,;。，；!！\[【(（]|{ANY_SIGN}|$)")
_AT_END = re.compile(r"\s{0,4}[.。]?\s{0,4}$")
_LAST_SIGN = re.compile(rf"\s?({ANY_SIGN})\ufe0f?$")
_NUMBER = re.compile(r"[0-9]{1,9}")


def _take_tail(draft: FactDraft, text: str) -> str:
    """Take what stands at the end without brackets, such as "Priority: high | Sources: 3, 5"; return the rest."""
    for key in _TAIL_KEY.finditer(text, max(0, len(text) - _TAIL)):
        tail = text[key.start() :]
        balanced = all(tail.count(opening) == tail.count(closing) for opening, closing in ("()", "[]", "（）"))
        if balanced and key.start() and (marks := read_marks(tail.rstrip(" .。"))):
            draft.add(marks)
            return text[: key.start()].rstrip(" \t|;,–—-")
    return text


def _take_citations(draft: FactDraft, text: str) -> str:
    """Take the messages that a text cites; return it without those that end a sentence or part of one."""
    rest = _CITED.sub(partial(_take_citation, draft), text).strip()
    return rest.rstrip(" \t,;|–—-") if rest != text.strip() else rest


def _take_citation(draft: FactDraft, found: re.Match[str]) -> str:
    if found["code"]:
        return found[0]
    marks = read_marks(found["square"] or found["round"], square=bool(found["square"]))
    if marks is None:
        return found[0]
    if marks.priority or marks.category or marks.done:
        # A lone word such as "(high)" may be the sentence's own.
        clear = found["square"] or marks.keyed or marks.sources or (marks.priority and marks.category)
        if not clear or not _AT_END.match(found.string, found.end()):
            return found[0]
    draft.add(marks)
    return "" if _FOLLOWED.match(found.string, found.end()) else found[0]
