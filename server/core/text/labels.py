"""The labels with which the extractive observer introduces a row: the speaker or actor, and the kind of statement.

They are for readers, so they are neither indexed nor embedded.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

CORRECTION = "User correction"
PREFERENCE = "User preference"
DECISION = "User decision"
CONFIRMED = "User confirmed"
AGREED = "User agreed"
"""Followed by the words of the answer, which are indexed."""
PLANS = "User plans"
REPORTED = "User reported"
SAID = "User said"
WANTS = "User wants"
SUGGESTED = "User suggested"
"""Introduces a question that suggests something, which the assistant adopted."""
ASKED = "User asked"
"""Written by models alone: the extractive observer keeps no request."""
SHOWED = "User showed an image"
USER = "User"
OTHER = "The other person"
"""The party of a chat that has the role of an assistant and is a person without a name."""
OTHER_SAID = f"{OTHER} said"
FOUND = "Assistant found"
LEFT_OPEN = "Assistant left open"
OUTCOME = "Outcome"
COMMITTED = "Committed"

PURPOSE = " — asked: "
"""Separates a change from the request that it fulfils."""
ASKED_BY_AGENT = "Asked “"
ANSWERED = "”, user answered: "
"""Precedes the user's answer to a question of the assistant, which is between these two."""
IN_ANSWER = " (in answer to: "
"""Precedes the words that a row answers."""
ADOPTED = " (adopted by the assistant)"
REPLACES = " (replaces: "
"""Precedes the words of the row that a row replaces, without its value, where they name a subject that it lacks."""
BUT = " (but then: "
"""Precedes the words in which the user says that the work did not help."""
UNLIKE = " (unlike: "
"""Precedes the words of an older row that has another value and may still hold, without that value."""
LEFT_OUT = "…"
"""Replaces words that are left out of a quotation."""
ABOUT = " (about: "
"""Precedes the speaker's own earlier words, or words that the speaker quotes, which name the subject of a row."""
WITH_IMAGE = " (with an image)"

_ALL = (
    CORRECTION, PREFERENCE, DECISION, CONFIRMED, PLANS, REPORTED, SAID, WANTS, SUGGESTED, ASKED, SHOWED, FOUND,
    LEFT_OPEN, OUTCOME, COMMITTED, OTHER_SAID,
)  # fmt: skip
NOTES = (REPLACES, UNLIKE)
"""Precede what the observer appends about older rows."""
BETWEEN_QUOTATIONS = "; "
LONGEST_NOTE = 160
"""Maximum characters of the words that a note quotes."""
_QUOTATIONS = (BUT, ADOPTED, PURPOSE, IN_ANSWER, ABOUT, *NOTES)
# Maximum characters of the words that a quotation leaves out, and of the text that a note can quote: the observer reads
# no more of a statement.
_MOST_LEFT_OUT, _MOST_READ = 80, 1_000
_ASKED = re.compile(rf"^{re.escape(ASKED_BY_AGENT)}(.+){re.escape(ANSWERED)}")
_LABEL = re.compile(rf"^(?:{'|'.join(_ALL)})(?:{re.escape(WITH_IMAGE)})?: ")


def without_label(text: str) -> str:
    """Return a row's text without the label that introduces it."""
    return _LABEL.sub("", text)


def is_planned(text: str) -> bool:
    """Whether a row says what is still to be done."""
    return text.startswith((PLANS, LEFT_OPEN))


def without_notes(text: str) -> str:
    """Return a row's text without what the observer appended about older rows."""
    return _before_any(NOTES, text)


def note_quotes(mark: str, text: str, other: str) -> bool:
    """Whether the note behind a mark, if a text has one, quotes words of another text."""
    quoted = _before_any(NOTES, text.partition(mark)[2]).removesuffix(")")
    if len(quoted) > LONGEST_NOTE:  # not written by the observer
        return False
    return any(
        _is_quoted(words.split(LEFT_OUT), other[:_MOST_READ])
        for words in (quoted, *quoted.split(BETWEEN_QUOTATIONS))
        if any(map(str.isalnum, words))
    )


def _is_quoted(parts: Sequence[str], text: str) -> bool:
    """Whether a text has these parts in order, with some characters between them.

    It takes linear time: a regular expression would try all combinations of places.
    """
    first, *others = parts
    ends = [place + len(first) for place in _places(first, text)]
    for part in others:
        ends = [place + len(part) for place in _places(part, text) if _follows(place, ends)]
    return bool(ends)


def _places(part: str, text: str) -> Iterator[int]:
    """Yield the indexes at which a text contains a part."""
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


def _follows(place: int, ends: Sequence[int]) -> bool:
    """Whether one of some ascending indexes is a few characters before a place."""
    nearest = bisect_left(ends, place - _MOST_LEFT_OUT)
    return nearest < len(ends) and ends[nearest] < place


def own_statement(text: str) -> str:
    """Return the words of a row that state something: without its label, and without the words that it only quotes."""
    return _before_any(_QUOTATIONS, without_label(text))


def without_quotations(text: str) -> str:
    """Return a row's text, with its label, without the words of others that it quotes after its statement."""
    return _before_any(_QUOTATIONS, text)


def question_and_answer(text: str) -> tuple[str, str]:
    """Return the question that a row quotes, and the answer that the row states; of another row, nothing and itself."""
    asked = _ASKED.match(text)
    return (asked[1], text[asked.end() :]) if asked else ("", text)


def context(text: str) -> str:
    """Return the words that a row answers or is about, or nothing."""
    if question := question_and_answer(text)[0]:
        return question
    quoted = next((text.partition(mark)[2] for mark in (IN_ANSWER, ABOUT) if mark in text), "")
    return without_notes(quoted).removesuffix(")")


def _before_any(marks: Iterable[str], text: str) -> str:
    return min((text.partition(mark)[0] for mark in marks), key=len)
