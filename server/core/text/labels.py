"""The words with which the extractive observer introduces a row: who said or did it, and how it was meant.

They are for readers, so they are not indexed and not embedded.
"""

import re

CORRECTION = "User correction"
PREFERENCE = "User preference"
DECISION = "User decision"
CONFIRMED = "User confirmed"
AGREED = "User agreed"
"""Is followed by the words of the answer, which are indexed."""
PLANS = "User plans"
REPORTED = "User reported"
SAID = "User said"
ASKED = "User asked"
WROTE = "User wrote"
SHOWED = "User showed an image"
FOUND = "Assistant found"
LEFT_OPEN = "Assistant left open"
OUTCOME = "Outcome"
COMMITTED = "Committed"

PURPOSE = " — asked: "
"""Separates what was changed from what was asked for."""
IN_ANSWER = " (in answer to: "
"""Precedes the words that a row answers."""
WITH_IMAGE = " (with an image)"
STEP = " → "
"""Separates the rows of one course of events."""

_ALL = (
    CORRECTION, PREFERENCE, DECISION, CONFIRMED, PLANS, REPORTED, SAID, ASKED, WROTE, SHOWED, FOUND, LEFT_OPEN, OUTCOME,
    COMMITTED,
)  # fmt: skip
_LABEL = re.compile(rf"(?:^|(?<={STEP}))(?:{'|'.join(_ALL)})(?:{re.escape(WITH_IMAGE)})?: ")


def without_label(text: str) -> str:
    """Return a row's text without the labels that introduce it or a part of it."""
    return _LABEL.sub("", text)
