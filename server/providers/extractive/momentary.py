"""Whether a row only helped at the moment: progress, a passing state, chatter, a request that was fulfilled.

Such rows have a low priority, but so have details. A row of low priority stays if it is a statement that the extractive
observer looks for (a finding, an outcome, something left open), if it tells of no speaker, or if it names something
that can be looked up. Progress reports, pleasantries and measurements of a tool are dropped.
"""

from collections.abc import Sequence

from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.words.lists import Cue, words
from esker.server.providers.extractive import cues
from esker.server.providers.extractive.passed_over import SPEAKER, tells
from esker.server.providers.extractive.values import read_values
from esker.server.providers.extractive.weighing import content_words

# Maximum tokens of a request that says nothing besides its task.
_BARE_REQUEST_TOKENS = 16
# Minimum content words of a person's restriction ("identifiers stay English") that is kept without a name or value. A
# higher value drops more rulings in plain words; a lower one keeps more chatter.
_TELLING_WORDS = 4
_LOOKED_FOR = (labels.FOUND, labels.LEFT_OPEN, labels.OUTCOME, labels.COMMITTED)
_EXPLAINING = Cue(*words("reflector.explaining"))


def is_momentary(row: Memory, rows: Sequence[Memory]) -> bool:
    """Whether a row says nothing that helps later; `rows` are those that are left, by time."""
    if cues.PASSING.search(without_label(row.content)):
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


def _says_little(row: Memory) -> bool:
    """Whether a row is a step or general talk of the assistant, or names nothing that can be looked up."""
    if row.trust == "assistant" and (row.category == "next_step" or tells(_EXPLAINING, row.content)):
        return True
    statement = without_label(row.content)
    said = read_values(statement)
    if said.values:
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
