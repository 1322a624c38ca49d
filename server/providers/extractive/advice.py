"""Leaves advice out of a report: steps for the reader, and remedies that nobody has applied."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, takewhile

from esker.server.providers.extractive import cues
from esker.server.providers.extractive.sentences import split_sentences
from esker.server.providers.extractive.statements import Statement

# Minimum share of the items of one list that tell the reader what to do, in a list that is a procedure.
_PROCEDURE = 0.4


def without_procedures(said: Sequence[Statement]) -> Iterator[Statement]:
    """Yield statements without the lists that tell the reader what to do: "Open the settings; click Save"."""
    for is_item, group in groupby(said, key=lambda each: each.is_item and (each.headings, each.topic)):
        items = list(group)
        told = sum(bool(cues.ADDRESS.search(each.text) or cues.OFFER.search(each.text)) for each in items)
        if not is_item or len(items) == 1 or told < _PROCEDURE * len(items):
            yield from items


def without_remedy(said: Statement) -> Statement:
    """Return a statement without its end from the sentence on that says what would mend what the others tell."""
    kept = list(takewhile(lambda sentence: not _names_remedy(sentence), split_sentences(said.text)))
    return replace(said, text=" ".join(kept)) if kept else said


def is_remedy(said: Statement) -> bool:
    """Whether a statement says from its first sentence on what would mend something."""
    return _names_remedy(split_sentences(said.text)[0])


def _names_remedy(sentence: str) -> bool:
    """Whether a sentence says what would mend something; "Fix: added an index" says what did."""
    found = cues.REMEDY.search(sentence)
    if not found:
        return False
    return not found[0].rstrip().endswith((":", "：")) or cues.is_order(sentence[found.end() :].strip())
