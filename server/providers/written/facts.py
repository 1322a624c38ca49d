"""Written facts: what one line of text says, with its priority, category and citations taken out."""

import re
import unicodedata
from dataclasses import dataclass, field, replace
from typing import get_args

from esker.server.core.records import Category, Priority


@dataclass(frozen=True, slots=True)
class WrittenFact:
    """One fact as it was written. `sources` are the message numbers that it cites, unchecked."""

    text: str
    priority: Priority = "medium"
    category: Category | None = None
    done: bool = False
    sources: tuple[int, ...] = ()


_MOST_SOURCES = 100


@dataclass(frozen=True, slots=True)
class FactMarks:
    """The properties that marks give a fact. `keyed`: with the name of a field, as in "priority: high"."""

    priority: Priority | None = None
    category: Category | None = None
    done: bool = False
    sources: tuple[int, ...] = ()
    keyed: bool = False

    def __or__(self, other: "FactMarks") -> "FactMarks":
        """Return both; where they disagree, the first counts."""
        return FactMarks(
            self.priority or other.priority,
            self.category or other.category,
            self.done or other.done,
            tuple(dict.fromkeys((*self.sources, *other.sources)))[:_MOST_SOURCES],
            self.keyed or other.keyed,
        )


# Marks

_PRIORITIES: dict[str, Priority] = {
    **dict.fromkeys(("🔴", "critical", "high"), "high"),
    **dict.fromkeys(("🟡", "important", "medium"), "medium"),
    **dict.fromkeys(("🟢", "note", "info", "low"), "low"),
}
_DONE = ("✅", "done", "completed")
_CATEGORIES: tuple[Category, ...] = get_args(Category)
_VOCABULARY = {
    **{word: FactMarks(priority=priority) for word, priority in _PRIORITIES.items()},
    **{word: FactMarks(category=category) for category in _CATEGORIES for word in (category, f"{category}s")},
    **dict.fromkeys(_DONE, FactMarks(done=True)),
}
_SIGN = "[🔴🟡🟢✅]"
_SEPARATOR = re.compile(r"[,;|/、&\[\]()【】]|\band\b")
KEYS = "priority|importance|category|type|sources?|messages?|msgs?"
_PART = re.compile(
    r"(?:(?P<key>priority|importance|category|type)\s?[:=]\s?|(?P<cites>sources?|messages?|msgs?)\s?[:=]?\s?)?"
    r"(?:\#?(?P<first>\d{1,9})(?:\s?[-–—]\s?\#?(?P<last>\d{1,9}))?"
    rf"|(?P<sign>{_SIGN})?\s?(?P<word>[a-z_ -]{{0,30}}))"
)
_LONGEST = 200
_LONGEST_RANGE = 50
_LONGEST_NUMBER = 10


def read_marks(content: str, *, square: bool = False) -> FactMarks | None:
    """Return the fields in a piece of text that consists of marks alone; bare numbers count in square brackets only."""
    if len(content) > _LONGEST:
        return None
    marks, cites = FactMarks(), square
    plain = unicodedata.normalize("NFKC", content).casefold().replace("\ufe0f", "").rstrip(" .:。")
    for part in (part.strip(" *_.") for part in _SEPARATOR.split(plain)):
        found = _PART.fullmatch(part)
        if not found:
            return None
        cites = cites or bool(found["cites"])
        read = _numbers(found, cites) if found["first"] else _words(found)
        if read is None:
            return None
        marks |= replace(read, keyed=bool(found["key"] or found["cites"]))
    return marks if marks.priority or marks.category or marks.done or marks.sources else None


def _numbers(found: re.Match[str], cites: bool) -> FactMarks | None:
    first, last = int(found["first"]), int(found["last"] or found["first"])
    return FactMarks(sources=tuple(range(first, last + 1))) if cites and 0 <= last - first < _LONGEST_RANGE else None


def _words(found: re.Match[str]) -> FactMarks | None:
    sign = _VOCABULARY[found["sign"]] if found["sign"] else FactMarks()
    word = re.sub("[ -]", "_", found["word"].strip().removesuffix(" priority"))
    return sign if not word else sign | _VOCABULARY[word] if word in _VOCABULARY else None


def heading_marks(heading: str) -> FactMarks:
    """Return the fields that a heading such as "User preferences" gives to the facts below it."""
    words = re.findall(rf"{_SIGN}|[a-z]+(?:[ _-](?:steps?|changes?))?", heading.casefold())
    found = FactMarks()
    for word in words:
        found |= _VOCABULARY.get(re.sub("[ -]", "_", word), FactMarks())
    # "Facts" is the title of any list.
    return replace(found, category=None) if found.category == "fact" else found


# A line

_SQUARE = r"[\[【][^\[\]【】]{0,160}[\]】]"
_ROUND = r"[(（][^()（）]{1,160}[)）]"
_HEADS = (
    (re.compile(rf"({_SIGN})\ufe0f?"), False),
    (re.compile(r"\*\*([^*]{1,40})\*\*[:：]?"), True),
    (re.compile(rf"({_SQUARE})(?!\()"), True),
    (re.compile(rf"({_ROUND})"), False),
    (re.compile(r"([A-Za-z][\w ,/()-]{0,40}?)\s?[:：](?=\s|$)"), False),
)
_CHECKBOX = re.compile(r"\[([ xX])\]")
_TIME = re.compile(r"[(（\[]\d{1,2}[:：]\d{2}[)）\]]|\d{1,2}:\d{2} [-–—|]")
_NAME = re.compile(r"(?:\*\*)?(?:text|fact \d{1,3}|observation \d{1,3})\s?[:：](?:\*\*)?", re.IGNORECASE)
_BEHIND_HEAD = re.compile(r"\s*(?:[:：|]|[-–—](?=\s))?\s*")
_MOST_HEADS = 8
_TAIL = 200
_TAIL_KEY = re.compile(rf"(?<![\w(（\[【])(?:{KEYS})\s?[:：=]", re.IGNORECASE)
_CITED = re.compile(
    rf"(?P<code>`[^`]{{1,300}}`)|\s{{0,3}}(?<![A-Za-z0-9_])(?:(?P<square>{_SQUARE})(?!\()|(?P<round>{_ROUND}))"
)
_FOLLOWED = re.compile(r"\s{0,3}(?:[.,;。，；！!\[【(（✅]|$)")
_AT_END = re.compile(rf"(?:\s{{0,3}}{_SQUARE})?\s{{0,3}}[.。]?$")
_EMPHASIS = re.compile(
    r"(?P<code>`[^`]{1,300}`)|(?<![\w*/])\*\*(?=[^\s/*])(?P<inner>[^*]{1,1000})(?<=[^\s/])\*\*(?![\w*/])"
)


@dataclass(slots=True)
class FactDraft:
    """A fact while its lines are being read."""

    parts: list[str] = field(default_factory=list[str])
    marks: FactMarks = field(default_factory=FactMarks)
    indent: int = 0

    def add(self, detail: str, *, wrapped: bool) -> None:
        """Add a line from below the fact; a number alone is a source."""
        if detail.isdecimal() and len(detail) < _LONGEST_NUMBER:
            self.marks |= FactMarks(sources=(int(detail),))
            return
        between = " " if wrapped or self.parts[-1].endswith((":", "：")) else "; "
        self.parts.append(between + self._without_citations(detail))

    def fact(self, section: FactMarks) -> WrittenFact:
        """Return the fact, with what the heading above it says where the fact itself says nothing."""
        marks = self.marks | section
        return WrittenFact("".join(self.parts), marks.priority or "medium", marks.category, marks.done, marks.sources)

    def read(self, text: str) -> None:
        """Take the marks out of the first line and keep the rest."""
        whole = _EMPHASIS.fullmatch(text)
        text = whole["inner"] or text if whole else text
        for _ in range(_MOST_HEADS):
            end = self._take_head(text)
            if not end:
                break
            text = text[_behind(text, end) :]
        text = self._without_citations(self._without_tail(text))
        self.parts += [text] if text else []

    def _take_head(self, text: str) -> int:
        """Take the mark with which a text begins; return where it ends, 0 when there is none."""
        if unmarked := _TIME.match(text) or _NAME.match(text):
            return unmarked.end()
        if checkbox := _CHECKBOX.match(text):
            self.marks |= FactMarks(done=checkbox[1] != " ")
            return checkbox.end()
        for pattern, square in _HEADS:
            if (found := pattern.match(text)) and (marks := read_marks(found[1], square=square)):
                self.marks |= marks
                return found.end()
        return 0

    def _without_tail(self, text: str) -> str:
        """Take the fields at the end without brackets, such as "Priority: high | Sources: 3, 5"; return the rest."""
        for key in _TAIL_KEY.finditer(text, max(1, len(text) - _TAIL)):
            tail = text[key.start() :]
            if tail.count("(") == tail.count(")") and (marks := read_marks(tail)):
                self.marks |= marks
                return text[: key.start()].rstrip(" \t|;,–—-")
        return text

    def _without_citations(self, text: str) -> str:
        """Take the messages that a text cites; return it without emphasis and the citations that end a clause."""
        text = _CITED.sub(self._take_citation, text)
        text = _EMPHASIS.sub(lambda found: found["code"] or found["inner"], text).strip()
        if text.endswith("✅"):
            self.marks |= FactMarks(done=True)
            text = text.removesuffix("✅").rstrip()
        return text

    def _take_citation(self, found: re.Match[str]) -> str:
        marks = None if found["code"] else read_marks(found["square"] or found["round"], square=bool(found["square"]))
        if marks is None:
            return found[0]
        labels = marks.priority or marks.category or marks.done
        # A lone word such as "(high)" may be the sentence's own.
        if labels and not ((found["square"] or marks.keyed) and _AT_END.match(found.string, found.end())):
            return found[0]
        self.marks |= marks
        return "" if _FOLLOWED.match(found.string, found.end()) else found[0]


def _behind(text: str, end: int) -> int:
    found = _BEHIND_HEAD.match(text, end)
    return found.end() if found else end
