"""Show the pack of a session to a person: its text, its rows with the reasons for each, and its versions."""

from collections.abc import Mapping
from dataclasses import dataclass

from esker.server.core.context.session_memory import PackVersion
from esker.server.core.conversation.records import StoredSession
from esker.server.core.pack.reasons import PackExplanation
from esker.server.core.pack.records import Pack
from esker.server.core.records import Memory
from esker.server.db.pipeline import fetch
from esker.server.store import memories, packs, sessions
from esker.server.usecases.parts import Parts

# Most versions that are shown.
_MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class ShownPack:
    """The pack of a session as it is now; None before the first. `rows` are the rows of the explanation by id."""

    session: StoredSession
    pack: Pack | None
    explanation: PackExplanation | None
    rows: Mapping[str, Memory]
    versions: list[PackVersion]


async def show_pack(parts: Parts, pool_id: str, session_id: str) -> ShownPack:
    """Return the pack of a session without freezing one. Raises NotFound."""
    async with parts.database.moment(pool_id) as connection:
        session = await sessions.get(connection, session_id)
        pack = await fetch(connection, packs.current(session_id))
        explanation = await packs.explanation(connection, session_id, pack) if pack else None
        decided = [*explanation.rows, *explanation.left_out] if explanation else []
        rows = await memories.get(connection, {row.id for row in decided})
        return ShownPack(session, pack, explanation, rows, await packs.versions(connection, session_id, _MOST_VERSIONS))
