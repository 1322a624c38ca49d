"""The dependencies of routes: the parts of the server, and the principal of the request."""

from typing import Annotated

from fastapi import Depends, Request

from esker.server.core.records import Principal
from esker.server.usecases.parts import Parts


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


def _principal(request: Request) -> Principal:
    principal: Principal = request.state.principal
    return principal


WithParts = Annotated[Parts, Depends(_parts)]
WithPrincipal = Annotated[Principal, Depends(_principal)]
