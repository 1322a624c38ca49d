"""The timeline of a session: its messages, the groups that cover them, and the rows that were taken from them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from esker.server.core.conversation.records import Group, StoredMessage, StoredSession
from esker.server.core.records import Memory
from esker.server.db.pipeline import fetch
from esker.server.store import groups, memories, messages, sessions
from esker.server.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class Moment:
    """A message, the group that begins with it, and the rows that were taken from it, replaced ones included."""

    message: StoredMessage
    group: Group | None
    rows: list[Memory]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A part of a session in the order of its messages. `reflections` names the one that condensed a row, by its id."""

    session: StoredSession
    moments: list[Moment]
    reflections: Mapping[str, str]


async def get_timeline(parts: Parts, pool_id: str, session_id: str, *, after: int, limit: int) -> Timeline:
    """Return the moments of a session that follow the message number `after`. Raises NotFound."""
    async with parts.database.moment(pool_id) as connection:
        session = await sessions.get(connection, session_id)
        found = await messages.listed(connection, session_id, after, limit)
        seqs = {message.seq for message in found}
        taken = await memories.get(connection, await memories.taken_from(connection, session_id, seqs))
        by = await memories.get(connection, {row.superseded_by for row in taken.values() if row.superseded_by})
        began = {group.first_seq: group for group in (await fetch(connection, groups.of_session(session_id))).values()}
    of_message: dict[int, list[Memory]] = {seq: [] for seq in seqs}
    for row in sorted(taken.values(), key=lambda row: row.id):
        # A row that was said again has its own messages first, which may be on another page.
        own = [seq for seq in row.source_seqs if seq in seqs and row.session_id == session_id]
        if own:
            of_message[own[0]].append(row)
    moments = [Moment(each, began.get(each.seq), of_message[each.seq]) for each in found]
    return Timeline(session, moments, _reflections(taken.values(), by))


def _reflections(rows: Iterable[Memory], by: Mapping[str, Memory]) -> dict[str, str]:
    """Return the reflection that superseded each of some rows, by a row of it or as a whole; others are left out."""
    found: dict[str, str] = {}
    for row in rows:
        superseder = row.superseded_by or ""
        reflection = superseder if superseder.startswith("ref_") else superseder in by and by[superseder].reflection_id
        if reflection:
            found[row.id] = reflection
    return found
