"""Whether a row only helped at the moment: progress, a passing state, chatter, a request that was fulfilled.

Such rows have a low priority, but so have details. A row of low priority stays if it is a statement that the extractive
observer looks for (a finding, an outcome, something left open), if it tells of no speaker, or if it names something
that can be looked up. Progress reports, pleasantries and measurements of a tool are dropped.
"""

from collections.abc import Sequence

from esker.server.core.records import Memory
from esker.server.core.sized_cache import cached_up_to
from esker.server.core.text import labels
from esker.server.core.text.labels import own_statement, without_label
from esker.server.core.text.terms import terms
from esker.server.core.words.lists import Cue, words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.passed_over import SPEAKER, tells
from esker.server.providers.extractive.values import read_values
from esker.server.providers.extractive.weighing import content_words
from esker.server.providers.extractive.weighing import names as names_in

# Maximum tokens of a request that says nothing besides its task.
_BARE_REQUEST_TOKENS = 16
# Minimum content words of a person's restriction ("identifiers stay English") that is kept without a name or value. A
# higher value drops more rulings in plain words; a lower one keeps more chatter.
_TELLING_WORDS = 4
# Minimum share of the terms of an agent's row that a later row must have to make it superfluous.
_RETOLD = 0.6
_LOOKED_FOR = (labels.FOUND, labels.LEFT_OPEN, labels.OUTCOME, labels.COMMITTED)
_EXPLAINING = Cue(*words("reflector.explaining"))


def is_momentary(row: Memory, rows: Sequence[Memory]) -> bool:
    """Whether a row says nothing that helps later; `rows` are those that are left, by time."""
    if cues.PASSING.search(without_label(row.content)):
        return True
    if row.trust == "assistant" and row.priority != "high" and _is_overtaken(row, rows):
        return True
    if row.priority != "low" or row.content.startswith(_LOOKED_FOR):
        return False
    if row.category == "issue" and not _was_overcome(row, rows):
        return False
    if row.trust == "tool":
        return True
    if row.trust == "external":
        return row.category == "fact"
    if row.category == "state_change":
        return row.trust == "assistant" and labels.PURPOSE not in row.content
    if row.content.startswith(labels.ASKED):
        return row.tokens <= _BARE_REQUEST_TOKENS
    return bool(SPEAKER.match(row.content)) and _says_little(row)


def _is_overtaken(step: Memory, rows: Sequence[Memory]) -> bool:
    """Whether later rows of a session make a step of the agent superfluous.

    A commit is superfluous once an outcome is reported; a finding or an outcome, once one row names all that it names
    and has most of its words or, if it is low, once rows name all of it. A cause is told once, and stays.
    """
    if step.content.startswith(labels.COMMITTED):
        return _was_overcome(step, rows)
    stated = own_statement(step.content)
    named = _values_of(stated)
    explains = step.category == "issue" or cues.CAUSE.search(stated) or cues.EFFECT.search(stated)
    if not named or explains or not step.content.startswith((labels.FOUND, labels.OUTCOME)):
        return False
    later = [row for row in rows if row.session_id == step.session_id and row.said_at > step.said_at]
    if step.priority == "low":
        return all(any(name in _values_of(row.content) for row in later) for name in named)
    its = set(terms(stated))
    retold = (row for row in later if row.trust == step.trust and named <= _values_of(row.content))
    return any(len(its & set(terms(row.content))) >= _RETOLD * len(its) for row in retold)


# A row is compared with all that follow it.
@cached_up_to(250_000)
def _values_of(text: str) -> frozenset[str]:
    return frozenset(read_values(text).texts)


def _says_little(row: Memory) -> bool:
    """Whether a row is a step or general talk of the assistant, or names nothing that can be looked up."""
    if row.trust == "assistant" and (row.category == "next_step" or tells(_EXPLAINING, row.content)):
        return True
    statement = without_label(row.content)
    said = read_values(statement)
    if said.values or names_in(statement):
        return False
    restricts = cues.CONSTRAINT.search(statement) and content_words(statement) >= _TELLING_WORDS
    names = [name for name in said.names if name.upper() not in statement]  # an acronym is not the name of a thing
    return row.trust == "assistant" or not (names or restricts)


def _was_overcome(failure: Memory, rows: Sequence[Memory]) -> bool:
    """Whether work of the same session came to an outcome after a failure that nothing was concluded from."""
    return any(
        row.session_id == failure.session_id and row.said_at > failure.said_at and row.category == "outcome"
        for row in rows
    )
