"""Routes of sessions: open, add messages, observe, reflect, events, pack, context, usage."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from esker.server.core.conversation.records import IngestReport
from esker.server.core.page_cursor import PageCursor, read_cursor
from esker.server.core.records import TokenUse
from esker.server.core.reports import ObserveReport
from esker.server.rest.context import SHOWS_PACK, WRITES_SESSION, WithParts, WithPrincipal
from esker.server.rest.document import TEXT_ANSWER
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
from esker.server.usecases.audit_trail import record_page
from esker.server.usecases.binding import bound_project, check_client
from esker.server.usecases.build_context import ContextRequest, build_context
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.observe import observe
from esker.server.usecases.open_session import SessionRequest, get_session, list_messages, list_sessions, open_session
from esker.server.usecases.pack import explain_pack, get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.receive_event import EventReport, receive_event
from esker.server.usecases.record_usage import UsageAnswer, UsageRequest, record_usage
from esker.server.usecases.reflect import ReflectReport, reflect
from esker.server.usecases.session_memory import session_memory

router = APIRouter(prefix="/v1/sessions", tags=["sessions"], route_class=JsonRoute)


@router.post("", operation_id="openSession")
async def open_or_find(body: SessionIn, parts: WithParts, principal: WithPrincipal) -> SessionOut:
    """Find or create a session. The same client and external_id always give the same session."""
    check_client(principal, body.client)
    request_fields = SessionRequest(
        **body.model_dump(exclude={"project"}), project=bound_project(principal, body.project)
    )
    return SessionOut.model_validate(await open_session(parts, principal.pool_id, request_fields))


@router.get("", operation_id="listSessions")
async def listed(
    parts: WithParts,
    principal: WithPrincipal,
    external_id: str | None = None,
    project: str | None = None,
    unobserved: bool = False,
    unreflected: bool = False,
    before: str | None = None,
    limit: PageLimit = 100,
) -> SessionList:
    """List sessions, the most recently begun first; of a project, or with something to observe or to reflect."""
    found = await list_sessions(
        parts,
        principal.pool_id,
        external_id=external_id,
        # A key of a project that names none lists the sessions of no project, too.
        project=stored_name(bound_project(principal, project)) if project else None,
        unobserved=unobserved,
        unreflected=unreflected,
        before=read_cursor(before) if before else None,
        limit=limit,
    )
    next_cursor = str(PageCursor(found[-1].begun_at, found[-1].id)) if len(found) == limit else None
    return SessionList(sessions=[SessionOut.model_validate(session) for session in found], next=next_cursor)


@router.get("/{session_id}", operation_id="getSession")
async def session_by_id(session_id: str, parts: WithParts, principal: WithPrincipal) -> SessionDetail:
    """Show a session, its counters and its jobs."""
    found = await get_session(parts, principal.pool_id, session_id)
    counted = {"groups": found.groups, "observations": found.observations, "jobs": found.jobs}
    coverage = {"coverage": round(found.coverage, 6), "lost": found.lost}
    return SessionDetail.model_validate({**asdict(found.session), **counted, **coverage})


@router.get("/{session_id}/messages", operation_id="listMessages")
async def messages(
    session_id: str,
    parts: WithParts,
    principal: WithPrincipal,
    after: Annotated[int, Query(ge=0)] = 0,
    limit: PageLimit = 100,
) -> MessageList:
    """List the stored messages of a session, oldest first, after the message number `after`."""
    found = await list_messages(parts, principal.pool_id, session_id, after=after, limit=limit)
    await record_page(parts, principal, "session.read", session_id, len(found))
    shown = [MessageOut.model_validate(message) for message in found]
    return MessageList(messages=shown, next=found[-1].seq if len(found) == limit else None)


@router.post("/{session_id}/messages", operation_id="addMessages", dependencies=WRITES_SESSION)
async def add_messages(session_id: str, body: MessagesIn, parts: WithParts, principal: WithPrincipal) -> IngestReport:
    """Store new messages, all or none. A message whose external_id is already stored is a duplicate.

    With the `id_scope` `client`, so is a copy of a message that another session of the client has.
    """
    batch = [IncomingMessage(m.external_id, m.role, m.content, m.sent_at, m.id_scope) for m in body.messages]
    return await ingest(parts, principal.pool_id, session_id, batch, actor=principal.actor)


@router.post(
    "/{session_id}/observe",
    operation_id="observeSession",
    dependencies=WRITES_SESSION,
    responses={202: {"model": ObserveReport}},
)
async def observe_session(
    session_id: str, response: Response, parts: WithParts, principal: WithPrincipal, wait: bool = False
) -> ObserveReport:
    """Observe everything that the session contains by now; with `wait`, before answering."""
    report = await observe(parts, principal.pool_id, session_id, wait=wait)
    response.status_code = 202 if report.queued else 200
    return report


@router.post(
    "/{session_id}/reflect",
    operation_id="reflectSession",
    dependencies=WRITES_SESSION,
    responses={202: {"model": ReflectReport}},
)
async def reflect_session(
    session_id: str, response: Response, parts: WithParts, principal: WithPrincipal, wait: bool = False
) -> ReflectReport:
    """Condense the session's memories; with `wait`, before answering."""
    report = await reflect(parts, principal.pool_id, session_id, wait=wait)
    response.status_code = 202 if report.queued else 200
    return report


@router.post("/{session_id}/events", operation_id="reportEvent", dependencies=WRITES_SESSION, status_code=202)
async def event(session_id: str, body: EventIn, parts: WithParts, principal: WithPrincipal) -> EventReport:
    """Report an event of the client's context; repeating it with the same dedupe_key changes nothing."""
    return await receive_event(parts, principal.pool_id, session_id, body.kind, body.dedupe_key)


@router.get(
    "/{session_id}/pack",
    operation_id="getPack",
    dependencies=SHOWS_PACK,
    response_model=ExplainedPackOut | PackOut,
    responses={200: TEXT_ANSWER, 304: {"description": "The client has this pack already."}},
)
async def pack(
    session_id: str,
    request: Request,
    parts: WithParts,
    principal: WithPrincipal,
    explain: bool = False,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Return the session's pack: as JSON, or only the text for `Accept: text/plain`. Its ETag is its hash.

    With `explain` it is always JSON, with the reason for each row.
    """
    if explain:
        return JSONResponse((await _explained(parts, principal.pool_id, session_id)).model_dump(mode="json"))
    found = await get_pack(parts, principal.pool_id, session_id)
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


@router.post("/{session_id}/context", operation_id="buildContext", dependencies=SHOWS_PACK)
async def context(session_id: str, body: ContextIn, parts: WithParts, principal: WithPrincipal) -> ContextOut:
    """Return the next request to the Messages API: `system`, in stable order, and `messages`."""
    request_fields = ContextRequest(
        system=body.blocks,
        keep_last_messages=body.keep_last_messages,
        message_tokens=body.message_tokens,
        recall=body.recall or None,
    )
    return ContextOut.model_validate(await build_context(parts, principal.pool_id, session_id, request_fields))


@router.post("/{session_id}/usage", operation_id="reportUsage", dependencies=WRITES_SESSION)
async def usage(session_id: str, body: UsageIn, parts: WithParts, principal: WithPrincipal) -> UsageAnswer:
    """Record the usage of a model call; repeating it with the same request_id changes nothing."""
    used = TokenUse(
        input_tokens=body.input_tokens,
        output_tokens=body.output_tokens,
        cache_write_tokens=body.cache_creation_input_tokens,
        cache_read_tokens=body.cache_read_input_tokens,
    )
    return await record_usage(parts, principal.pool_id, session_id, UsageRequest(used, body.model, body.request_id))


@router.get("/{session_id}/memory", operation_id="getSessionMemory")
async def memory(session_id: str, parts: WithParts, principal: WithPrincipal) -> SessionMemoryOut:
    """Show the memory of a session: counters, packs, groups, jobs, usage and savings."""
    return SessionMemoryOut.model_validate(await session_memory(parts, principal.pool_id, session_id))
