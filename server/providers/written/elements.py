"""Elements: the parts of an answer by its tags and labels, without what a chat template puts around it."""

import re
from dataclasses import dataclass

from esker.server.providers.written.marks import read_marks
from esker.server.providers.written.moments import read_moment


@dataclass(frozen=True, slots=True)
class Elements:
    """The parts of an answer: the lines of its observations and those outside them, and what its slots say.

    `observations` is None when there is no such element; `cut_off` says that it never ends. `slots` are those of
    "current", "suggested" and "thread" that are there.
    """

    outside: list[str]
    observations: list[str] | None
    slots: dict[str, str]
    cut_off: bool


def read_elements(text: str) -> Elements:
    """Return the parts of an answer, those that were never closed included."""
    parts, cut_off = _parts(_with_items(_own_words(text)))
    outside, slots = _without_slots(parts.pop(""))
    observations = parts.pop("observations", None)
    lines = None
    if observations is not None:
        lines, inner = _without_slots(observations)
        slots |= inner
    return Elements(outside, lines, slots | parts, cut_off)


# What stands around an answer

_THOUGHT = re.compile(r"\s*(?:```\w{0,20}\s*)?[<\[](think|thinking|thought|reasoning)[>\]]", re.IGNORECASE)
# Templates that open the thought in the prompt leave only its end in the answer.
_END_OF_THOUGHT = re.compile(r"(?:</|\[/)think(?:ing)?[>\]][ \t]{0,20}$", re.IGNORECASE | re.MULTILINE)
_SPECIAL_TOKENS = re.compile(r"(?:(?:<\|\w{1,30}\|>|</s>|<end_of_turn>|\[/INST\])\s{0,9}){1,9}$")
_LONGEST_TOKENS = 200
_SPEAKER = re.compile(
    r"\s*(?:\*\*)?(?:assistant|observer|answer|output|response|ai|助手)(?:\*\*)?\s?[:：](?:\*\*)?", re.IGNORECASE
)


def _own_words(text: str) -> str:
    """Return an answer without the thinking before it and the tokens of a chat template around it."""
    text = text.rpartition("<|message|>")[2].replace("\u00a0", " ").replace("\u202f", " ")
    text = re.sub("[\ufeff\u200b\u2060]", "", text)
    if thought := _THOUGHT.match(text):
        end = re.search(rf"[<\[]/{thought[1]}[>\]]", text, re.IGNORECASE)
        text = text[end.end() :] if end else ""
    else:
        text = text[max((end.end() for end in _END_OF_THOUGHT.finditer(text)), default=0) :]
    text = text.rstrip()
    text = text[:-_LONGEST_TOKENS] + _SPECIAL_TOKENS.sub("", text[-_LONGEST_TOKENS:])
    speaker = _SPEAKER.match(text)
    return text[speaker.end() :] if speaker else text


# One element for each fact

# In backticks a tag is spoken of, not used.
_ITEM_TAG = re.compile(
    r"(?<!`)<(/?)(observation[-_]groups?|observation|fact)(\s[^<>]{0,400})?>\s{0,200}", re.IGNORECASE
)
_ATTRIBUTE = re.compile(r"\b(\w{1,20})\s?=\s?[\"']([^\"'<>]{1,80})[\"']")


def _with_items(text: str) -> str:
    """Return text in which every `<observation>` is a list item, its attributes written as marks."""
    return _ITEM_TAG.sub(_item, text)


def _item(tag: re.Match[str]) -> str:
    if tag[1] or "group" in tag[2].casefold():
        # What follows a group's tag is a line of its own, with the indentation that it had.
        return "\n" + tag[0].rpartition("\n")[2].rpartition(">")[2]
    attributes = _ATTRIBUTE.findall(tag[3] or "")
    marks = [f"[{key}: {value}]" for key, value in attributes if read_marks(f"{key}: {value}")]
    moments = [f"({value})" for _, value in attributes if read_moment(f"({value})")]
    return "\n- " + " ".join([*marks, *moments, ""])


# Tags

_SLOT_NAME = r"current[-_ ]?task|suggested[-_ ]?(?:response|continuation)|thread[-_ ]?title"
_TAG = re.compile(
    rf"(?<!`)<(/?)(observations|facts|{_SLOT_NAME})(?:\s[^<>]{{0,400}})?(?<!/)>|<(observations)\s?/>", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"(?:[.!?…。！？][\"'”’»)\]*`]{0,4}|[\]】]|```)$")


def _parts(text: str) -> tuple[dict[str, str], bool]:
    """Return the text of each element by its name, "" for what is outside, and whether the observations never end."""
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
            # A task amid the observations interrupts them; without an end of theirs behind it, it ends them.
            outer = inside if inside == "observations" and tag.start() < last_close else ""
            inside = name
            parts.setdefault(name, []).append("\n")
    parts[inside].append(_whole_lines(text[at:]) if inside else text[at:])
    return {name: "".join(pieces) for name, pieces in parts.items()}, inside == "observations"


def _slot_key(name: str) -> str:
    """Return which slot a tag or label names, "" when it names none."""
    return next((key for key in ("current", "suggested", "thread") if name.casefold().startswith(key)), "")


def _whole_lines(text: str) -> str:
    """Return what was cut off without its last line, unless that ends like a sentence."""
    text = text.rstrip()
    return text if _SENTENCE_END.search(text, max(0, len(text) - 8)) else text.rpartition("\n")[0]


# Slots without tags: task, continuation and title

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
