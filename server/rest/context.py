"""The dependencies of routes: the parts of the server, and the principal of the request.

They are coroutines, although they wait for nothing: FastAPI runs plain functions in threads, which takes longer.
"""

from typing import Annotated

from fastapi import Depends, Request

from esker.server.core.records import Principal
from esker.server.usecases.binding import check_pack, check_session, parts_for
from esker.server.usecases.parts import Parts


async def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts_for(parts, getattr(request.state, "principal", None))


async def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


WithParts = Annotated[Parts, Depends(_parts)]
WithPrincipal = Annotated[Principal, Depends(_principal)]


async def _written(session_id: str, parts: WithParts, principal: WithPrincipal) -> None:
    await check_session(parts, principal, session_id)


async def _packed(session_id: str, parts: WithParts, principal: WithPrincipal) -> None:
    await check_pack(parts, principal, session_id)


WRITES_SESSION = [Depends(_written)]
"""The dependencies of a route that writes the session of its address: a bound key may not write every session."""
SHOWS_PACK = [Depends(_packed)]
"""Those of a route that shows the pack of the session, which is frozen if there is none."""
