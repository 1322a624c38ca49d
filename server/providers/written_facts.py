"""Facts that a language model wrote as text: in tags, or as a list.

Small models know the shape of notes better than that of JSON. What they write is read line by line: marks at the
beginning of a line, what the line cites, date headers and headings above it, details below it. Every expression is
bounded, since a model can be made to write anything.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from functools import partial

from server.core.json_input import clean_text
from server.core.records import Category, Priority
from server.core.terms import says_something


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


@dataclass(frozen=True, slots=True)
class Written:
    """A whole answer. `nothing` says that it plainly finds nothing worth keeping: an answer, not a failure."""

    facts: tuple[WrittenFact, ...]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None
    nothing: bool = False


def read_written(text: str) -> Written | None:
    """Return the facts of an answer in tagged text, else of one that is a list; None when it is neither."""
    elements = _elements(_answer(clean_text(text)))
    outside, slots = _without_slots(elements.outside)
    if elements.observations is None:
        found = _read_list(outside)
    else:
        inside, more = _without_slots(_item_lines(elements.observations))
        slots |= more
        found = _read_observations(inside, whole=not elements.cut_off)
    if found is None:
        return None
    slots |= elements.slots
    return Written(
        facts=found,
        current_task=_slot(slots.get("current")),
        suggested_continuation=_slot(slots.get("suggested")),
        thread_title=_slot(slots.get("thread")),
        nothing=not found,
    )


def _read_observations(lines: list[str], *, whole: bool) -> tuple[WrittenFact, ...] | None:
    """Return the facts of an observations element; none only when it is whole and says that there are none."""
    if _JSON.match("\n".join(lines[:20])):
        return None
    reader = _read(lines, lists_only=False)
    facts = _distinct(reader.facts())
    if not facts:
        return facts if whole and reader.empty else None
    return None if all(_ADDRESSED.match(fact.text) for fact in facts) else facts


def _read_list(lines: list[str]) -> tuple[WrittenFact, ...] | None:
    """Return the facts of a list, none when the text says no more than that there are none."""
    reader = _read(lines, lists_only=True)
    if reader.empty and reader.said_nothing and not reader.prose:
        return ()
    if any(_REFUSAL.search(line) for line in reader.preamble):
        return None
    facts = _distinct(fact for fact in reader.facts() if not _ADDRESSED.match(fact.text))
    return facts if any(_is_statement(fact.text) for fact in facts) else None


def _distinct(facts: Iterable[WrittenFact]) -> tuple[WrittenFact, ...]:
    """Return the facts without repeats: a small model that loops writes the same line for pages."""
    return tuple(dict.fromkeys(facts))


def _is_statement(text: str) -> bool:
    if text.rstrip("\"'”’») ").endswith(("?", "？")):
        return False
    return len(_WORDS.findall(text)) >= 2 or len(_CJK.findall(text)) >= 4


# The answer and its elements

_JSON = re.compile(r"\s*(?:```\w{0,20}\s*)?[\[{]\s*[\"{]")
_WORDS = re.compile(r"\w+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_THOUGHT = re.compile(r"\s*(?:```\w{0,20}\s*)?[<\[](think|thinking|thought|reasoning)[>\]]", re.IGNORECASE)
# Templates that open the thought in the prompt leave only its end in the answer.
_END_OF_THOUGHT = re.compile(r"(?:</|\[/)think(?:ing)?[>\]][ \t]{0,20}$", re.IGNORECASE | re.MULTILINE)
_SPECIAL_TOKENS = re.compile(r"(?:(?:<\|\w{1,30}\|>|</s>|<end_of_turn>|\[/INST\])\s{0,9}){1,9}$")
_SPEAKER = re.compile(
    r"\s*(?:\*\*)?(?:assistant|observer|answer|output|response|ai|助手)(?:\*\*)?\s?[:：](?:\*\*)?", re.IGNORECASE
)
_SLOT_NAME = r"current[-_ ]?task|suggested[-_ ]?(?:response|continuation)|thread[-_ ]?title"
# In backticks a tag is spoken of, not used.
_TAG = re.compile(
    rf"(?<!`)<(/?)(observations|facts|{_SLOT_NAME})(?:\s[^<>]{{0,400}})?(?<!/)>|<(observations)\s?/>", re.IGNORECASE
)
_ITEM_TAG = re.compile(r"<(/?)(observation[-_]groups?|observation|fact)(\s[^<>]{0,400})?>\s{0,200}", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"\b(\w{1,20})\s?=\s?[\"']([^\"'<>]{1,80})[\"']")
_SENTENCE_END = re.compile(r"(?:[.!?…。！？][\"'”’»)\]*`]{0,4}|[\]】]|```)$")


def _answer(text: str) -> str:
    """Return an answer without the thinking before it and the tokens of a chat template around it."""
    text = text.rpartition("<|message|>")[2].replace("\u00a0", " ").replace("\u202f", " ")
    text = re.sub("[\ufeff\u200b\u2060]", "", text)
    if thought := _THOUGHT.match(text):
        end = re.search(rf"[<\[]/{thought[1]}[>\]]", text, re.IGNORECASE)
        text = text[end.end() :] if end else ""
    else:
        text = text[max((end.end() for end in _END_OF_THOUGHT.finditer(text)), default=0) :]
    text = text.rstrip()
    text = text[:-_TAIL] + _SPECIAL_TOKENS.sub("", text[-_TAIL:])
    speaker = _SPEAKER.match(text)
    return text[speaker.end() :] if speaker else text


@dataclass(slots=True)
class _Elements:
    """The parts of an answer. `observations` is None when there is no such element, `cut_off` when it never ends."""

    outside: str = ""
    observations: str | None = None
    slots: dict[str, str] = field(default_factory=dict[str, str])
    cut_off: bool = False


def _elements(text: str) -> _Elements:
    """Return the parts of an answer by its tags, those that were never closed included."""
    parts: dict[str, list[str]] = {"": []}
    tags = list(_TAG.finditer(text))
    last_close = max((tag.start() for tag in tags if tag[1] and not _slot_key(tag[2])), default=0)
    inside, outer, at = "", "", 0
    for tag in tags:
        parts[inside].append(text[at : tag.start()])
        at = tag.end()
        name = _slot_key(tag[2] or "") or "observations"
        if tag[1]:
            inside, outer = (outer if name == inside != "observations" else ""), ""
        elif tag[3]:
            parts.setdefault("observations", [])
        else:
            # A task amid the observations interrupts them; behind the last of them it ends them.
            outer = inside if inside == "observations" and tag.start() < last_close else ""
            inside = name
            parts.setdefault(name, []).append("\n")
    return _gathered(parts, inside, text[at:])


def _gathered(parts: dict[str, list[str]], inside: str, rest: str) -> _Elements:
    parts[inside].append(_whole_lines(rest) if inside else rest)
    text = {name: "".join(pieces) for name, pieces in parts.items()}
    outside = text.pop("")
    observations = text.pop("observations", None)
    if observations is None:
        observations, outside = _loose_items(outside)
    return _Elements(outside, observations, text, cut_off=inside == "observations")


def _slot_key(name: str | None) -> str:
    """Return which slot a tag or label names, "" when it names none."""
    return next((key for key in ("current", "suggested", "thread") if (name or "").casefold().startswith(key)), "")


def _whole_lines(text: str) -> str:
    """Return what was cut off without its last line, unless that ends like a sentence."""
    text = text.rstrip()
    return text if _SENTENCE_END.search(text, max(0, len(text) - 8)) else text.rpartition("\n")[0]


def _loose_items(text: str) -> tuple[str | None, str]:
    """Return the span of `<observation>` elements that nothing encloses, and the text around it."""
    tags = list(_ITEM_TAG.finditer(text))
    opening = next((tag.start() for tag in tags if not tag[1]), None)
    closing = next((tag.end() for tag in reversed(tags) if tag[1]), 0)
    if opening is None or closing < opening:
        return None, text
    return text[opening:closing], f"{text[:opening]}\n{text[closing:]}"


def _item_lines(text: str) -> str:
    """Return text in which every `<observation>` is a list item, its attributes written as marks."""
    return _ITEM_TAG.sub(_item_line, text)


def _item_line(tag: re.Match[str]) -> str:
    if tag[1] or "group" in tag[2].casefold():
        # What follows a group's tag is a line of its own, with the indentation that it had.
        return "\n" + tag[0].rpartition("\n")[2].rpartition(">")[2]
    marks = [f"[{key}: {value}]" for key, value in _ATTRIBUTE.findall(tag[3] or "") if _label(f"{key}: {value}")]
    moments = [f"({value})" for _, value in _ATTRIBUTE.findall(tag[3] or "") if _BRACKETED.match(f"({value})")]
    return "\n- " + " ".join([*marks, *moments, ""])


# Task, continuation and title

_SLOT_LINE = re.compile(rf"[\s>*_#+-]{{0,20}}({_SLOT_NAME})[\s*_]{{0,6}}(?:[:：][\s*_]{{0,6}}(.*))?$", re.IGNORECASE)


def _without_slots(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the lines of a text without those such as "Current task: …", and what these say."""
    rest: list[str] = []
    slots: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in text.splitlines():
        if label := _SLOT_LINE.match(line):
            value = (label[2] or "").strip()
            slots[_slot_key(label[1])] = said = [value] if value else []
            current = None if value else said
        elif current is not None and not _ends_slot(line, current):
            current.append(line)
        else:
            current = None
            rest.append(line)
    return rest, {key: "\n".join(said) for key, said in slots.items()}


def _ends_slot(line: str, said: list[str]) -> bool:
    """Tell whether a line below a label is no longer what it says: a heading, or a blank line after something."""
    heading = line.lstrip().startswith("#") or line.rstrip(" *_").endswith((":", "："))
    return heading or (not line.strip() and any(map(str.strip, said)))


def _slot(said: str | None) -> str | None:
    lines = [_line(raw).text for raw in (said or "").splitlines() if not _MARKUP.fullmatch(raw.strip())]
    value = _unquoted("\n".join(line for line in lines if line))
    return value if says_something(value) and not _says_nothing(value) else None


# Lines

_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "#39": "'"}
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|#39);")
_MARKS: dict[str, Priority] = {
    **dict.fromkeys("🔴🟥", "high"),
    **dict.fromkeys("🟡🟠🟨🟧", "medium"),
    **dict.fromkeys("🟢🟩🔵⚪", "low"),
}
_DONE_MARKS = "✅✔☑✓"
_ANY_MARK = f"[{''.join(_MARKS)}{_DONE_MARKS}]"
# Code keeps its stars. What stands before or behind a star tells a glob or `**kwargs` from emphasis.
_EMPHASIS = re.compile(
    r"(?P<code>`[^`]{1,300}`)"
    r"|(?<![A-Za-z0-9_*/])(?P<stars>\*{2,3})(?=[^\s/])(?P<inner>[^*]++)(?<=[^\s/])(?P=stars)(?![A-Za-z0-9_*/])"
)
_WRAPPED = re.compile(r"([*_]{1,3})(?=[^\s/.])([^*_]++)(?<=[^\s/])\1$")
_BULLET = re.compile(
    r"[•●◦▪‣·⁃■]\s*"
    rf"|[-*+–—](?:\s+|(?={_ANY_MARK}|\[[ xX]?\]))"
    r"|\(?\d{1,3}(?:[.)）](?:\s+|(?=[^\x00-\x7f]))|[、．]\s*)"
)
_ARROW = re.compile(r"(?:[→⇒↳➜➔]|[├└][─-]{0,3}|[-=]{1,2}>)\s*")
_RANKED = re.compile(
    rf"[{''.join(_MARKS)}]|(?:CRITICAL|HIGH|IMPORTANT|MEDIUM|NOTE|INFO|LOW)(?: PRIORITY)?\s?[:：]"
    r"|[\[【](?i:critical|high|important|medium|note|info|low)[\]】]"
)
_MARKED = re.compile(rf"[{_DONE_MARKS}]|DONE\s?[:：]|\[(?i:x|done)\]|(?i:fact|observation) ?#?\d{{1,3}}\s?[:：]")
# A fence, a tag or a ruler alone on its line.
_MARKUP = re.compile(r"(?:```[\w-]{0,20}|~~~\w{0,20}|</?[A-Za-z][\w:-]{0,40}(?:\s[^<>]{0,400})?>|[-=*_ ]{1,200})?")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without bullet and emphasis. `bold` says that all of it was emphasised."""

    text: str
    indent: int = 0
    bullet: bool = False
    arrow: bool = False
    bold: bool = False

    @property
    def ranked(self) -> bool:
        """Tell whether it begins with a priority."""
        return bool(_RANKED.match(self.text))

    @property
    def marked(self) -> bool:
        """Tell whether it is a fact by its looks, also without a bullet."""
        return self.ranked or bool(_MARKED.match(self.text))


def _line(raw: str) -> _Line:
    raw = _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], raw)
    text = raw.strip()
    if quote := re.match(r"(?:>\s?){1,3}(?=\S)", text):
        raw = text = text[quote.end() :]
    indent = sum(4 if character == "\t" else 1 for character in raw[: len(raw) - len(raw.lstrip())])
    emphasised = _EMPHASIS.fullmatch(text.rstrip(":：")) or _WRAPPED.match(text)
    text = _unwrapped(_EMPHASIS.sub(_plain, text))
    bare = text
    for _ in range(2):
        bullet = _BULLET.match(bare)
        bare = bare[bullet.end() :] if bullet else bare
    arrow = _ARROW.match(bare)
    bare = bare[arrow.end() :] if arrow else bare
    return _Line(_unwrapped(bare), indent, bare != text and not arrow, bool(arrow), bool(emphasised))


def _plain(match: re.Match[str]) -> str:
    """Return what was emphasised; a label at the beginning of a line gets the colon that its emphasis stood for."""
    if match["code"]:
        return match[0]
    inner, behind = match["inner"], match.string[match.end() : match.end() + 3]
    leads = match.start() < 16 and not any(character.isalpha() for character in match.string[: match.start()])
    if leads and behind.startswith(" ") and behind.strip()[:1] not in "-–—:：|" and _label(inner, square=True):
        return inner if inner.endswith((":", "：")) else f"{inner}:"
    return inner


def _unwrapped(text: str) -> str:
    wrapped = _WRAPPED.match(text)
    return wrapped[2] if wrapped else text


def _unquoted(text: str) -> str:
    for opening, closing in ('""', "“”"):
        inner = text[1:-1]
        if text.startswith(opening) and text.endswith(closing) and opening not in inner and closing not in inner:
            return inner.strip()
    return text


# Labels


@dataclass(frozen=True, slots=True)
class _Label:
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
_WORD_LABELS: dict[str, _Label] = {
    **{mark: _Label(priority=priority) for mark, priority in _MARKS.items()},
    **{word: _Label(priority=priority) for priority, words in _PRIORITY_WORDS.items() for word in words.split()},
    **{word: _Label(category=category) for category, words in _CATEGORY_WORDS.items() for word in words.split()},
    **dict.fromkeys([*_DONE_MARKS, *"done completed 完成 已完成".split()], _Label(done=True)),
    **dict.fromkeys("priority importance category type 优先级 类别".split(), _Label(keyed=True)),
    **dict.fromkeys(
        "source sources message messages msg msgs seq seqs 来源 消息".split(), _Label(keyed=True, sourced=True)
    ),
    # These name whose message it is: they count beside its number only.
    **dict.fromkeys(_SPEAKERS, _Label()),
}
_TWO_WORDS = re.compile(r"\b(next|state)[\s_-](step|change)s?\b")
_JOINT = re.compile(r"\b(?:and|from|see)\b|和|\s[-–—]\s(?=[^\W\d])")
_PART = re.compile(
    r"(?<![\d.])(?<!\d[/:-])(?P<first>\d{1,9})(?:\s?[-–—~]\s?#?(?P<last>\d{1,9}))?(?![\d%]|[./:-]\d)"
    rf"|(?P<word>[^\W\d_]+(?:_[^\W\d_]+)?|{_ANY_MARK})"
)
_FOREIGN = re.compile(r"[^\s,;:、|/&#^='\"\[\]()【】\ufe0f]")
_GLUED = re.compile(r"[^\W\d_]\s?#?\d")
_LONGEST_LABEL = 200
_LONGEST_RANGE = 50


def _label(content: str, *, square: bool = False) -> _Label | None:
    """Return what a piece of text says when it is nothing but marks; bare numbers count in square brackets only."""
    if len(content) > _LONGEST_LABEL:
        return None
    content = unicodedata.normalize("NFKC", content).casefold()
    content = _JOINT.sub(",", _TWO_WORDS.sub(r"\1_\2", content))
    if _FOREIGN.search(_PART.sub("", content)):
        return None
    parts = list(_PART.finditer(content))
    label = _merged([_part(found) for found in parts])
    if label is None or (any(found[0] in _SPEAKERS for found in parts) and not label.sources):
        return None
    if label.sources and not label.sourced and (not square or _GLUED.search(content)):
        return None
    return label if label.priority or label.category or label.done or label.sources else None


def _loose_label(heading: str) -> _Label:
    """Return the category and the mark in a heading such as "User preferences", whatever else it says."""
    content = _TWO_WORDS.sub(r"\1_\2", unicodedata.normalize("NFKC", heading).casefold())
    words = [found[0] for found in _PART.finditer(content)]
    marks = [_vocabulary(word) for word in words if word in _MARKS]
    return _merged([*marks, *(_Label(category=_vocabulary(word).category) for word in words)]) or _Label()


def _general(label: _Label) -> _Label:
    """Return a heading's label: "Facts" is the title of any list."""
    return replace(label, category=None) if label.category == "fact" else label


def _part(found: re.Match[str]) -> _Label | None:
    if found["word"]:
        return _WORD_LABELS.get(found["word"])
    first, last = int(found["first"]), int(found["last"] or found["first"])
    return _Label(sources=tuple(range(first, last + 1))) if 0 <= last - first < _LONGEST_RANGE else None


def _vocabulary(word: str) -> _Label:
    return _WORD_LABELS.get(word, _Label())


def _merged(labels: Sequence[_Label | None]) -> _Label | None:
    """Return labels as one; None when one is unknown or two disagree."""
    known = [label for label in labels if label]
    priorities: set[Priority] = {label.priority for label in known if label.priority}
    categories: set[Category] = {label.category for label in known if label.category}
    if len(known) < len(labels) or len(priorities) > 1 or len(categories) > 1:
        return None
    return _Label(
        priority=next(iter(priorities), None),
        category=next(iter(categories), None),
        done=any(label.done for label in known),
        sources=tuple(number for label in known for number in label.sources),
        keyed=any(label.keyed for label in known),
        sourced=any(label.sourced for label in known),
    )


# Dates and times

_MONTHS: Sequence[str] = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_WEEKDAY = r"(?:(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\.?|(?:星期|周)[一二三四五六日天])"
_DAY_TEXT = (
    r"(?:\d{4}\s?[-－/.年]\s?\d{1,2}\s?[-－/.月]\s?\d{1,2}日?"
    rf"|{_MONTH}\s{{1,3}}\d{{1,2}}(?:st|nd|rd|th)?,?\s{{1,3}}\d{{4}}"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\.?\s{{1,3}}(?:of\s)?{_MONTH},?\s{{1,3}}\d{{4}})(?!\d)"
)
_CLOCK_TEXT = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2})?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_CLOCK = re.compile(r"(?P<hour>\d{1,2})[:：](?P<minute>\d{2})(?:[:：]\d{2})?(?:\s?(?P<half>[AaPp])\.?[Mm])?")
_MOMENT = (
    rf"(?:{_WEEKDAY}[,，]?\s?)?(?P<day>{_DAY_TEXT})?[,，T\s]{{0,3}}(?:at\s)?"
    rf"(?P<hour>{_CLOCK_TEXT}(?:\s?[-–—~～]\s?{_CLOCK_TEXT})?)?"
)
_BRACKETED = re.compile(rf"[(（\[【]\s?{_MOMENT}\s?[)）\]】]", re.IGNORECASE)
_BARE = re.compile(rf"{_MOMENT}\s?(?:[-|](?=\s)|[–—]|:(?=\s)|：)(?!\s?\d{{1,4}}[-:：/.年])", re.IGNORECASE)
_DATE_HEADER = re.compile(
    rf"(?:{_WEEKDAY}[,，]?\s?)?{_DAY_TEXT}(?:[,，]?\s?[(（]?{_WEEKDAY})?"
    rf"|(?:date|日期)\s?[:：]\s?(?:(?:{_WEEKDAY}[,，]?\s?)?{_DAY_TEXT}[^-–—:：|]{{0,20}}|\D{{0,20}})",
    re.IGNORECASE,
)
_DAY = re.compile(_DAY_TEXT, re.IGNORECASE)
_DECORATION = " \t#*_=-–—[]()【】（）:：>📅🗓\ufe0f"


def _day(text: str) -> date | None:
    """Return the first date in a text."""
    found = _DAY.search(text)
    if not found:
        return None
    numbers = [int(number) for number in re.findall(r"\d+", found[0])]
    month = re.search(_MONTH, found[0], re.IGNORECASE)
    if month:
        year, day = max(numbers), min(numbers)
        numbers = [year, _MONTHS.index(month[0][:3].casefold()) + 1, day]
    try:
        return date(*numbers)
    except ValueError:
        return None


def _clock(found: re.Match[str]) -> time | None:
    parts = _CLOCK.match(found["hour"] or "")
    if not parts:
        return None
    hour, minute = int(parts["hour"]), int(parts["minute"])
    if half := parts["half"]:
        hour = hour % 12 + (12 if half in "pP" else 0)
    return time(hour, minute) if hour < 24 and minute < 60 else None


# One fact

_KEYS = r"priority|importance|category|type|sources?|source[ _]messages?|messages?|msgs?|优先级|类别|来源|消息"
_KEYED = re.compile(rf"(?:{_KEYS})\s?[:：=]", re.IGNORECASE)
# Fields of the schema that a written fact has no place for: told when set, left out when not.
_OTHER_KEYS = r"refers[ _]from|refers[ _]to|valid[ _]until|tags"
_UNSET = re.compile(rf"(?:{_KEYS}|{_OTHER_KEYS})\s?[:：=]\s?(?:null|none|n/a|\[\]|-)?\s?$", re.IGNORECASE)
_OTHER = re.compile(rf"(?:{_OTHER_KEYS})\s?[:：=]", re.IGNORECASE)
_TAIL_KEY = re.compile(rf"(?<![\w(（\[【])(?:{_KEYS})\s?[:：=]", re.IGNORECASE)
_SQUARE = r"[\[【［][^\[\]【】［］]{0,160}[\]】］]"
_ROUND = r"[(（][^()（）]{1,160}[)）]"
_CHECKBOX = re.compile(r"\[([ xX])\]")
_MARK = re.compile(rf"({_ANY_MARK})\ufe0f?")
_SQUARE_HEAD = re.compile(rf"({_SQUARE})(?!\()")
_ROUND_HEAD = re.compile(rf"({_ROUND})")
_WORD_HEAD = re.compile(
    r"((?:(?:priority|importance|category|type)\s?[:：=]\s?)?[^\W\d_][\w ,/&()\[\]-]{0,40}?)"
    r"(?:\s?[:：]|\s[|–—-](?=\s))",
    re.IGNORECASE,
)
_RESTATED = re.compile(r"(CRITICAL|HIGH|IMPORTANT|MEDIUM|NOTE|INFO|LOW)(?: PRIORITY)?(?=\s)")
_NAME_HEAD = re.compile(
    r"(?:(?:text|content|observation|description|statement)\s?#?\d{0,3}|fact\s?#?\d{1,3})\s?[:：]", re.IGNORECASE
)
_BEHIND_MARK = re.compile(r"\s*(?:[:：|·,]|[-–—]{1,2}(?=\s))?\s*")
_CITED = re.compile(
    r"(?P<code>`[^`]{1,300}`)|\s{0,3}(?:(?<![A-Za-z0-9_\])])|(?=[【［（]))"
    rf"(?:(?P<square>{_SQUARE}(?:[\s,;]{{0,3}}{_SQUARE}){{0,20}})(?!\()|(?P<round>{_ROUND}))"
)
_FOLLOWED = re.compile(rf"\s{{0,4}}(?:[.,;。，；!！\[【(（]|{_ANY_MARK}|$)")
_AT_END = re.compile(r"\s{0,4}[.。]?\s{0,4}$")
_LAST_MARK = re.compile(rf"\s?({_ANY_MARK})\ufe0f?$")
_NUMBER = re.compile(r"[0-9]{1,9}")
_TAIL = 200
_MOST_MARKS = 10


@dataclass(slots=True)
class _Draft:
    """A fact while its lines are being read."""

    parts: list[str] = field(default_factory=list[str])
    priority: Priority | None = None
    category: Category | None = None
    done: bool = False
    sources: dict[int, None] = field(default_factory=dict[int, None])
    day: date | None = None
    clock: time | None = None
    section: _Label = _Label()

    def add(self, label: _Label) -> None:
        """Take what a label says, as far as it is not known yet."""
        self.priority = self.priority or label.priority
        self.category = self.category or label.category
        self.done |= label.done
        self.sources |= dict.fromkeys(label.sources)

    def has(self, label: _Label) -> bool:
        """Tell whether all of a label's kind is known already, so that it must be about another fact."""
        kinds = ((self.priority, label.priority), (self.category, label.category), (self.sources, label.sources))
        return all(known or not said for known, said in kinds)

    @property
    def introduces(self) -> bool:
        """Tell whether more must follow."""
        return bool(self.parts) and self.parts[-1].endswith((":", "："))

    def append(self, line: _Line) -> None:
        """Add a detail from below the fact, or the rest of a line that was wrapped."""
        text = line.text
        if not self.parts and (name := _NAME_HEAD.match(text)):
            text = text[name.end() :].strip()
        if (mark := _MARK.match(text)) and mark[1] in _MARKS:
            text = text[mark.end() :].strip()
        text = _take_citations(self, text)
        wrapped = not (line.bullet or line.arrow or line.marked)
        between = "" if not self.parts else " " if wrapped or self.introduces else "; "
        self.parts.append(between + _unquoted(text))

    def fact(self) -> WrittenFact:
        """Return the fact, with the heading's labels where it has none of its own."""
        return WrittenFact(
            text="".join(self.parts).strip(),
            priority=self.priority or self.section.priority or "medium",
            category=self.category or self.section.category,
            done=self.done or self.section.done,
            sources=tuple(self.sources),
            day=self.day,
            clock=self.clock,
        )


def _read_fact(text: str) -> _Draft:
    """Return what one line says, its marks, times and citations taken out of the text."""
    draft = _Draft()
    for _ in range(_MOST_MARKS):
        end = _take_head(draft, text)
        if not end:
            break
        behind = _BEHIND_MARK.match(text, end)
        text = text[behind.end() if behind else end :]
    text = _take_tail(draft, text.strip())
    text = _take_citations(draft, text)
    if mark := _LAST_MARK.search(text, max(0, len(text) - 4)):
        draft.add(_vocabulary(mark[1]))
        text = text[: mark.start()].rstrip()
    draft.parts = [_unquoted(text)] if text else []
    return draft


def _take_head(draft: _Draft, text: str) -> int:
    """Take the mark at the beginning of a line into the draft; return where it ends, 0 when there is none."""
    if end := _take_moment(draft, text):
        return end
    if name := _NAME_HEAD.match(text):
        return name.end()
    for pattern, square in ((_MARK, False), (_SQUARE_HEAD, True), (_ROUND_HEAD, False), (_WORD_HEAD, False)):
        found = pattern.match(text)
        if found and (label := _label(found[1], square=square)):
            draft.add(label)
            return found.end()
    if checkbox := _CHECKBOX.match(text):
        draft.done |= checkbox[1] in "xX"
        return checkbox.end()
    restated = _RESTATED.match(text)
    return restated.end() if restated and _vocabulary(restated[1].casefold()).priority == draft.priority else 0


def _take_moment(draft: _Draft, text: str) -> int:
    """Take a date, a time or both at the beginning of a line; return where they end, 0 when there are none."""
    found = _BRACKETED.match(text) or _BARE.match(text)
    if not found or not (found["day"] or found["hour"]):
        return 0
    day, clock = _day(found["day"] or ""), _clock(found)
    if (found["day"] and not day) or (found["hour"] and not clock):
        return 0
    draft.day, draft.clock = draft.day or day, draft.clock or clock
    return found.end()


def _take_tail(draft: _Draft, text: str) -> str:
    """Take what stands at the end without brackets, such as "Priority: high | Sources: 3, 5"; return the rest."""
    for key in _TAIL_KEY.finditer(text, max(0, len(text) - _TAIL)):
        tail = text[key.start() :]
        balanced = all(tail.count(opening) == tail.count(closing) for opening, closing in ("()", "[]", "（）"))
        if balanced and key.start() and (label := _label(tail.rstrip(" .。"))):
            draft.add(label)
            return text[: key.start()].rstrip(" \t|;,–—-")
    return text


def _take_citations(draft: _Draft, text: str) -> str:
    """Take the messages that a text cites; return it without those that end a sentence or part of one."""
    rest = _CITED.sub(partial(_take_citation, draft), text).strip()
    return rest.rstrip(" \t,;|–—-") if rest != text.strip() else rest


def _take_citation(draft: _Draft, found: re.Match[str]) -> str:
    if found["code"]:
        return found[0]
    label = _label(found["square"] or found["round"], square=bool(found["square"]))
    if label is None:
        return found[0]
    if label.priority or label.category or label.done:
        # A lone word such as "(high)" may be the sentence's own.
        clear = found["square"] or label.keyed or label.sources or (label.priority and label.category)
        if not clear or not _AT_END.match(found.string, found.end()):
            return found[0]
    draft.add(label)
    return "" if _FOLLOWED.match(found.string, found.end()) else found[0]


# Reading line by line


class _Reader:
    """Reads the lines of an answer, each in the light of the headers and of the fact above it."""

    def __init__(self, lists_only: bool, listed: bool) -> None:
        self._lists_only = lists_only
        self._listed = listed
        self._drafts: list[_Draft] = []
        self._top: _Draft | None = None
        self._indent = 0
        self._day: date | None = None
        self._section = _Label()
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
            if says_something(fact.text) and not draft.introduces and not _JSON.match(fact.text):
                yield fact

    def read(self, line: _Line) -> None:
        """Read the next line."""
        if not (self._drafts or line.bullet or line.marked):
            self.preamble.append(line.text)
        steps = (self._date, self._heading, self._nothing, self._unset, self._attribute, self._detail, self._prose)
        if not any(step(line) for step in steps):
            self._fact(line)

    def _date(self, line: _Line) -> bool:
        bare = line.text[:120].strip(_DECORATION)
        if len(line.text) > 100 or not _DATE_HEADER.fullmatch(bare):
            return False
        self._day, self._top = _day(bare), None
        return True

    def _heading(self, line: _Line) -> bool:
        text = line.text.lstrip("#").strip()
        if len(text) > 80 or _KEYED.match(text):
            return False
        label = _label(text)
        titled = line.text.startswith(("# ", "##")) or (line.bold and self._listed and not line.marked)
        introduces = text.endswith((":", "：")) and not line.marked
        if not (label or titled or introduces) or (not label and line.bullet):
            return False
        self._section, self._top = _general(label or _loose_label(text)), None
        self._day = _day(text) or self._day
        return True

    def _nothing(self, line: _Line) -> bool:
        said = _says_nothing(line.text)
        self.said_nothing |= said
        return said

    def _unset(self, line: _Line) -> bool:
        return bool(_UNSET.match(line.text))

    def _attribute(self, line: _Line) -> bool:
        """Give "Priority: high" on a line of its own to the fact above, else to a new one whose text follows."""
        if not _KEYED.match(line.text):
            return False
        label = _label(line.text)
        if label is None:
            return False
        about = self._top
        if about is None or about.has(label):
            about = self._open(_Draft(), line)
        about.add(label)
        return True

    def _detail(self, line: _Line) -> bool:
        top = self._top
        if top is None or not self._is_below(top, line):
            return False
        if _NUMBER.fullmatch(line.text):
            top.sources[int(line.text)] = None
        else:
            top.append(line)
        return True

    def _is_below(self, top: _Draft, line: _Line) -> bool:
        if line.arrow or _OTHER.match(line.text):
            return True
        if line.indent >= self._indent + 2:
            # A mark below a line without one: that line was a topic, this is a fact.
            return not (line.ranked and top.parts and top.priority is None)
        return top.introduces and not (line.bullet or line.marked)

    def _prose(self, line: _Line) -> bool:
        if not self._lists_only or line.bullet or line.marked:
            return False
        self._top, self.prose = None, True
        return True

    def _fact(self, line: _Line) -> None:
        self._open(_read_fact(line.text), line)

    def _open(self, draft: _Draft, line: _Line) -> _Draft:
        draft.day = draft.day or self._day
        draft.section = self._section
        self._drafts.append(draft)
        self._top, self._indent = draft, line.indent
        return draft


def _read(lines: list[str], *, lists_only: bool) -> _Reader:
    shown = [_line(raw) for raw in lines if not _MARKUP.fullmatch(raw.strip())]
    reader = _Reader(lists_only, listed=any(line.bullet or line.marked for line in shown))
    for line in shown:
        reader.read(line)
    return reader


# What is no fact

_NO_WORDS = frozenset("no nothing none nil null empty".split())
_NOTHING_WORDS = frozenset(
    "new more further additional other notable noteworthy significant relevant important durable key meaningful"
    " worth to keeping keep record recorded recording note noting remember remembering observe observation observations"
    " fact facts information memory memories update updates detail details here found made needed this in conversation"
    " transcript session slice the from for of are were is was be that report add added extract extracted save saving"
    " store storing at time any all i there s found see have and or".split()
)
_NOTHING_CJK = re.compile(
    r"(?:暂无|无|没有)(?:新|的|值得|需要|可|任何|重要|记录|保存|保留|观察|内容|事实|信息|记忆|更新){0,12}"
)
# What is said to whoever asked, before a list that then holds no facts.
_REFUSAL = re.compile(
    r"\bI(?:'m|’m| am) (?:unable|not able)"
    r"|\bI (?:can(?:no|'|’)t|can not|don(?:'|’)t have|do not have|would need|need)\b"
    r"|\bI can (?:help|assist)|\bas an ai\b|\bplease (?:provide|share|clarify|specify|let me know)|\bcould you\b"
    r"|\bwould you (?:like|prefer)|\bdo you want|\bhow (?:can|may) i\b|我无法|请提供|您(?:想|需要|希望)",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(
    r"(?:would|could|should|do|can|may|shall|will|are|did|have) (?:you|i|we)\b"
    r"|(?:what|which|how|where|when|why|who)\b.*\?$"
    r"|please\b|let me\b|I(?:'ll|’ll|'m|’m| can| cannot| will| would| am| do not| don['’]t)\b|您|请(?:提供|告)|需要我",
    re.IGNORECASE,
)


def _says_nothing(text: str) -> bool:
    """Tell whether a line says, and says only, that there is nothing to write down."""
    if len(text) > 120:
        return False
    bare = text.strip(" \t()（）[]【】<>.。!！-—*_\"'")
    if bare.casefold() == "n/a" or _NOTHING_CJK.fullmatch(bare):
        return True
    words = re.findall(r"[a-z]+", bare.casefold())
    plain = re.fullmatch(r"[A-Za-z\s',’-]+", bare)
    return bool(plain) and any(word in _NO_WORDS for word in words[:4]) and set(words) <= _NO_WORDS | _NOTHING_WORDS
