"""Routes of forgetting, quarantine and retention."""

from fastapi import APIRouter

from esker.server.core.conversation.retention import Retention
from esker.server.core.facts.forgetting import ForgetPlan, ForgetRequest, Proof, Quarantined, Receipt, Selection
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import JsonRoute
from esker.server.rest.schemas import ForgetIn, QuarantineIn, QuarantineList, RetentionIn
from esker.server.usecases.forget import forget, plan_forgetting
from esker.server.usecases.prove_forgotten import Lifted, lift_tombstones, prove_forgotten
from esker.server.usecases.quarantine import begin_quarantine, lift_quarantine, list_quarantines
from esker.server.usecases.retain import get_retention, set_retention

router = APIRouter(prefix="/v1", tags=["forgetting"], route_class=JsonRoute)


@router.post("/forget", operation_id="forgetSelected", response_model=Receipt | ForgetPlan)
async def forget_selected(body: ForgetIn, parts: WithParts, principal: WithPrincipal) -> Receipt | ForgetPlan:
    """Forget what is named by ids, words or limits; with `dry_run`, only show what would be forgotten.

    Words find every text that says one of them. Limits narrow that, or, without words, select everything within them.
    """
    chosen = Selection(**body.model_dump(exclude={"messages", "echoes", "dry_run"}))
    request = ForgetRequest(chosen, body.messages, body.echoes)
    if body.dry_run:
        return await plan_forgetting(parts, principal.pool_id, request)
    return await forget(parts, principal, request)


@router.get("/forget/{receipt_id}", operation_id="proveForgotten")
async def prove(receipt_id: str, parts: WithParts, principal: WithPrincipal) -> Proof:
    """Search every text of the pool for what a receipt forgot, and count what is left."""
    return await prove_forgotten(parts, principal.pool_id, receipt_id)


@router.delete("/forget/{receipt_id}", operation_id="allowForgotten")
async def lift(receipt_id: str, parts: WithParts, principal: WithPrincipal) -> Lifted:
    """Let what a receipt forgot be said again: an import or a transcript may bring it back."""
    return await lift_tombstones(parts, principal, receipt_id)


@router.post("/quarantines", operation_id="beginQuarantine", status_code=201)
async def begin(body: QuarantineIn, parts: WithParts, principal: WithPrincipal) -> Quarantined:
    """Take everything within some limits out of recall and packs, with all that was drawn from it, until lifted."""
    return await begin_quarantine(parts, principal, Selection(**body.model_dump()))


@router.get("/quarantines", operation_id="listQuarantines")
async def listed(parts: WithParts, principal: WithPrincipal) -> QuarantineList:
    """List quarantines, the latest first."""
    return QuarantineList(quarantines=await list_quarantines(parts, principal.pool_id))


@router.delete("/quarantines/{quarantine_id}", operation_id="liftQuarantine")
async def end(quarantine_id: str, parts: WithParts, principal: WithPrincipal) -> Quarantined:
    """Lift a quarantine: everything returns to its state before."""
    return await lift_quarantine(parts, principal, quarantine_id)


@router.get("/retention", operation_id="getRetention")
async def retention(parts: WithParts, principal: WithPrincipal) -> Retention:
    """Return for how many days the pool keeps what; null, or a kind that is not named: for ever."""
    return await get_retention(parts, principal.pool_id)


@router.put("/retention", operation_id="setRetention")
async def keep(body: RetentionIn, parts: WithParts, principal: WithPrincipal) -> Retention:
    """Set for how many days the pool keeps messages, images, passages, and memories by kind."""
    return await set_retention(parts, principal, Retention(**body.model_dump()))
