"""The documentation at `/help`: the site that `make docs` builds, if this installation has it."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from esker.server.core.errors import NotFound
from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import HEADERS, page

BUILT = Path(__file__).parent / "help"
"""The folder of the built site. It is in a wheel that was made after `make docs`."""
_HEADERS = {**HEADERS, "Cache-Control": "no-cache"}


def help_router(site: Path) -> APIRouter:
    """Return the routes that show the site in a folder, or say how to get one if there is none."""
    router = APIRouter(prefix="/help", route_class=PageRoute, include_in_schema=False)
    files = StaticFiles(directory=site, html=True, check_dir=False)

    @router.get("")
    async def go_to_contents() -> Response:
        """Go to the first page: its links are relative to a folder."""
        return RedirectResponse("/help/", 308, _HEADERS)

    @router.get("/{path:path}")
    async def show_help(request: Request, path: str) -> Response:
        """Return a page of the site, or a file that it loads."""
        if not (site / "index.html").is_file():
            return page(request, "no_help.html")
        try:
            answer = await files.get_response(path or ".", request.scope)
        except HTTPException:
            raise NotFound(f"The documentation has no page {path[:80]!r}.", hint="/help/ is its first page.") from None
        answer.headers.update(_HEADERS)
        return answer

    return router
