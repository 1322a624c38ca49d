"""Routes about the caller's key, and the audit trail of its pool."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from esker.server.core.records import AuditEntry
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import StrictRoute
from esker.server.rest.schemas import PageLimit
from esker.server.usecases.audit_trail import read_audit
from esker.server.usecases.authenticate import SCOPES

router = APIRouter(prefix="/v1", tags=["keys"], route_class=StrictRoute)


@dataclass(frozen=True, slots=True)
class Caller:
    """A request's key: its pool, its scopes, and the client and the project that it is bound to.

    `id` is `local` for the owner without a key.
    """

    id: str
    pool: str
    scopes: list[str]
    client: str | None
    project: str | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries of the audit trail, newest first; `next` is the `before` of the next page."""

    entries: list[AuditEntry]
    next: int | None


@router.get("/key", operation_id="getKey")
async def own_key(principal: WithPrincipal) -> Caller:
    """Show the pool, the scopes and the binding of the request's key."""
    scopes = [each for each in SCOPES if each in principal.scopes]
    return Caller(principal.actor, principal.pool_name, scopes, principal.client, principal.project)


@router.get("/audit", operation_id="listAudit")
async def audit_trail(
    parts: WithParts,
    principal: WithPrincipal,
    actor: Annotated[str | None, Query(max_length=200)] = None,
    action: Annotated[str | None, Query(max_length=200)] = None,
    before: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    limit: PageLimit = 100,
) -> AuditPage:
    """List who wrote, read in bulk, exported, forgot or changed keys, newest first; needs the scope `admin`.

    `action` is one action, such as `memory.write`, or the part before the dot for all of that part.
    """
    found = await read_audit(parts, principal.pool_id, actor=actor, action=action, before=before, limit=limit)
    return AuditPage(found, found[-1].id if len(found) == limit else None)
