"""The in-process backend: the tools over HTTP call the use cases, for the pool of the request's key."""

from starlette.requests import Request

from esker.server.core.conversation.records import Passage
from esker.server.core.facts.forgetting import Receipt
from esker.server.core.pack.briefing import TOKENS
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.expansion import Expansion
from esker.server.core.records import Principal, SourcedMemory
from esker.server.core.reports import PoolStatus
from esker.server.tools.backend import Backend
from esker.server.usecases.authenticate import check_scope
from esker.server.usecases.binding import bound_project, bound_recall, check_pack, parts_for
from esker.server.usecases.correct import Correction, correct
from esker.server.usecases.expand import ExpandRequest, expand
from esker.server.usecases.forget import forget_text
from esker.server.usecases.give_briefing import give_briefing
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.pool_status import pool_status
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, get_text, remember_one


def backend_of(parts: Parts) -> Backend:
    """Return the backend that calls the use cases."""

    async def recalled(request: Request, arguments: RecallRequest) -> Recalled:
        who = _principal(request)
        return await recall(parts_for(parts, who), who.pool_id, bound_recall(who, arguments))

    async def expanded(request: Request, arguments: ExpandRequest) -> Expansion:
        who = _principal(request)
        return await expand(parts_for(parts, who), who.pool_id, arguments)

    async def remembered(request: Request, note: Note) -> SourcedMemory:
        who = _allowed(request, "write")
        return await remember_one(parts_for(parts, who), who, note)

    async def corrected(request: Request, memory_id: str, correction: Correction) -> SourcedMemory:
        who = _allowed(request, "write")
        return await correct(parts_for(parts, who), who, memory_id, correction)

    async def forgotten(request: Request, text_id: str, with_messages: bool) -> Receipt:
        who = _allowed(request, "forget")
        return await forget_text(parts_for(parts, who), who, text_id, with_messages=with_messages)

    async def status(request: Request) -> PoolStatus:
        who = _principal(request)
        return await pool_status(parts_for(parts, who), who.pool_id, who.pool_name)

    async def read(request: Request, text_id: str) -> SourcedMemory | Passage:
        who = _principal(request)
        return await get_text(parts_for(parts, who), who.pool_id, text_id)

    async def pack(request: Request, session_id: str) -> str:
        who = _principal(request)
        bound = parts_for(parts, who)
        await check_pack(bound, who, session_id)
        return (await get_pack(bound, who.pool_id, session_id)).text

    async def briefing(request: Request, project: str | None) -> str:
        who = _principal(request)
        return (await give_briefing(parts_for(parts, who), who.pool_id, bound_project(who, project), TOKENS)).text

    return Backend(recalled, expanded, remembered, corrected, forgotten, status, read, pack, briefing, _scopes)


def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


async def _scopes(request: Request) -> frozenset[str]:
    return _principal(request).scopes


def _allowed(request: Request, scope: str) -> Principal:
    """Return the principal of a request. Raises Forbidden if its key does not have the scope."""
    principal = _principal(request)
    check_scope(principal, scope)
    return principal
