"""Turns that are stored and have other ids, since the client has left out the turns before them.

A turn of words is known by its words and those before it. A client that compacts its conversation may keep some of its
turns, such as all prompts or the latest answer, and they have other turns before them then.
"""

from collections.abc import Mapping, Sequence

from esker.server.agents.content import Block, as_list
from esker.server.core.conversation.records import Role
from esker.server.core.json_input import as_object
from esker.server.core.redaction import redact_content
from esker.server.gateway.identity import KnownTurn, has_calls, identified
from esker.server.gateway.records import Turn
from esker.server.usecases.kept_messages import KeptMessage


def stored_ids(turns: Sequence[KnownTurn], kept: Sequence[KeptMessage]) -> Mapping[str, str]:
    """Return the ids of turns that are stored, and those under which they are, if these are others.

    Turns are matched in their order. The latest prompt and all behind it is new, unless the compaction happened in the
    middle of the work on that prompt: then the latest message kept is no answer.
    """
    places = {each.external_id: place for place, each in enumerate(kept)}
    said = [_said(each.role, each.content) for each in kept]
    found: dict[str, str] = {}
    place = 0
    for turn in turns[: _end(turns, kept)]:
        if turn.id in places:
            place = max(place, places[turn.id] + 1)
        elif not has_calls(turn.content):
            own = _said(turn.role, turn.content)
            at = next((at for at in range(place, len(kept)) if said[at] == own), None)
            if at is not None:
                found[turn.id], place = kept[at].external_id, at + 1
    return found


def _end(turns: Sequence[KnownTurn], kept: Sequence[KeptMessage]) -> int:
    """Return how many turns may be stored."""
    prompts = [place for place, turn in enumerate(turns) if turn.role == "user" and not has_calls(turn.content)]
    if not prompts or not kept:
        return 0
    is_answered = kept[-1].role == "assistant" and kept[-1].content is not None
    return prompts[-1] if is_answered else prompts[-1] + 1


def _said(role: Role, content: Sequence[Block] | None) -> str | None:
    """Return a hash of the words of a message, as they are stored; None if it has calls or nothing was said."""
    if content is None:
        return None
    known = identified([Turn(role, [*map(as_object, as_list(redact_content([*content])))])])
    return known[0].said if known else None
