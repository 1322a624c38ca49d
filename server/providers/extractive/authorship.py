"""Separates a person's own words in a message from those of others: quotations, documents, pasted output and code.

Pasted and quoted text is not the person's, so it never becomes a preference, a decision or a statement of the user.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from esker.server.core.words.lists import words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.program_output import behind_error, output_lines
from esker.server.providers.extractive.sentences import CODE_FENCE, QUOTED, ends, split_sentences, word_count

# Minimum characters of a line that is recognised as a quotation of the message before.
_SHORTEST_QUOTE = 12
# Minimum characters of a line that is recognized as a part of the words of that message.
_SHORTEST_PART = 30
# Share of a paragraph's lines from which the whole paragraph is pasted.
_MOSTLY = 0.5
# Maximum characters of a line that a person writes without the end of a sentence.
_LONGEST_LINE = 1_500
# A longer text with as many headings is a document or a prompt template, and not what a person says.
_MOST_WORDS, _HEADINGS = 120, 2
_HEADING = re.compile(r"#{1,6} \S|\*\*[^*\n]{1,80}\*\*[:：]?(?:$|\s)|\*\*[^*\n]{1,80}[:：]\*\*")
# A text of as many items under as many introductions ("Rules:"), and mostly of them, is a brief: the items are parts of
# the work that it orders.
_FEWEST_ITEMS, _FEWEST_INTRODUCTIONS = 8, 2
# The part of a template that contains the person's words: "<user_input>", "<request>".
_FILLED_IN = re.compile(
    r"^[ \t]*<((?:user_\w{1,30})|(?:\w{0,30}_)?(?:input|request|query|question|arguments))>", re.MULTILINE
)
# An element around pasted text, by the tag at the beginning of a line. Tags without an end and those around the
# person's words are not meant, nor are placeholders: "<your name>".
_OPENS = re.compile(
    r"^[ \t]*<(?!(?:br|hr|img|input|li|link|meta|p|user_\w{1,30})\b)"
    r"(?!(?:\w{0,30}_)?(?:input|request|query|question|arguments)\b)"
    r"([A-Za-z][\w.-]{0,60})(?:\s[^<>=]{0,60}=[^<>]{0,300})?(?<!/)>"
)
# A tag at the beginning of a line, as prompt templates and pasted documents have them.
_TAGGED = re.compile(r"^[ \t]*<[A-Za-z]", re.MULTILINE)
_CLOSES = re.compile(r"</([A-Za-z][\w.-]{0,60})>")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_ITEM = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
# The header of a mail, and a line of an exported chat: "[10:02] bob: …", "12/11/2026, 10:02 - Bob: …".
_HEADER = re.compile(rf"(?i)\s{{0,9}}(?:{'|'.join(map(re.escape, words('observer.mail_headers')))})\s?[:：]\s*\S")
_CHAT_LINE = re.compile(
    r"\s{0,9}[\[(]?(?:\d{4}-\d\d-\d\d[T ,]{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}[, ]{1,2})?"
    r"\d{1,2}:\d\d(?::\d\d)?(?: ?[AP]M)?[\])]?[ \t–-]{1,3}<?[^\s:<>][^:\n<>]{0,40}>?:\s"
)
# A quotation. If there are several sentences in it, another person wrote it.
_QUOTATION = re.compile(r"(?<!\w)[\"“„«「]([^\"“”„«»「」\n]{5,4000})[\"”“»」](?!\w)")
_SENTENCE_WITHIN = re.compile(r"[.!?]\s+\S|[。！？]\s*\S")
# Characters before the colon of a request to work on a text.
_LONGEST_LEAD = 120
_SENTENCE_END = re.compile(r"[.!?。！？]\s")
# Lines of a header or a chat that show that a text is a mail or a chat.
_FEWEST_LINES = 2
# The name and version with which a program ends what it wrote.
_VERSION = re.compile(r"[A-Za-z][\w.+-]{0,40} v?\d+(?:\.\d+){1,3}[\w.+-]{0,20}")
_MARKS = re.compile(r"[*`_]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Authorship:
    """The person's own words in a message, and the lines that it quotes, in order. Pasted lines are in neither.

    `specified` is the document below the words with which the person orders what it specifies.
    """

    own: str
    quoted: tuple[str, ...] = ()
    specified: str = ""


@dataclass(frozen=True, slots=True)
class _Answered:
    """The message that a message answers: the keys of its lines, and of all its words."""

    lines: frozenset[str]
    whole: str

    @classmethod
    def read(cls, text: str) -> "_Answered":
        """Return the keys of a text."""
        keys = [key for line in text.splitlines() if len(key := _key(line)) >= _SHORTEST_QUOTE]
        return cls(frozenset(keys), _key(text))

    def contains(self, line: str) -> bool:
        """Whether a line repeats a line of the message, or a part of its words: a terminal wraps what is copied."""
        key = _key(line)
        return key in self.lines or (len(key) >= _SHORTEST_PART and key in self.whole)


def authorship(text: str, before: str = "") -> Authorship:
    """Return whose words the lines of a message are; `before` is the message that it answers."""
    answered = _Answered.read(ends(before))
    said, document = _divided(_without_texts(ends(text)))
    own, quoted = _read(said, answered)
    if _is_brief(own):
        said, items = _without_items(own)
        return Authorship(said, quoted, items)
    return Authorship(own, quoted, _read(document, answered)[0] if _orders(own, document) else "")


def _is_brief(own: str) -> bool:
    """Whether a person's words are mostly lists of what to do, each with an introduction."""
    lines = [line for line in own.splitlines() if any(map(str.isalnum, line))]
    items = sum(bool(_ITEM.match(line)) for line in lines)
    introductions = sum(_introduces(line) for line in lines)
    enough = items >= _FEWEST_ITEMS and introductions >= _FEWEST_INTRODUCTIONS
    return enough and items + introductions > _MOSTLY * len(lines)


def _introduces(line: str) -> bool:
    return not _ITEM.match(line) and line.rstrip().endswith((":", "："))


def _without_items(own: str) -> tuple[str, str]:
    """Return the lines of a brief that are in no list, and its lists with their introductions."""
    said = [line for line in own.splitlines() if not _ITEM.match(line) and not _introduces(line)]
    return "\n".join(said), "\n".join(line for line in own.splitlines() if line not in said)


def _without_texts(text: str) -> str:
    """Return a message without the texts that it hands over: to be worked on, mails, chats and long quotations.

    A text that is handed over goes on to the end, but for a last paragraph in which the person asks something.
    """
    lines = text.splitlines()
    chat = [bool(_CHAT_LINE.match(line)) for line in lines]
    if sum(chat) >= _FEWEST_LINES:
        lines = ["" if is_chat else line for line, is_chat in zip(lines, chat, strict=True)]
    if (found := _handed_over(lines)) is not None:
        place, own = found
        behind = _PARAGRAPH.split("\n".join(lines[place + 1 :]).strip())
        is_remark = len(behind) > 1 and cues.asks(behind[-1])
        lines = [*lines[:place], own, *(["", behind[-1]] if is_remark else [])]
    return _QUOTATION.sub(_without_sentences, "\n".join(lines))


def _without_sentences(quotation: re.Match[str]) -> str:
    return "“”" if _SENTENCE_WITHIN.search(quotation[1]) else quotation[0]


def _handed_over(lines: Sequence[str]) -> tuple[int, str] | None:
    """Return the line with which a text of somebody else begins, and the person's words in that line."""
    if (place := _opening_for_review(lines)) is not None:
        return place, lines[place]
    in_code = False
    for place, line in enumerate(lines):
        in_code ^= bool(CODE_FENCE.match(line))
        if in_code:
            continue
        if lead := _lead(line):
            return place, lead
        if _HEADER.match(line) and _HEADER.match(_following(lines, place)):
            return place, ""
        if _presents(line) and _HEADING.match(_following(lines, place)):
            return place, line
    return None


def _opening_for_review(lines: Sequence[str]) -> int | None:
    """Return the last line of the first paragraph if that asks for an opinion on the long text behind it."""
    first = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    end = next((place for place in range(first, len(lines)) if not lines[place].strip()), len(lines))
    asked = " ".join(line.strip() for line in lines[first:end])
    if not cues.REVIEWS.search(asked) or word_count("\n".join(lines[end:])) <= _MOST_WORDS:
        return None
    return end - 1


def _following(lines: Sequence[str], place: int) -> str:
    """Return the next line with text behind a line, or an empty one."""
    return next((line for line in islice(lines, place + 1, None) if line.strip()), "")


def _lead(line: str) -> str | None:
    """Return the part of a line, up to its colon, that asks to work on the text behind it."""
    places = [place for mark in ":：" if (place := line.find(mark, 0, _LONGEST_LEAD)) >= 0]
    lead = line[: min(places, default=0)].strip()
    return lead if lead and not _SENTENCE_END.search(lead) and cues.HANDLES.search(lead) else None


def _read(text: str, answered: _Answered) -> tuple[str, tuple[str, ...]]:
    """Return the person's own words in a text, and the lines that it quotes."""
    own: list[str] = []
    quoted: list[str] = []
    presented = after_output = False
    for paragraph in _paragraphs(text):
        lines = paragraph.splitlines()
        output = [True] if after_output and _VERSION.fullmatch(paragraph.strip()) else output_lines(lines)
        after_output = output[-1]
        if _is_fenced(paragraph) or presented or sum(output) > _MOSTLY * len(lines) or behind_error(lines, output):
            # A person's remark can follow the pasted lines, or precede them.
            is_whole = presented or _is_fenced(paragraph) or not any(output)
            head, tail = ([], []) if is_whole else _own_ends(lines, output)
            own += [*head, *tail, ""]
            presented = False
            continue
        for line, is_output in zip(lines, output, strict=True):
            if found := QUOTED.match(line):
                quoted.append(line[found.end() :])
            elif answered.contains(line):
                quoted.append(_ITEM.sub("", line).strip())
            elif not is_output and not _is_endless(line):
                own.append(line)
        own.append("")
        presented = bool(own) and _presents(lines[-1])
    return "\n".join(own).strip(), tuple(quoted)


def _divided(text: str) -> tuple[str, str]:
    """Return what a person says in a text, and the document below it.

    In a document, the person says the words before the first heading; in a template, the words that fill it in.
    """
    headings = list(_headings(text))
    if len(headings) < _HEADINGS or word_count(text) <= _MOST_WORDS:
        return text, ""
    filled_in = list(_filled_in(text))
    if any(map(str.strip, filled_in)):
        return "\n\n".join(filled_in), ""
    return text[: headings[0]], text[headings[0] :]


def _orders(own: str, document: str) -> bool:
    """Whether a person wants, in the first person, what a document of theirs says, and does not just want it read."""
    said = split_sentences(own)
    if not document or not said or _presents(own) or any(map(_TAGGED.search, (own, document))):
        return False
    wants = any(cues.SELF.search(each) and (cues.WISH.search(each) or cues.REQUEST.search(each)) for each in said)
    return wants and not any(map(cues.MOMENTARY.search, said))


def _headings(text: str) -> Iterator[int]:
    """Yield where the headings of a text begin: after an empty line, and not in code, whose comments look like them."""
    begins, in_code, is_first = 0, False, True
    for line in text.splitlines(keepends=True):
        in_code ^= bool(CODE_FENCE.match(line))
        if is_first and not in_code and _HEADING.match(line):
            yield begins
        begins, is_first = begins + len(line), not line.strip()


def _filled_in(text: str) -> Iterator[str]:
    """Yield what the tags of a template contain; tags in a tag belong to its content."""
    end = 0
    for found in _FILLED_IN.finditer(text):
        closing = text.find(f"</{found[1]}>", found.end())
        if closing < 0:
            return
        if found.start() >= end:
            yield text[found.end() : closing]
            end = closing


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of a text; a block of code is one, whatever lines it has."""
    fenced: list[str] | None = None
    plain: list[str] = []
    for line in _without_elements(text.splitlines()):
        if CODE_FENCE.match(line):
            if fenced is None:
                yield from _split(plain)
                plain, fenced = [], [line]
            else:
                yield "\n".join([*fenced, line])
                fenced = None
        elif fenced is not None:
            fenced.append(line)
        else:
            plain.append(line)
    if fenced is not None:
        yield "\n".join(fenced)
    yield from _split(plain)


def _without_elements(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines, empty ones in place of elements; a tag in a block of code opens none."""
    ends = _element_ends(lines)
    behind, in_code = 0, False
    for place, line in enumerate(lines):
        if place >= behind:
            in_code ^= bool(CODE_FENCE.match(line))
            behind = behind if in_code else ends.get(place, behind)
        yield "" if place < behind else line


def _element_ends(lines: Sequence[str]) -> dict[int, int]:
    """Return the number of the line behind each element, by the number of its first line.

    An element ends at the last closing tag of its name before the next opening one, because the text in it may
    contain such a tag to pass for what follows. One that is not closed ends with its paragraph.
    """
    closed: dict[str, int] = {}
    last: dict[str, int] = {}
    ends: dict[int, int] = {}
    paragraph = len(lines)
    for place in reversed(range(len(lines))):
        line = lines[place]
        paragraph = paragraph if line.strip() else place
        for name in _CLOSES.findall(line):
            closed.setdefault(name, place + 1)
        if found := _OPENS.match(line):
            name, is_alone = found[1], found.end() == len(line.rstrip())
            last[name] = closed.pop(name, last.get(name, 0))
            ends[place] = last[name] or (paragraph if is_alone else place + 1)
    return ends


def _split(lines: Sequence[str]) -> Iterator[str]:
    yield from (part for part in _PARAGRAPH.split("\n".join(lines)) if part.strip())


def _is_fenced(paragraph: str) -> bool:
    return bool(CODE_FENCE.match(paragraph))


def _is_endless(line: str) -> bool:
    """Whether a line is longer than a person writes, and without a space."""
    return len(line) > _LONGEST_LINE and not _SPACE.search(line[:_LONGEST_LINE].strip())


def _own_ends(lines: Sequence[str], output: Sequence[bool]) -> tuple[list[str], list[str]]:
    """Return the person's lines before and behind the output in a paragraph that is mostly output."""
    first = output.index(True)
    last = len(output) - 1 - output[::-1].index(True)
    tail = [line for line in lines[last + 1 :] if cues.SELF.search(line) or cues.asks(line)]
    return list(lines[:first]), tail if len(tail) == len(lines) - last - 1 else []


def _presents(line: str) -> bool:
    """Whether a line introduces words of another person or a program: "the log says:", "I got this:"."""
    return line.rstrip().endswith((":", "：")) and bool(cues.PRESENTS.search(line))


def _key(line: str) -> str:
    return _SPACE.sub(" ", _MARKS.sub("", _ITEM.sub("", line))).strip().casefold()
