"""Routes of a pool's file: export line by line, import part by part."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.json_route import StrictRoute
from esker.server.rest.limits import Places
from esker.server.rest.pacing import Pacing
from esker.server.usecases.audit_trail import record
from esker.server.usecases.export import export
from esker.server.usecases.import_pool import ImportReport, import_pool

router = APIRouter(prefix="/v1", tags=["pool"], route_class=StrictRoute)

LINES = "application/x-ndjson"
_LINES_CONTENT: dict[str, Any] = {
    LINES: {
        "schema": {
            "type": "string",
            "format": "binary",
            "description": "One JSON document a line, each of them a `PoolLine`.",
        }
    }
}
_CHUNK_BYTES = 64 * 1024
EXPORTS = 4
"""The most exports that run at once, each on a connection to the database of its own."""
EXPORTS_OF_POOL = 2
_RETRY_SECONDS = 10.0


class _Lines(StreamingResponse):
    """A stream of lines; its resources are released as soon as the client disconnects."""

    def __init__(self, lines: AsyncGenerator[bytes], held: AsyncExitStack) -> None:
        super().__init__(lines, media_type=LINES)
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)


@router.get(
    "/export",
    operation_id="exportPool",
    response_class=StreamingResponse,
    responses={200: {"description": "The lines, sent as a stream.", "content": _LINES_CONTENT}},
)
async def export_all(request: Request, parts: WithParts, principal: WithPrincipal) -> Response:
    """Export the pool's memory as JSON lines. A file without an `end` line was truncated."""
    places: Places = request.app.state.exports
    async with AsyncExitStack() as held:
        refusal = "Too many exports are running."
        held.enter_context(places.take(principal.pool_id, refusal, seconds=_RETRY_SECONDS))
        await record(parts, principal, "pool.export", principal.pool_name, {})
        lines = await held.enter_async_context(aclosing(export(parts, principal.pool_id, principal.pool_name)))
        # Get the first line before the response starts, so that an early failure becomes an error answer.
        first = await anext(lines)
        chunks = await held.enter_async_context(aclosing(_joined(first, lines)))
        return _Lines(chunks, held.pop_all())


async def _joined(first: bytes, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield lines in chunks, since sending each line by itself would be slow."""
    chunk = bytearray(first)
    async for line in lines:
        chunk += line
        if len(chunk) >= _CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
    yield bytes(chunk)


@router.post(
    "/import",
    operation_id="importPool",
    response_model=ImportReport,
    openapi_extra={"requestBody": {"content": _LINES_CONTENT, "required": True}},
)
async def import_some(
    request: Request, parts: WithParts, principal: WithPrincipal, first_line: Annotated[int, Query(ge=2)] = 2
) -> ImportReport | Response:
    """Import a part of such a file: its header and any number of lines, all or none.

    Send the parts in the order of the file; `first_line` is the number of the first line after the header, for errors.
    """
    try:
        body = await request.body()
    except ClientDisconnect:
        return Response(status_code=499)  # the client has gone; an incomplete request changes nothing
    imports: Pacing = request.app.state.imports
    async with imports.turn():
        return await import_pool(parts, principal, body, first_line)
