"""Splits a message into sentences, and drops those that are not prose."""

import re

from esker.server.core.words.lists import any_of, whole, words
from esker.server.core.words.scripts import CJK, UNSPACED

MAX_SENTENCE = 400
"""Maximum characters of a sentence; longer ones are truncated at a word."""

# Characters read at each end of a huge text.
_END_CHARACTERS = 20_000
CODE_FENCE = re.compile(r"^\s{0,8}(?:```|~~~)")
"""The line before or after a block of code."""
QUOTED = re.compile(r"^\s*>\s?")
"""The mark of a quoted line."""
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"^(?:[-*•>]|\d{1,2}[.)]|#{1,6})\s+(?:\[[ xX]\]\s*)?")
_END = re.compile(r"(?<=[.!?…؟])(?:\s+(?=\S)|[\"')\]]\s+(?=[^\sa-zß-ÿ]))|(?<=[。！？])(?![」』”’）)])")
# Bounded: each opening mark without an end would scan the rest of the line.
EMPHASIS = re.compile(r"(\*\*)(?=\S)(.{1,200}?)(?<=\S)\1")
"""Bold words; the second group are the words."""
# A full stop after an abbreviation, an initial or a number does not end a sentence.
_NO_END = re.compile(rf"(?:\b{any_of(words('observer.abbreviations'))}|\b[A-Z]\.|^\d+\.)$")
_LONGEST_ABBREVIATION = 40
"""Characters of the end of a sentence in which an abbreviation is looked for; more take longer in a long sentence."""
# "13. Oktober"
_DAY = re.compile(r"\b\d{1,2}\.$")
_MONTH = re.compile(whole(words("dates.months") + words("dates.short_months")))
_LETTER = re.compile(r"[^\W\d_]")
_CJK = re.compile(f"[{CJK}]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_CODE = re.compile(
    r"[{};=<>|\\$]|\(\)|::|->|^\s*(?:at |import |from \S+ import|def |class |const |let |var |function )"
)

PLACEHOLDER = re.compile(r"<\w[\w-]{0,30}>|\{\w[\w-]{0,30}\}")
"""A part of a name that differs each time: "<ticket>", "{id}"."""


def sentences(text: str) -> list[str]:
    """Return the sentences of `text` that are prose, in order, without code, markup and list bullets."""
    return [clip(sentence) for sentence in _sentences(text) if is_prose(sentence)]


def ends(text: str) -> str:
    """Return a huge text without its middle, which is usually pasted."""
    return text if len(text) <= 2 * _END_CHARACTERS else f"{text[:_END_CHARACTERS]}\n{text[-_END_CHARACTERS:]}"


def _sentences(text: str) -> list[str]:
    prose = EMPHASIS.sub(r"\2", _CODE_BLOCK.sub("\n", ends(text)))
    lines = (_BULLET.sub("", line.strip()) for line in prose.splitlines())
    return [sentence for line in lines if line for sentence in split_sentences(line)]


def split_sentences(line: str) -> list[str]:
    """Return the sentences of a line, prose or not; abbreviations and numbers do not end one."""
    parts: list[str] = []
    for part in _END.split(line):
        if parts and len(parts[-1]) < 2 * MAX_SENTENCE and _goes_on(parts[-1], part):
            parts[-1] += " " + part
        elif part.strip():
            parts.append(part.strip())
    return parts


def _goes_on(before: str, part: str) -> bool:
    """Whether a full stop before `part` ends no sentence: it belongs to an abbreviation or to the day of a month."""
    tail = max(0, len(before) - _LONGEST_ABBREVIATION)
    return bool(_NO_END.search(before, tail) or (_DAY.search(before, tail) and _MONTH.match(part)))


def is_prose(sentence: str) -> bool:
    """Whether a sentence is prose: mostly letters, more than one word, little code."""
    letters = len(_LETTER.findall(sentence))
    if _CJK.search(sentence):
        return letters >= 4
    code = _CODE.findall(PLACEHOLDER.sub(" ", sentence))
    return len(sentence.split()) >= 2 and letters >= 0.5 * len(sentence.replace(" ", "")) and len(code) < 3


def is_word(sentence: str) -> bool:
    """Whether a sentence is a single word of letters, as in "ok" or the name of a choice."""
    return sentence.rstrip(".!…。！").isalpha()


def word_count(text: str) -> int:
    """Return the number of words in a text; two characters of Chinese or Japanese are taken for a word."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_UNSPACED.sub(" ", text).split()) + (unspaced + 1) // 2


def width(text: str) -> int:
    """Return how many letters a text needs in a script with spaces.

    A syllable of Hangul is taken for two letters, a character of Chinese or Japanese for three.
    """
    return len(text) + len(_CJK.findall(text)) + len(_UNSPACED.findall(text))


def clip(sentence: str, limit: int = MAX_SENTENCE) -> str:
    """Return a sentence truncated to `limit` characters, at a word."""
    if len(sentence) <= limit:
        return sentence
    head = sentence[: limit - 1]
    space = head.rfind(" ", limit // 2)
    return (head[:space] if space > 0 else head).rstrip(" ,;:") + "…"
