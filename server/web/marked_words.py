"""The words of a text that a question asks for, as recall by words compares them."""

import re
from collections.abc import Iterator

from esker.server.core.text.languages import ENGLISH, language_of
from esker.server.core.text.terms import MAX_TERM, asked_terms, terms
from esker.server.core.words.scripts import CJK

# A run of Chinese, Japanese or Korean characters, or a word of another script.
_WORD = re.compile(rf"(?P<cjk>[{CJK}ー]+)|(?:(?![{CJK}])\w)+(?:[-._:/\\@#+]+(?:(?![{CJK}])\w)+)*")
# Japanese endings and particles: a particle beside a word is not a part of it, and two Hiragana are seldom a word.
_PARTICLE = re.compile("[^ぁ-ゖ][はがをにのでともへや]|[はがをにのでともへや][^ぁ-ゖ]")
_SHORT_ENDING = re.compile("[ぁ-ゖ]{1,2}")


def marked_words(text: str, question: str) -> Iterator[tuple[bool, str]]:
    """Yield the text in parts, each with whether it is a word of the question, maybe in another form.

    Of Chinese, Japanese and Korean, which are searched by pairs of characters, the characters of these pairs are parts.
    """
    asked = {term for word in asked_terms(question) for term in word}
    end = 0
    for start, stop in _asked_spans(text, asked):
        if end < start:
            yield False, text[end:start]
        yield True, text[start:stop]
        end = stop
    if end < len(text):
        yield False, text[end:]


def _asked_spans(text: str, asked: set[str]) -> Iterator[tuple[int, int]]:
    language = language_of(text) or ENGLISH
    for word in _WORD.finditer(text):
        if word["cjk"]:
            for start, stop in _asked_characters(word["cjk"], asked):
                yield word.start() + start, word.start() + stop
        elif len(word[0]) <= MAX_TERM and not asked.isdisjoint(terms(word[0], language)):
            yield word.span()


def _asked_characters(run: str, asked: set[str]) -> Iterator[tuple[int, int]]:
    """Return the spans of a run of characters without spaces whose pairs are asked for, joined where they overlap."""
    size = min(2, len(run))
    spans: list[tuple[int, int]] = []
    for start in range(len(run) - size + 1):
        pair = run[start : start + size]
        if _PARTICLE.fullmatch(pair) or asked.isdisjoint(terms(pair)):
            continue
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], start + size)
        else:
            spans.append((start, start + size))
    return (span for span in spans if not _SHORT_ENDING.fullmatch(run[slice(*span)]))
