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
        return await recall(parts, _principal(request).pool_id, arguments)

    async def expanded(request: Request, arguments: ExpandRequest) -> Expansion:
        return await expand(parts, _principal(request).pool_id, arguments)

    async def remembered(request: Request, note: Note) -> SourcedMemory:
        return await remember_one(parts, _allowed(request, "write"), note)

    async def corrected(request: Request, memory_id: str, correction: Correction) -> SourcedMemory:
        return await correct(parts, _allowed(request, "write"), memory_id, correction)

    async def forgotten(request: Request, text_id: str, with_messages: bool) -> Receipt:
        return await forget_text(parts, _allowed(request, "forget"), text_id, with_messages=with_messages)

    async def status(request: Request) -> PoolStatus:
        principal = _principal(request)
        return await pool_status(parts, principal.pool_id, principal.pool_name)

    async def read(request: Request, text_id: str) -> SourcedMemory | Passage:
        return await get_text(parts, _principal(request).pool_id, text_id)

    async def pack(request: Request, session_id: str) -> str:
        return (await get_pack(parts, _principal(request).pool_id, session_id)).text

    async def briefing(request: Request, project: str | None) -> str:
        return (await give_briefing(parts, _principal(request).pool_id, project, TOKENS)).text

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
