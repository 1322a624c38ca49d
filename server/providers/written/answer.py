"""A whole answer in text: the facts of its `<observations>`, else those of its list, and what is said beside them.

Every expression is bounded, since a model can be made to write anything.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from esker.server.core.json_input import clean_text
from esker.server.core.text.terms import says_something
from esker.server.core.words.scripts import CJK
from esker.server.providers.answers import without_thought
from esker.server.providers.written.facts import KEYS, FactDraft, FactMarks, WrittenFact, heading_marks, read_marks

# Maximum characters of an answer: only a model that loops writes more, and reading this many takes five seconds.
_LONGEST_ANSWER = 400_000


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """A whole answer. One without facts found nothing worth keeping, which is not a failure."""

    facts: tuple[WrittenFact, ...]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None


def read_written(text: str) -> WrittenAnswer | None:
    """Return the facts of an answer in tagged text, else of one that is a list; None when it is neither."""
    text = clean_text(text if len(text) <= _LONGEST_ANSWER else text[:_LONGEST_ANSWER].rpartition("\n")[0])
    text, slots = _without_slots(without_thought(text))
    if tag := _OPEN.search(text):
        end = _CLOSE.search(text, tag.end())
        inner = text[tag.end() : end.start()] if end else _whole_lines(text[tag.end() :])
        facts = _facts(inner, whole=bool(end))
    else:
        facts = _listed_facts(text)
    return None if facts is None else WrittenAnswer(facts, *map(slots.get, ("current", "suggested", "thread")))


def _facts(text: str, *, whole: bool) -> tuple[WrittenFact, ...] | None:
    """Return the facts of an element; none only when it is whole and says that there are none."""
    notes = _Notes(text.splitlines(), lists_only=False)
    facts = tuple(dict.fromkeys(notes.facts()))
    if facts:
        return None if all(_ADDRESSED.match(fact.text) for fact in facts) else facts
    return () if whole and not notes.drafts else None


def _listed_facts(text: str) -> tuple[WrittenFact, ...] | None:
    """Return the facts of a list, none when the text says no more than that there are none."""
    notes = _Notes(text.splitlines(), lists_only=True)
    if notes.said_nothing and not notes.drafts and not notes.prose:
        return ()
    if any(map(_REFUSAL.search, notes.preamble)):
        return None
    facts = tuple(dict.fromkeys(fact for fact in notes.facts() if not _ADDRESSED.match(fact.text)))
    return facts if any(map(_is_statement, facts)) else None


# The parts of an answer

_OPEN = re.compile(r"(?<!`)<observations(?:\s[^<>]{0,400})?>", re.IGNORECASE)
_CLOSE = re.compile(r"</observations>", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…。！？\]】][\"'”’»)]?$")
_SLOT_NAME = r"(current|suggested|thread)[-_ ](?:task|response|continuation|title)"
_SLOT_TAG = re.compile(rf"(?<!`)<{_SLOT_NAME}>([^<]{{0,4000}})(?:</[\w-]{{1,40}}>|$)", re.IGNORECASE)
_SLOT_LINE = re.compile(
    rf"^[ \t*#-]{{0,12}}{_SLOT_NAME}\*{{0,2}}(?:[:：][ \t*]{{0,6}}\n{{0,2}}|[ \t]{{0,6}}\n{{1,2}})"
    r"[ \t]{0,6}(?:- )?([^\n]{0,4000})$",
    re.IGNORECASE | re.MULTILINE,
)


def _whole_lines(text: str) -> str:
    """Return a truncated answer without its last line, unless that line ends like a sentence."""
    text = text.rstrip()
    return text if _SENTENCE_END.search(text, max(0, len(text) - 2)) else text.rpartition("\n")[0]


def _without_slots(text: str) -> tuple[str, dict[str, str | None]]:
    """Return a text without its task, continuation and title, in tags or behind a label, and what these say."""
    slots: dict[str, str | None] = {}

    def take(found: re.Match[str]) -> str:
        said = found[2].strip(' \t\n"*“”')
        whole = not found[0].startswith("<") or found[0].endswith(">")
        slots[found[1].casefold()] = said if whole and says_something(said) and not _says_nothing(said) else None
        return "\n"

    return _SLOT_LINE.sub(take, _SLOT_TAG.sub(take, text)), slots


# Lines

_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}
_ENTITY = re.compile("&(lt|gt|amp|quot);")
_BULLET = re.compile(r"[-*•+–](?:\s+|(?=[•🔴🟡🟢✅\[]))|•|\d{1,3}[.)]\s+")
_ARROW = re.compile(r"(?:→|->)\s*")
# A line with a priority at its beginning is a fact without a bullet, too.
_RANKED = re.compile(r"[🔴🟡🟢✅]|(?:CRITICAL|HIGH|IMPORTANT|MEDIUM|NOTE|INFO|LOW|DONE):|\[(?i:high|medium|low)\]")
# A fence, a tag or a ruler alone on its line, or a date above the facts of a day.
_MARKUP = re.compile(
    r"(?:```\w{0,20}|</?[A-Za-z][\w-]{0,40}[^<>]{0,400}>|[-=*_ ]{1,200}|[*#\s]{0,6}date\s?:.{0,60})?", re.IGNORECASE
)
_FIELD = re.compile(rf"(?:{KEYS})\s?[:=]", re.IGNORECASE)
# A field without a value, or one that a fact written as text does not have.
_SKIPPED_FIELD = re.compile(
    rf"(?:{KEYS})\s?[:=]\s?(?:null|none|\[\])?$|(?:refers_from|refers_to|valid_until|replaces|tentative)\s?[:=]",
    re.IGNORECASE,
)
_JSON = re.compile(r"\[?\s?\{|\"\w{1,40}\"\s?:")
_TEXT = re.compile(r"(?:\*\*)?(?:text|fact \d{1,3}|observation \d{1,3})\s?[:：]", re.IGNORECASE)
_LONGEST_HEADING = 80

# Remarks to the user

_NOTHING = re.compile(
    r"(?:there (?:is|are|was|were) )?(?:none|n/a|null|nothing(?: (?:new|worth|notable|to|of))?"
    r"|no(?: new| further| notable| relevant)* (?:observations?|facts?|memories|information|updates?))"
    r"(?: (?:to|worth|of|in|from|this|the|here|found|needed|keep(?:ing)?|record(?:ed|ing)?|not(?:e|ing)"
    r"|remember(?:ing)?|report|conversation|transcript|session))*"
    r"|(?:无|没有)(?:新|的|值得|需要|可|任何|重要|记录|保存|保留|观察|内容|事实|信息|记忆|更新){0,12}",
    re.IGNORECASE,
)
_LONGEST_NOTHING = 120
_REFUSAL = re.compile(
    r"\bI(?:'m|’m| am) (?:unable|not able)|\bI (?:can(?:no|'|’)t|would need|need|can help)\b|\bplease (?:provide|share)"
    r"|\bcould you\b|我无法|请提供",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(
    r"(?:would|could|should|do|can|may|shall|will) (?:you|i|we)\b|(?:what|which|how|where|when|why|who)\b.*\?$"
    r"|please\b|let me\b|I(?:'ll|’ll| can| cannot| will| would)\b|您|请",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_CJK = re.compile(f"[{CJK}]")


def _says_nothing(text: str) -> bool:
    """Whether a text says, and says only, that there is nothing to write down."""
    return len(text) <= _LONGEST_NOTHING and bool(_NOTHING.fullmatch(text.strip(" \t()（）[]【】<>.。!-—*_\"'")))


def _is_statement(fact: WrittenFact) -> bool:
    """Whether a fact is more than a word and not a question."""
    if fact.text.rstrip("\"'”’») ").endswith(("?", "？")):
        return False
    return len(_WORD.findall(fact.text)) >= 2 or len(_CJK.findall(fact.text)) >= 4


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without its bullet; `arrow`: it begins with one."""

    text: str
    indent: int
    bullet: bool
    arrow: bool

    @property
    def plain(self) -> str:
        """The text without emphasis."""
        return self.text.replace("**", "")


def _lines(raw_lines: Iterable[str]) -> Iterator[_Line]:
    for raw in raw_lines:
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[1]], raw.strip())
        if _MARKUP.fullmatch(raw.strip()):
            continue
        indent = len(raw.expandtabs(4)) - len(raw.expandtabs(4).lstrip())
        bullet = _BULLET.match(text)
        text = text[bullet.end() :] if bullet else text
        arrow = _ARROW.match(text)
        yield _Line(text[arrow.end() :] if arrow else text, indent, bool(bullet), bool(arrow))


class _Notes:
    """The content of some lines. In a text that is a list, a line without a bullet or mark is prose.

    `preamble` is the prose before the first item; `said_nothing`: a line says that there is nothing to write down.
    """

    def __init__(self, raw_lines: Sequence[str], *, lists_only: bool) -> None:
        self.drafts: list[tuple[FactDraft, FactMarks]] = []
        self.preamble: list[str] = []
        self.prose = self.said_nothing = False
        self._lists_only = lists_only
        self._section = FactMarks()
        self._top: FactDraft | None = None
        for line in _lines(raw_lines):
            self._read(line)

    def facts(self) -> Iterator[WrittenFact]:
        """Yield the lines that state something. A line that ends with a colon and has no details is a heading."""
        for draft, section in self.drafts:
            fact = draft.fact(section)
            if says_something(fact.text) and not fact.text.endswith((":", "：")) and not _JSON.match(fact.text):
                yield fact

    def _read(self, line: _Line) -> None:
        marked = bool(_RANKED.match(line.plain) or _TEXT.match(line.text))
        if self._is_heading(line, marked):
            self._section, self._top = heading_marks(line.plain), None
            self.preamble += [] if self.drafts else [line.text]
        elif _says_nothing(line.plain):
            self.said_nothing = True
        elif _SKIPPED_FIELD.match(line.plain):
            return
        elif _FIELD.match(line.plain) and (marks := read_marks(line.plain)):
            self._add_field(line, marks)
        elif self._top and self._is_below(self._top, line):
            self._top.add(line.text, wrapped=not (line.bullet or line.arrow))
        elif line.bullet or marked or not self._lists_only:
            self._open(line).read(line.text)
        else:
            self.prose, self._top = True, None
            self.preamble += [] if self.drafts else [line.text]

    def _is_heading(self, line: _Line, marked: bool) -> bool:
        text = line.text
        if line.bullet or len(text) > _LONGEST_HEADING:
            return False
        return text.startswith("#") or (text.endswith((":", "：", ":**")) and not marked and not line.indent)

    def _add_field(self, line: _Line, marks: FactMarks) -> None:
        """Give "Priority: high" on a line of its own to the fact above, else to a new one whose text follows."""
        top = self._top
        known = top and ((marks.priority and top.marks.priority) or (marks.category and top.marks.category))
        draft = top if top and not known else self._open(line)
        draft.marks |= marks

    def _is_below(self, top: FactDraft, line: _Line) -> bool:
        if not top.parts or _TEXT.match(line.text):
            return False
        # A priority below a line without one: that line was a topic, this is a fact.
        topic = bool(_RANKED.match(line.plain)) and not top.marks.priority
        return line.arrow or (line.indent >= top.indent + 2 and not topic)

    def _open(self, line: _Line) -> FactDraft:
        top = self._top
        if top and not top.parts:
            return top
        self._top = FactDraft(indent=line.indent)
        self.drafts.append((self._top, self._section))
        return self._top
