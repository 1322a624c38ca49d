"""Measures how much a statement tells, and whether it can be understood alone."""

import re

from esker.server.core.facts.identifiers import is_name
from esker.server.core.text.folding import NOT_GLUED
from esker.server.core.text.languages import STEMMERS, language_of
from esker.server.core.text.terms import telling_words
from esker.server.core.words.scripts import CJK, UNSPACED
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.sentences import word_count

# Maximum points that each kind of detail adds; a row of numbers says no more than three of them.
_MOST_NAMES, _MOST_FIGURES, _MOST_PROPER = 3, 2, 2
# Content words below which a statement says little, and from which it says much.
_FEW_WORDS, _MANY_WORDS = 3, 8
# Minimum content words and names of a statement that has a subject and something to say of it.
_FEWEST_UNITS = 2
# A statement of more characters usually names what it refers to.
_LONGEST_POINTING = 60
_UNSPACED = re.compile(f"[{UNSPACED}]")
_CODE_SPAN = re.compile(r"`([^`\n]{1,120})`")
_TOKEN = re.compile(rf"[^\s,;!?()\[\]{{}}\"“”'’`、。，；：！？（）【】「」『』《》؟،؛{CJK}]+")
# A number with a unit, a version, a share, a colour, a port; a bare digit counts something and says little.
_FIGURE = re.compile(
    r"#[0-9a-fA-F]{3,8}\b|(?<![A-Za-z0-9_.])[$€£¥]?\d[\d.,:]*\s?(?:[%％]|[a-zA-Z]{1,5}"
    rf"{NOT_GLUED})?"
)
# A pull request or an issue: it says where the work was recorded, and nothing of the work.
_RECORD = re.compile(r"https?://\S+/(?:pull|issues|merge_requests)/\S+|(?:\b(?:PR|MR) ?)?#\d{1,6}\b")
_PROPER = re.compile(rf"(?<=[^\W_.!?:—–-]\s)[A-ZÀ-ÖØ-Þ][\w-]*[a-zß-ÿ]\w*|(?<=[{CJK}])[A-Z][A-Za-z0-9]+")


def names(text: str) -> list[str]:
    """Return the identifiers in a text: code in backticks, paths, flags, versions, words that look like code."""
    spans = _CODE_SPAN.findall(text)
    rest = _CODE_SPAN.sub(" ", text)
    return [*spans, *(word for token in _TOKEN.findall(rest) if is_name(word := token.strip(".:…—–*").rstrip("-")))]


def weight(text: str) -> int:
    """Return how telling a statement is, from -3 up: names, figures and causes raise it, few words lower it."""
    text = _RECORD.sub(" ", text)
    words = content_words(text)
    points = (
        min(len(set(names(text))), _MOST_NAMES) + min(_figures(text), _MOST_FIGURES) + min(_proper(text), _MOST_PROPER)
    )
    points += (
        2 * bool(cues.CAUSE.search(text) or cues.EFFECT.search(text))
        + bool(cues.CONSTRAINT.search(text))
        + bool(cues.OUTCOME.search(text))
    )
    points += words >= _MANY_WORDS
    return points - 2 * (words < _FEW_WORDS) - bool(cues.TENTATIVE.search(text))


def fixes(text: str) -> bool:
    """Whether a text gives a value, a limit or a purpose: a number with a unit, "only", "so that"."""
    return bool(_figures(text) or cues.CONSTRAINT.search(text) or cues.EFFECT.search(text))


def content_words(text: str) -> int:
    """Return the number of words without stop words and repeats; two characters of Chinese or Japanese are a word."""
    spaced = sum(not _UNSPACED.search(word.spelled) for word in telling_words(text))
    return spaced + word_count("".join(_UNSPACED.findall(text)))


def _figures(text: str) -> int:
    found = (figure[0].strip() for figure in _FIGURE.finditer(_CODE_SPAN.sub(" ", text)))
    return sum(len(figure) > 1 for figure in found)


def _proper(text: str) -> int:
    """Return how many names of people, products and places a text has; German writes all nouns with capitals."""
    return 0 if language_of(text) == STEMMERS["de"] else len(set(_PROPER.findall(text)))


def leans(text: str) -> bool:
    """Whether a statement cannot be understood without what was said before it."""
    points = len(text) < _LONGEST_POINTING and cues.POINTING.search(text)
    return bool(points or cues.CONTINUATION.search(text) or cues.GENERAL_SUBJECT.search(text))


def content_units(text: str) -> int:
    """Return how many words, names and figures of a text say something."""
    return content_words(text) + len(names(text)) + _figures(text) + _proper(text)


def stands_alone(text: str) -> bool:
    """Whether a statement names its subject: it does not point back, and it has names or words enough."""
    return not leans(text) and content_units(text) >= _FEWEST_UNITS
