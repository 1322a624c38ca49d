"""Routes of a pool's file: everything out, line by line, and in again, part by part."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from esker.server.rest.context import Asking, WithParts
from esker.server.rest.json_route import StrictRoute
from esker.server.usecases.export import export
from esker.server.usecases.import_pool import ImportReport, import_pool

router = APIRouter(prefix="/v1", tags=["pool"], route_class=StrictRoute)

LINES = "application/x-ndjson"
_AT_ONCE = 64 * 1024


class _Lines(StreamingResponse):
    """Lines as they are made. Whoever makes them is told at once when nobody reads on."""

    def __init__(self, lines: AsyncGenerator[bytes]) -> None:
        super().__init__(lines, media_type=LINES)
        self._lines = lines

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._lines):
            await super().__call__(scope, receive, send)


@router.get("/export", response_class=StreamingResponse, responses={200: {"content": {LINES: {}}}})
async def export_all(parts: WithParts, asking: Asking) -> Response:
    """Write all that the pool remembers, as it is now, a JSON document a line. A file without an `end` was cut off."""
    lines = export(parts, asking.pool_id, asking.pool_name)
    # What fails at once is told as an error, and not as a file that breaks off.
    first = await anext(lines)
    return _Lines(_joined(first, lines))


async def _joined(first: bytes, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """Yield lines together, as sending each by itself would take longer than reading it."""
    async with aclosing(lines):
        held = bytearray(first)
        async for line in lines:
            held += line
            if len(held) >= _AT_ONCE:
                yield bytes(held)
                held.clear()
        yield bytes(held)


@router.post(
    "/import",
    response_model=ImportReport,
    openapi_extra={"requestBody": {"content": {LINES: {}}, "required": True}},
)
async def import_some(
    request: Request, parts: WithParts, asking: Asking, first_line: Annotated[int, Query(ge=2)] = 2
) -> ImportReport | Response:
    """Write a part of such a file: its header, and any number of lines behind it, all or none.

    Parts come in the order of the file; `first_line` is the number of the line behind the header, for errors.
    """
    try:
        body = await request.body()
    except ClientDisconnect:
        return Response(status_code=499)  # nobody reads it; what was not sent whole changes nothing
    return await import_pool(parts, asking, body, first_line)
