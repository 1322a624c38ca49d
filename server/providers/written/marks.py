"""Marks: the signs, words and numbers by which a line tells the priority, category and sources of its fact."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from esker.server.core.records import Category, Priority

SIGNS: dict[str, Priority] = {
    **dict.fromkeys("🔴🟥", "high"),
    **dict.fromkeys("🟡🟠🟨🟧", "medium"),
    **dict.fromkeys("🟢🟩🔵⚪", "low"),
}
DONE_SIGNS = "✅✔☑✓"
ANY_SIGN = f"[{''.join(SIGNS)}{DONE_SIGNS}]"
"""A pattern for one sign of either kind."""

RANKS = "CRITICAL|HIGH|IMPORTANT|MEDIUM|NOTE|INFO|LOW"
"""A pattern for the words that stand for a sign."""


@dataclass(frozen=True, slots=True)
class FactMarks:
    """What marks say about a fact. `keyed`: one is named, as in "priority: high"; `sourced`: so are the sources."""

    priority: Priority | None = None
    category: Category | None = None
    done: bool = False
    sources: tuple[int, ...] = ()
    keyed: bool = False
    sourced: bool = False


_PRIORITY_WORDS: dict[Priority, str] = {
    "high": "critical high 高 高优先级 关键 紧急",
    "medium": "important medium med moderate 中 中优先级 重要",
    "low": "note info low minor 低 低优先级 注意 备注",
}
_CATEGORY_WORDS: dict[Category, str] = {
    "decision": "decision decisions 决定 决策",
    "preference": "preference preferences 偏好",
    "fact": "fact facts 事实",
    "issue": "issue issues 问题",
    "next_step": "next_step 下一步",
    "outcome": "outcome outcomes 结果",
    "state_change": "state_change 状态变化 状态变更",
}
_SPEAKERS = "user assistant agent tool".split()
_VOCABULARY: dict[str, FactMarks] = {
    **{sign: FactMarks(priority=priority) for sign, priority in SIGNS.items()},
    **{word: FactMarks(priority=priority) for priority, words in _PRIORITY_WORDS.items() for word in words.split()},
    **{word: FactMarks(category=category) for category, words in _CATEGORY_WORDS.items() for word in words.split()},
    **dict.fromkeys([*DONE_SIGNS, *"done completed 完成 已完成".split()], FactMarks(done=True)),
    **dict.fromkeys("priority importance category type 优先级 类别".split(), FactMarks(keyed=True)),
    **dict.fromkeys(
        "source sources message messages msg msgs seq seqs 来源 消息".split(), FactMarks(keyed=True, sourced=True)
    ),
    # These name whose message it is: they count beside its number only.
    **dict.fromkeys(_SPEAKERS, FactMarks()),
}
_TWO_WORDS = re.compile(r"\b(next|state)[\s_-](step|change)s?\b")
_JOINT = re.compile(r"\b(?:and|from|see)\b|和|\s[-–—]\s(?=[^\W\d])")
_PART = re.compile(
    r"(?<![\d.])(?<!\d[/:-])(?P<first>\d{1,9})(?:\s?[-–—~]\s?#?(?P<last>\d{1,9}))?(?![\d%]|[./:-]\d)"
    rf"|(?P<word>[^\W\d_]+(?:_[^\W\d_]+)?|{ANY_SIGN})"
)
_FOREIGN = re.compile(r"[^\s,;:、|/&#^='\"\[\]()【】\ufe0f]")
_GLUED = re.compile(r"[^\W\d_]\s?#?\d")
_LONGEST = 200
_LONGEST_RANGE = 50


def read_marks(content: str, *, square: bool = False) -> FactMarks | None:
    """Return what a piece of text says when it is nothing but marks; bare numbers count in square brackets only."""
    if len(content) > _LONGEST:
        return None
    content = _JOINT.sub(",", _plain(content))
    if _FOREIGN.search(_PART.sub("", content)):
        return None
    parts = list(_PART.finditer(content))
    marks = _merged([_part(found) for found in parts])
    if marks is None or (any(found[0] in _SPEAKERS for found in parts) and not marks.sources):
        return None
    if marks.sources and not marks.sourced and (not square or _GLUED.search(content)):
        return None
    return marks if marks.priority or marks.category or marks.done or marks.sources else None


def heading_marks(heading: str) -> FactMarks:
    """Return what a heading such as "User preferences" says about the facts below it, whatever else it says.

    "Facts" is the title of any list, and no category.
    """
    marks = read_marks(heading)
    if marks is None:
        words = [found[0] for found in _PART.finditer(_plain(heading))]
        signs = [vocabulary(word) for word in words if word in SIGNS]
        marks = _merged([*signs, *(FactMarks(category=vocabulary(word).category) for word in words)]) or FactMarks()
    return replace(marks, category=None) if marks.category == "fact" else marks


def vocabulary(word: str) -> FactMarks:
    """Return what a single sign or word in small letters says, if anything."""
    return _VOCABULARY.get(word, FactMarks())


def _plain(content: str) -> str:
    return _TWO_WORDS.sub(r"\1_\2", unicodedata.normalize("NFKC", content).casefold())


def _part(found: re.Match[str]) -> FactMarks | None:
    if found["word"]:
        return _VOCABULARY.get(found["word"])
    first, last = int(found["first"]), int(found["last"] or found["first"])
    return FactMarks(sources=tuple(range(first, last + 1))) if 0 <= last - first < _LONGEST_RANGE else None


def _merged(every: Sequence[FactMarks | None]) -> FactMarks | None:
    """Return marks as one; None when one is unknown or two disagree."""
    known = [marks for marks in every if marks]
    priorities: set[Priority] = {marks.priority for marks in known if marks.priority}
    categories: set[Category] = {marks.category for marks in known if marks.category}
    if len(known) < len(every) or len(priorities) > 1 or len(categories) > 1:
        return None
    return FactMarks(
        priority=next(iter(priorities), None),
        category=next(iter(categories), None),
        done=any(marks.done for marks in known),
        sources=tuple(number for marks in known for number in marks.sources),
        keyed=any(marks.keyed for marks in known),
        sourced=any(marks.sourced for marks in known),
    )
