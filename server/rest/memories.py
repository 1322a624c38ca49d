"""Routes of memories: write, read, list, expand, forget, recall."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse

from esker.server.core.conversation.records import Passage
from esker.server.core.facts.forgetting import Receipt
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.expansion import Expansion
from esker.server.core.recall.expansion_fit import MIN_TOKENS
from esker.server.core.recall.rendering import recalled_text
from esker.server.core.records import Filter, Kind, Priority, SourcedMemory, at_least
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.document import TEXT_ANSWER
from esker.server.rest.json_route import JsonRoute
from esker.server.rest.schemas import (
    CorrectionIn,
    MemoriesIn,
    MemoriesOut,
    MemoryIn,
    MemoryList,
    PageLimit,
    PassageOut,
    RecallIn,
)
from esker.server.usecases.audit_trail import record_page
from esker.server.usecases.binding import bound_project, bound_recall
from esker.server.usecases.confirm import confirm
from esker.server.usecases.correct import Correction, correct
from esker.server.usecases.expand import MAX_AROUND, MAX_TOKENS, ExpandRequest, expand
from esker.server.usecases.forget import forget_text
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, get_text, list_memories, remember, remember_one

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)


def _note(body: MemoryIn) -> Note:
    return Note(manual=body.kind == "manual", **body.model_dump(exclude={"kind"}))


@router.post("/memories", operation_id="writeMemory", status_code=201)
async def write(body: MemoryIn, parts: WithParts, principal: WithPrincipal) -> SourcedMemory:
    """Write one row. The same external_id, or the same words in the same project and session, give the same row."""
    return await remember_one(parts, principal, _note(body))


@router.post("/memories/batch", operation_id="writeMemories", status_code=201)
async def write_batch(body: MemoriesIn, parts: WithParts, principal: WithPrincipal) -> MemoriesOut:
    """Write up to 1,000 rows, all or none."""
    return MemoriesOut(ids=await remember(parts, principal, [_note(memory) for memory in body.memories]))


@router.get("/memories", operation_id="listMemories")
async def listed(
    parts: WithParts,
    principal: WithPrincipal,
    session_id: str | None = None,
    project: str | None = None,
    kind: Annotated[list[Kind] | None, Query()] = None,
    tag: Annotated[list[str] | None, Query()] = None,
    min_priority: Priority = "low",
    since: datetime | None = None,
    until: datetime | None = None,
    as_of: datetime | None = None,
    include_superseded: bool = False,
    before: str | None = None,
    limit: PageLimit = 100,
) -> MemoryList:
    """List rows, newest first, with the same filters as a recall."""
    filters = Filter(
        moment=parts.clock(),
        session=session_id,
        project=stored_name(bound_project(principal, project)),
        kinds=kind,
        tags=tag,
        priorities=at_least(min_priority),
        since=since,
        until=until,
        as_of=as_of,
        with_superseded=include_superseded,
    )
    found = await list_memories(parts, principal.pool_id, filters, before=before, limit=limit)
    await record_page(parts, principal, "memory.list", principal.pool_name, len(found))
    return MemoryList(memories=found, next=found[-1].id if len(found) == limit else None)


@router.get("/memories/{memory_id}", operation_id="getMemory")
async def memory_by_id(memory_id: str, parts: WithParts, principal: WithPrincipal) -> SourcedMemory | PassageOut:
    """Show one row, superseded or not, with all its sources; or a passage that recall has found."""
    found = await get_text(parts, principal.pool_id, memory_id)
    return PassageOut.model_validate(found) if isinstance(found, Passage) else found


@router.get("/memories/{memory_id}/sources", operation_id="expandMemory")
async def sources(
    memory_id: str,
    parts: WithParts,
    principal: WithPrincipal,
    around: Annotated[int, Query(ge=0, le=MAX_AROUND)] = 2,
    max_tokens: Annotated[int, Query(ge=MIN_TOKENS, le=MAX_TOKENS)] = 10_000,
) -> Expansion:
    """Return the sources of one row, and the messages around them.

    For a passage, return its messages.
    """
    return await expand(parts, principal.pool_id, ExpandRequest(memory_id, around, max_tokens))


@router.patch("/memories/{memory_id}", operation_id="correctMemory")
async def correct_memory(
    memory_id: str, body: CorrectionIn, parts: WithParts, principal: WithPrincipal
) -> SourcedMemory:
    """Replace a live row with a corrected one, which has a new id; the old one is kept as superseded."""
    return await correct(parts, principal, memory_id, Correction(**body.model_dump()))


@router.post("/memories/{memory_id}/confirm", operation_id="confirmMemory")
async def confirm_memory(memory_id: str, parts: WithParts, principal: WithPrincipal) -> SourcedMemory:
    """Confirm a note or a pinned row as a person's word; an agent's is marked in packs until then."""
    return await confirm(parts, principal, memory_id)


@router.delete("/memories/{memory_id}", operation_id="forgetMemory")
async def delete(
    memory_id: str, parts: WithParts, principal: WithPrincipal, messages: bool = False, echoes: bool = True
) -> Receipt:
    """Forget one row and everything drawn from it; with `messages`, also the words of its source messages.

    `echoes` includes rows and messages that only repeat it, such as the assistant's "Understood, …". A passage is
    forgotten with the words of its messages and the rows drawn from them.
    """
    return await forget_text(parts, principal, memory_id, with_messages=messages, echoes=echoes)


@router.post("/recall", operation_id="recallMemories", response_model=Recalled, responses={200: TEXT_ANSWER})
async def recall_memories(
    body: RecallIn, request: Request, parts: WithParts, principal: WithPrincipal
) -> Recalled | PlainTextResponse:
    """Answer a question from memory, or abstain if nothing is about it.

    With `Accept: text/plain` the answer is the text that models read.
    """
    found = await recall(parts, principal.pool_id, bound_recall(principal, RecallRequest(**body.model_dump())))
    return PlainTextResponse(recalled_text(found)) if "text/plain" in request.headers.get("accept", "") else found
