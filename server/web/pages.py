"""All routes of the page."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.routing import BaseRoute

from esker.server.core.errors import NotFound
from esker.server.web import api_docs, bulk, live, login, memories, operations, overview, reflections, search, sessions
from esker.server.web.help import BUILT, help_router
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import HEADERS

_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class _Asset:
    body: bytes
    headers: Mapping[str, str]


def _asset(path: Path) -> _Asset:
    body = path.read_bytes()
    own = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:16]}"', "Cache-Control": "no-cache"}
    return _Asset(body, {**HEADERS, **own, "Content-Type": _TYPES[path.suffix]})


_ASSETS = {path.name: _asset(path) for path in (Path(__file__).parent / "static").iterdir() if path.suffix in _TYPES}


@router.get("/static/{name}")
async def asset(request: Request, name: str) -> Response:
    """Return a style sheet or a script of the page."""
    found = _ASSETS.get(name)
    if found is None:
        raise NotFound(f"The page has no file {name[:80]!r}.")
    if request.headers.get("if-none-match") == found.headers["ETag"]:
        return Response(status_code=304, headers=found.headers)
    return Response(found.body, headers=found.headers)


@router.get("/{path:path}")
async def nothing(path: str) -> Response:
    """Say that no page has this address."""
    raise NotFound(f"There is no page /ui/{path[:80]}.")


def web_routes() -> list[BaseRoute]:
    """Return the routes of the page, and the one that makes links to it."""
    of_pages = (overview, search, memories, bulk, sessions, reflections, operations, live, api_docs, login)
    routers = [*(each.router for each in of_pages), router, help_router(BUILT), login.links_router]
    return [route for each in routers for route in each.routes]
