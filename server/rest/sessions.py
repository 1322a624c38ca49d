"""Routes of sessions: open, add messages, observe, reflect, events, pack, context, usage."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from esker.server.core.conversation.records import IngestReport
from esker.server.core.page_cursor import PageCursor, read_cursor
from esker.server.core.records import TokenUse
from esker.server.core.reports import ObserveReport
from esker.server.rest.context import Asking, WithParts
from esker.server.rest.json_route import JsonRoute
from esker.server.rest.schemas import (
    ContextIn,
    ContextOut,
    EventIn,
    ExplainedPackOut,
    MessageList,
    MessageOut,
    MessagesIn,
    PackOut,
    PageLimit,
    SessionDetail,
    SessionIn,
    SessionList,
    SessionMemoryOut,
    SessionOut,
    UsageIn,
)
from esker.server.usecases.build_context import ContextRequest, build_context
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe
from esker.server.usecases.open_session import SessionRequest, get_session, list_messages, list_sessions, open_session
from esker.server.usecases.pack import explain_pack, get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.receive_event import EventReport, receive_event
from esker.server.usecases.record_usage import UsageAnswer, UsageRequest, record_usage
from esker.server.usecases.reflect import ReflectReport, reflect
from esker.server.usecases.session_memory import session_memory

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)


@router.post("")
async def open_or_find(body: SessionIn, parts: WithParts, asking: Asking) -> SessionOut:
    """Find or make a session. The same client and external_id always give the same session."""
    asked = SessionRequest(**body.model_dump())
    return SessionOut.model_validate(await open_session(parts, asking.pool_id, asked))


@router.get("")
async def listed(
    parts: WithParts,
    asking: Asking,
    external_id: str | None = None,
    unobserved: bool = False,
    unreflected: bool = False,
    before: str | None = None,
    limit: PageLimit = 100,
) -> SessionList:
    """List sessions, the last that began first: all, or those that are unobserved or have observations to reflect."""
    found = await list_sessions(
        parts,
        asking.pool_id,
        external_id=external_id,
        unobserved=unobserved,
        unreflected=unreflected,
        before=read_cursor(before) if before else None,
        limit=limit,
    )
    following = str(PageCursor(found[-1].begun_at, found[-1].id)) if len(found) == limit else None
    return SessionList(sessions=[SessionOut.model_validate(session) for session in found], next=following)


@router.get("/{session_id}")
async def one(session_id: str, parts: WithParts, asking: Asking) -> SessionDetail:
    """Show a session, its counters and its jobs."""
    found = await get_session(parts, asking.pool_id, session_id)
    counted = {"groups": found.groups, "observations": found.observations, "jobs": found.jobs}
    covered = {"coverage": round(found.coverage, 6), "lost": found.lost}
    return SessionDetail.model_validate({**asdict(found.session), **counted, **covered})


@router.get("/{session_id}/messages")
async def messages(
    session_id: str, parts: WithParts, asking: Asking, after: Annotated[int, Query(ge=0)] = 0, limit: PageLimit = 100
) -> MessageList:
    """List the messages of a session as they are kept, oldest first, behind the message number `after`."""
    found = await list_messages(parts, asking.pool_id, session_id, after=after, limit=limit)
    shown = [MessageOut.model_validate(message) for message in found]
    return MessageList(messages=shown, next=found[-1].seq if len(found) == limit else None)


@router.post("/{session_id}/messages")
async def add_messages(session_id: str, body: MessagesIn, parts: WithParts, asking: Asking) -> IngestReport:
    """Store new messages, whole batch or nothing. A message whose external_id is known is a duplicate."""
    batch = [IncomingMessage(m.external_id, m.role, m.content, m.sent_at) for m in body.messages]
    return await ingest(parts, asking.pool_id, session_id, batch)


@router.post("/{session_id}/observe")
async def observe_session(
    session_id: str, response: Response, parts: WithParts, asking: Asking, wait: bool = False
) -> ObserveReport:
    """Have everything observed that the session holds by now; with `wait`, before answering."""
    report = await observe(parts, asking.pool_id, session_id, wait=wait)
    response.status_code = 202 if report.queued else 200
    return report


@router.post("/{session_id}/reflect")
async def reflect_session(
    session_id: str, response: Response, parts: WithParts, asking: Asking, wait: bool = False
) -> ReflectReport:
    """Have the session's memories condensed; with `wait`, before answering."""
    report = await reflect(parts, asking.pool_id, session_id, wait=wait)
    response.status_code = 202 if report.queued else 200
    return report


@router.post("/{session_id}/events", status_code=202)
async def event(session_id: str, body: EventIn, parts: WithParts, asking: Asking) -> EventReport:
    """Tell what happened to the client's context; told again under the same dedupe_key it changes nothing."""
    return await receive_event(parts, asking.pool_id, session_id, body.kind, body.dedupe_key)


@router.get(
    "/{session_id}/pack",
    response_model=PackOut | ExplainedPackOut,
    responses={200: {"content": {"text/plain": {}}}},
)
async def pack(
    session_id: str,
    request: Request,
    parts: WithParts,
    asking: Asking,
    explain: bool = False,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return the session's pack: as JSON, or the text alone for `Accept: text/plain`. Its ETag is its hash.

    With `explain` it is JSON in any case, with what decided about each row.
    """
    if explain:
        return JSONResponse((await _explained(parts, asking.pool_id, session_id)).model_dump(mode="json"))
    found = await get_pack(parts, asking.pool_id, session_id)
    headers = {"ETag": f'"{found.sha256}"', "Vary": "Accept", "Cache-Control": "no-cache"}
    if if_none_match and found.sha256 in if_none_match:
        return Response(status_code=304, headers=headers)
    if "text/plain" in request.headers.get("accept", ""):
        return PlainTextResponse(found.text, headers=headers | {"Esker-Pack-Version": str(found.version)})
    shown = PackOut.model_validate(found, from_attributes=True)
    return JSONResponse(shown.model_dump(mode="json"), headers=headers)


async def _explained(parts: Parts, pool_id: str, session_id: str) -> ExplainedPackOut:
    found, explanation = await explain_pack(parts, pool_id, session_id)
    return ExplainedPackOut(**asdict(found), explanation=explanation)


@router.post("/{session_id}/context")
async def context(session_id: str, body: ContextIn, parts: WithParts, asking: Asking) -> ContextOut:
    """Return what to send to the Messages API next: `system`, in stable order, and `messages`."""
    asked = ContextRequest(
        system=body.blocks,
        keep_last_messages=body.keep_last_messages,
        message_tokens=body.message_tokens,
        recall=body.recall or None,
    )
    return ContextOut.model_validate(await build_context(parts, asking.pool_id, session_id, asked))


@router.post("/{session_id}/usage")
async def usage(session_id: str, body: UsageIn, parts: WithParts, asking: Asking) -> UsageAnswer:
    """Count what a call of a model used; told again under the same request_id it changes nothing."""
    used = TokenUse(
        input_tokens=body.input_tokens,
        output_tokens=body.output_tokens,
        cache_write_tokens=body.cache_creation_input_tokens,
        cache_read_tokens=body.cache_read_input_tokens,
    )
    return await record_usage(parts, asking.pool_id, session_id, UsageRequest(used, body.model, body.request_id))


@router.get("/{session_id}/memory")
async def memory(session_id: str, parts: WithParts, asking: Asking) -> SessionMemoryOut:
    """Show all about the memory of a session: counters, packs, groups, jobs, usage and savings."""
    return SessionMemoryOut.model_validate(await session_memory(parts, asking.pool_id, session_id))
