"""The audit trail: who wrote, read in bulk, exported, forgot or changed keys. It has ids and counts, no content."""

from collections.abc import Mapping

from esker.server.core.json_input import Json
from esker.server.core.records import AuditEntry, Principal
from esker.server.store import audit
from esker.server.usecases.parts import Parts

BULK_ROWS = 50
"""The number of rows from which a page counts as read in bulk."""


async def record(parts: Parts, who: Principal, action: str, target: str, detail: Mapping[str, Json]) -> None:
    """Record that a caller did something that has no transaction of its own."""
    async with parts.database.tenant(who.pool_id) as connection:
        await audit.insert(connection, who.actor, action, target, detail, parts.clock())


async def record_page(parts: Parts, who: Principal, action: str, target: str, rows: int) -> None:
    """Record that a caller read a page, if it is a large one."""
    if rows >= BULK_ROWS:
        await record(parts, who, action, target, {"rows": rows})


async def read_audit(
    parts: Parts, pool_id: str, *, actor: str | None, action: str | None, before: int | None, limit: int
) -> list[AuditEntry]:
    """Return entries of a pool, newest first: those before an id, of an actor, of an action or a group of them."""
    async with parts.database.tenant(pool_id) as connection:
        return await audit.listed(connection, actor=actor, action=action, before=before, limit=limit)
