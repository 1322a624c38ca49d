"""Sign in to the page: by a key, which the browser keeps in a cookie, or by a link that works once."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from esker.server.core.errors import NotFound
from esker.server.rest.access import COOKIE
from esker.server.rest.json_route import StrictRoute
from esker.server.web.page_route import FormText, PageRoute, own_address
from esker.server.web.rendering import HEADERS, page

LINK_SECONDS = 60
"""Seconds in which a link has to be opened."""

router = APIRouter(prefix="/ui", route_class=PageRoute, include_in_schema=False)
links_router = APIRouter(prefix="/v1", tags=["keys"], route_class=StrictRoute)


@dataclass(frozen=True, slots=True)
class LoginLink:
    """A link that opens the page once, within `seconds`, with the key of the request. `path` is below the server."""

    path: str
    seconds: int


class LoginLinks:
    """The keys behind links that were not opened yet. They stay in this process's memory for a minute."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns seconds."""
        self._clock = clock
        self._keys: dict[str, tuple[str, float]] = {}

    def made(self, key: str) -> str:
        """Return a new code for a key."""
        now = self._clock()
        self._keys = {code: kept for code, kept in self._keys.items() if kept[1] > now}
        code = secrets.token_urlsafe(24)
        self._keys[code] = (key, now + LINK_SECONDS)
        return code

    def taken(self, code: str) -> str:
        """Return the key of a code, which works no second time. Raises NotFound."""
        key, until = self._keys.pop(code, ("", 0.0))
        if until <= self._clock():
            raise NotFound(
                "This link was used before, or is older than a minute.", hint="`esker open` makes a new one."
            )
        return key


@links_router.post("/login-links", operation_id="createLoginLink", status_code=201)
async def make_link(request: Request) -> LoginLink:
    """Make a link that signs a browser in to the page with the key of this request."""
    key = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not key:
        return LoginLink("/", LINK_SECONDS)  # the owner's browser needs no key, as long as none exists
    links: LoginLinks = request.app.state.login_links
    return LoginLink(f"/ui/link/{links.made(key)}", LINK_SECONDS)


@router.get("/login")
async def show_login(request: Request) -> Response:
    """Ask for a key."""
    return page(request, "login.html", problem=None, back="")


@router.post("/login")
async def log_in(request: Request, key: FormText, back: FormText = "") -> Response:
    """Keep a key in the browser, and show the page that was asked for, whose request checks the key."""
    if not key.strip().isascii() or not key.strip():
        return page(request, "login.html", 401, problem="This is not a key.", back=own_address(back) or "")
    return _signed_in(request, key.strip(), own_address(back) or "/")


@router.get("/link/{code}")
async def open_link(request: Request, code: str) -> Response:
    """Sign in with a link that works once."""
    if request.method == "HEAD":  # a chat that looks at a link must not use it up
        return Response(headers=HEADERS)
    links: LoginLinks = request.app.state.login_links
    return _signed_in(request, links.taken(code))


@router.post("/logout")
async def log_out() -> Response:
    """Delete the key from the browser."""
    answer = RedirectResponse("/ui/login", 303, HEADERS)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer


def _signed_in(request: Request, key: str, address: str = "/") -> Response:
    answer = RedirectResponse(address, 303, HEADERS)
    # A proxy that speaks TLS says so; a liar only gets a cookie that is sent less often.
    is_secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    # `lax`: a link in a chat opens the page, and no form of another site carries the key.
    answer.set_cookie(COOKIE, key, httponly=True, samesite="lax", secure=is_secure)
    return answer
