"""Whether a row is a question or an offer that the conversation has moved on from.

The ruling or the answer that followed is a row of its own. The last question of a session may still be open.
"""

import re
from collections.abc import Sequence

from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import own_statement, without_label
from esker.server.core.words.lists import Cue, any_of, words
from esker.server.providers.extractive import cues

SPEAKER = re.compile(any_of(words("reflector.speakers")), re.IGNORECASE)
"""The speaker at the beginning of a row that tells what the user or the assistant said or did."""
_ASKING = Cue(*words("reflector.asking"))
_OFFERING = Cue(*words("reflector.offering"))
# Maximum characters of a row up to the word that tells what the speaker did.
_WITHIN = 40
# Categories of rows that can leave something unsettled.
_UNSETTLED = ("fact", "issue", "next_step")
_STATEMENT = re.compile("[:：]")


def is_question(content: str) -> bool:
    """Whether a row is a question, or tells that a speaker asked something."""
    return content.startswith(labels.ASKED) or cues.asks(own_statement(content)) or tells(_ASKING, content)


def is_passed_over(row: Memory, rows: Sequence[Memory]) -> bool:
    """Whether a row is a question or an offer, and the user stated something later in its session.

    A question or an offer of the assistant is also passed over if a later session took place; an offer that gives a
    cause tells more than the offer, and is not. A reflection settles nothing: the rows that it was drawn from did.
    """
    if row.priority == "high" or row.trust not in ("user", "assistant") or row.category not in _UNSETTLED:
        return False
    offers = row.trust == "assistant" and tells(_OFFERING, row.content) and not cues.CAUSE.search(row.content)
    if not is_question(row.content) and not offers:
        return False
    later = [other for other in rows if other.said_at > row.said_at and other.kind == "observation"]
    if row.trust == "assistant" and any(other.session_id != row.session_id for other in later):
        return True
    return any(
        other.trust == "user" and other.session_id == row.session_id and not is_question(other.content)
        for other in later
    )


def tells(kind: Cue, content: str) -> bool:
    """Whether a row begins with a speaker and tells what the speaker did, in words of some kind."""
    said = without_label(content)
    speaker = SPEAKER.match(said)
    if not speaker:
        return False
    telling = _STATEMENT.split(said[speaker.end() : _WITHIN])[0]
    return bool(kind.search(telling))
