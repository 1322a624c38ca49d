"""A whole answer in text: the facts in its tags, else those of its list, and what is said beside them.

Small models know the shape of notes better than that of JSON. What they write is read line by line: marks at the
beginning of a line, what the line cites, date headers and headings above it, details below it. Every expression is
bounded, since a model can be made to write anything.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from esker.server.core.json_input import clean_text
from esker.server.core.text.terms import says_something
from esker.server.providers.written.elements import read_elements
from esker.server.providers.written.facts import WrittenFact
from esker.server.providers.written.lines import shown, unquoted
from esker.server.providers.written.notes import read_notes
from esker.server.providers.written.remarks import is_addressed, is_json, is_statement, refuses, says_nothing

# Only a model that loops writes more. Reading so much takes two seconds at worst.
_LONGEST_ANSWER = 400_000


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """A whole answer. One without facts plainly finds nothing worth keeping, which is an answer and no failure."""

    facts: tuple[WrittenFact, ...]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None


def read_written(text: str) -> WrittenAnswer | None:
    """Return the facts of an answer in tagged text, else of one that is a list; None when it is neither."""
    elements = read_elements(clean_text(_bounded(text)))
    if elements.observations is None:
        found = _read_list(elements.outside)
    else:
        found = _read_observations(elements.observations, whole=not elements.cut_off)
    if found is None:
        return None
    return WrittenAnswer(
        facts=found,
        current_task=_slot(elements.slots.get("current")),
        suggested_continuation=_slot(elements.slots.get("suggested")),
        thread_title=_slot(elements.slots.get("thread")),
    )


def _bounded(text: str) -> str:
    """Return an answer, or the whole lines at the beginning of one that is too long."""
    return text if len(text) <= _LONGEST_ANSWER else text[:_LONGEST_ANSWER].rpartition("\n")[0]


def _read_observations(lines: list[str], *, whole: bool) -> tuple[WrittenFact, ...] | None:
    """Return the facts of an observations element; none only when it is whole and says that there are none."""
    if is_json("\n".join(lines[:20])):
        return None
    notes = read_notes(lines, lists_only=False)
    facts = _distinct(notes.facts())
    if not facts:
        return facts if whole and notes.empty else None
    return None if all(is_addressed(fact.text) for fact in facts) else facts


def _read_list(lines: list[str]) -> tuple[WrittenFact, ...] | None:
    """Return the facts of a list, none when the text says no more than that there are none."""
    notes = read_notes(lines, lists_only=True)
    if notes.empty and notes.said_nothing and not notes.prose:
        return ()
    if any(refuses(line) for line in notes.preamble):
        return None
    facts = _distinct(fact for fact in notes.facts() if not is_addressed(fact.text))
    return facts if any(is_statement(fact.text) for fact in facts) else None


def _distinct(facts: Iterable[WrittenFact]) -> tuple[WrittenFact, ...]:
    """Return the facts without repeats: a small model that loops writes the same line for pages."""
    return tuple(dict.fromkeys(facts))


def _slot(said: str | None) -> str | None:
    """Return what a slot says, None when it says that there is nothing to say."""
    lines = [line.text for line in shown((said or "").splitlines())]
    value = unquoted("\n".join(line for line in lines if line))
    return value if says_something(value) and not says_nothing(value) else None
