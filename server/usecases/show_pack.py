"""Show the pack of a session to a person: its text, its rows with the reasons for each, and its versions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from esker.server.core.context.session_memory import PackVersion
from esker.server.core.conversation.records import StoredSession
from esker.server.core.errors import NotFound
from esker.server.core.pack.comparison import PackComparison, VersionRows, compared
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
    """The pack of a session as it is now; None before the first. `rows` are the rows of the explanation by id.

    `comparable` are the versions whose rows are known.
    """

    session: StoredSession
    pack: Pack | None
    explanation: PackExplanation | None
    rows: Mapping[str, Memory]
    versions: list[PackVersion]
    comparable: Collection[int]


async def show_pack(parts: Parts, pool_id: str, session_id: str) -> ShownPack:
    """Return the pack of a session without freezing one. Raises NotFound."""
    async with parts.database.moment(pool_id) as connection:
        session = await sessions.get(connection, session_id)
        pack = await fetch(connection, packs.current(session_id))
        explanation = await packs.explanation(connection, session_id, pack) if pack else None
        decided = [*explanation.rows, *explanation.left_out] if explanation else []
        rows = await memories.get(connection, {row.id for row in decided})
        versions = await packs.versions(connection, session_id, _MOST_VERSIONS)
        known = await packs.rows_of_versions(connection, session_id, [each.version for each in versions])
        return ShownPack(session, pack, explanation, rows, versions, known.keys())


async def compare_packs(parts: Parts, pool_id: str, session_id: str, older: int, newer: int) -> PackComparison:
    """Return the difference between two versions of a session's pack. Raises NotFound if one is not known any more."""
    async with parts.database.moment(pool_id) as connection:
        await sessions.get(connection, session_id)
        frozen = {
            each.version: each.created_at for each in await packs.versions(connection, session_id, _MOST_VERSIONS)
        }
        ids = await packs.rows_of_versions(connection, session_id, (older, newer))
        for version in (older, newer):
            if version not in ids or version not in frozen:
                raise NotFound(
                    f"The rows of version {version} are not kept.",
                    hint=f"Those of {packs.FORMER_WITH_ROWS} former versions are, until a row of them is forgotten.",
                )
        rows = await memories.get(connection, {*ids[older], *ids[newer]})
    before, after = (VersionRows(version, frozen[version], ids[version]) for version in (older, newer))
    return compared(before, after, rows)
