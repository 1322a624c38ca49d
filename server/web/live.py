"""Live figures: a stream of server-sent events with the work that waits, and how many rows are new."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from esker.server.core.errors import EskerError, Forbidden
from esker.server.core.records import Principal
from esker.server.rest.context import WithParts, WithPrincipal
from esker.server.rest.limits import Places
from esker.server.usecases.live_figures import live_figures
from esker.server.usecases.parts import Parts
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import HEADERS, milliseconds

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)

STREAMS = 60
"""The most streams of a server at once."""
STREAMS_OF_KEY = 4
"""The most of one key: a browser has six connections to a server, and needs some of them for pages."""
_LOOK_SECONDS = 2.0
_QUIET_LOOKS = 8
"""Checks without a change after which a comment is sent, to show that the connection is alive."""
_LONGEST_SECONDS = 300.0
"""The longest stream; then the browser connects again, so that a key which was revoked meanwhile sees nothing more."""
_OLDEST = timedelta(days=1)
_RETRY_SECONDS = 30.0


class _Events(StreamingResponse):
    """A stream of events, which gives back its place when it ends, also when the client is gone."""

    def __init__(self, events: AsyncGenerator[str], place: ExitStack) -> None:
        super().__init__(events, headers={**HEADERS, "X-Accel-Buffering": "no"}, media_type="text/event-stream")
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._place:
            await super().__call__(scope, receive, send)


@router.get("/events")
async def show_events(request: Request, parts: WithParts, principal: WithPrincipal) -> Response:
    """Send the live figures whenever they change, until the browser leaves or the server stops."""
    if request.method == "HEAD":
        return Response(headers=HEADERS, media_type="text/event-stream")
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise Forbidden("Another site may not listen to this server.")
    places: Places = request.app.state.live_pages
    stopping: asyncio.Event = request.app.state.stopping
    last_id = request.headers.get("last-event-id") or request.query_params.get("since")
    since = _since(last_id, parts.clock())
    with ExitStack() as place:
        refusal = "Too many pages of this key are open."
        place.enter_context(places.take(_holder(principal), refusal, seconds=_RETRY_SECONDS))
        return _Events(_events(parts, principal.pool_id, since, stopping), place.pop_all())


def _holder(principal: Principal) -> str:
    return f"{principal.pool_id} {principal.actor}"


def _since(last_id: str | None, now: datetime) -> datetime:
    """Return since when rows are new: since the page was made, as its stream says in milliseconds, or since now."""
    with suppress(ValueError, OverflowError, OSError):
        before = datetime.fromtimestamp(int(last_id or "") / 1_000, UTC)
        if now - _OLDEST <= before <= now:
            return before
    return now


async def _events(parts: Parts, pool_id: str, since: datetime, stopping: asyncio.Event) -> AsyncGenerator[str]:
    ends = asyncio.get_running_loop().time() + _LONGEST_SECONDS
    shown, quiet = "", 0
    while not stopping.is_set() and asyncio.get_running_loop().time() < ends:
        with suppress(EskerError):  # the database is away; the next look may find it
            found = json.dumps(asdict(await live_figures(parts, pool_id, since)))
            if found != shown:
                shown, quiet = found, 0
                yield f"id: {milliseconds(since)}\nevent: figures\ndata: {found}\n\n"
        quiet += 1
        if quiet % _QUIET_LOOKS == 0:
            yield ": nothing new\n\n"
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                await stopping.wait()
