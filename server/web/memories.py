"""Memories: a list with filters, and one row with its evidence, from where it is edited, confirmed and forgotten."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse

from esker.server.core.recall.expansion import ExpandedMemory
from esker.server.core.records import KINDS, PRIORITIES, Priority
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.usecases.audit_trail import record_page
from esker.server.usecases.confirm import confirm
from esker.server.usecases.correct import Correction, correct
from esker.server.usecases.expand import ExpandRequest, expand
from esker.server.usecases.find_projects import project_names
from esker.server.usecases.remember import list_memories
from esker.server.web.forgetting import plan_page, receipt_page
from esker.server.web.page_route import FormText, PageRoute, own_address
from esker.server.web.rendering import HEADERS, page
from esker.server.web.row_filter import WithRowFilter
from esker.server.web.search import MOST_PROJECTS

router = APIRouter(prefix="/ui/memories", route_class=PageRoute, include_in_schema=False)

_ON_A_PAGE = 50
_AROUND = 2
_EVIDENCE_TOKENS = 20_000


@router.get("")
async def show_memories(
    request: Request,
    chosen: WithRowFilter,
    parts: WithParts,
    principal: WithPrincipal,
    before: str | None = None,
) -> Response:
    """List rows, newest first."""
    since = parts.clock()
    found = await list_memories(parts, principal.pool_id, chosen.rows, before=before, limit=_ON_A_PAGE)
    await record_page(parts, principal, "memory.list", principal.pool_name, len(found))
    return page(
        request,
        "memories.html",
        rows=found,
        since=since,
        next=found[-1].id if len(found) == _ON_A_PAGE else None,
        chosen=chosen,
        kinds=KINDS,
        priorities=PRIORITIES,
        projects=await project_names(parts, principal.pool_id, MOST_PROJECTS),
        query=request.query_params,
    )


@router.get("/{memory_id}")
async def show_memory(request: Request, memory_id: str, parts: WithParts, principal: WithPrincipal) -> Response:
    """Show one row, or a passage, with the rows that it was drawn from and the messages in which it was said."""
    found = await expand(parts, principal.pool_id, ExpandRequest(memory_id, _AROUND, _EVIDENCE_TOKENS))
    is_memory = isinstance(found.expanded, ExpandedMemory)
    return page(request, "memory.html", found=found, is_memory=is_memory, priorities=PRIORITIES)


@router.post("/{memory_id}/edit")
async def edit(
    memory_id: str,
    content: FormText,
    priority: Annotated[Priority, Form()],
    parts: WithParts,
    principal: WithPrincipal,
) -> Response:
    """Replace a row by one with other words or another priority, and show the new one."""
    row = await correct(parts, principal, memory_id, Correction(content=content.strip(), priority=priority))
    return RedirectResponse(f"/ui/memories/{row.id}", 303, HEADERS)


@router.post("/{memory_id}/pin")
async def pin(
    memory_id: str,
    parts: WithParts,
    principal: WithPrincipal,
    pinned: Annotated[bool, Form()] = False,
    back: FormText = "",
) -> Response:
    """Put a row first in every pack, or let it take its place by its rank again."""
    row = await correct(parts, principal, memory_id, Correction(pinned=pinned))
    return RedirectResponse(own_address(back) or f"/ui/memories/{row.id}", 303, HEADERS)


@router.post("/{memory_id}/priority")
async def prioritise(
    memory_id: str,
    priority: Annotated[Priority, Form()],
    parts: WithParts,
    principal: WithPrincipal,
    back: FormText = "",
) -> Response:
    """Give a row another priority."""
    row = await correct(parts, principal, memory_id, Correction(priority=priority))
    return RedirectResponse(own_address(back) or f"/ui/memories/{row.id}", 303, HEADERS)


@router.post("/{memory_id}/confirm")
async def confirm_row(memory_id: str, parts: WithParts, principal: WithPrincipal) -> Response:
    """Confirm a row that an agent wrote as a person's word."""
    row = await confirm(parts, principal, memory_id)
    return RedirectResponse(f"/ui/memories/{row.id}", 303, HEADERS)


@router.get("/{memory_id}/forget")
async def show_forgetting(
    request: Request,
    memory_id: str,
    parts: WithParts,
    principal: WithPrincipal,
    messages: Annotated[bool, Query()] = False,
) -> Response:
    """Show all that would be forgotten with a row; nothing changes."""
    return await plan_page(request, parts, principal, [memory_id], messages=messages)


@router.post("/{memory_id}/forget")
async def forget_row(
    request: Request,
    memory_id: str,
    parts: WithParts,
    principal: WithPrincipal,
    shown: FormText,
    messages: Annotated[bool, Form()] = False,
) -> Response:
    """Forget a row with everything that was drawn from it or repeats it, and show the receipt."""
    return await receipt_page(request, parts, principal, [memory_id], messages=messages, shown=shown)
