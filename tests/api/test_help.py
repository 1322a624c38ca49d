"""The documentation at `/help`: pages and their files under the policy of every page, or how to get them."""

from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from esker.server.app import make_parts
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.rest.access import is_open
from esker.server.web.help import help_router


def browser(site: Path) -> httpx2.AsyncClient:
    """Return a client of an app that shows the site in a folder."""
    app = FastAPI()
    app.state.parts = make_parts(Settings(embedder="none"), Database("postgresql://nowhere"))
    app.include_router(help_router(site))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://help")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of two pages and a script, beside a file that is not part of it."""
    for name, text in {"index.html": "Contents", "api/index.html": "Routes", "assets/a.js": "1", "../key": "s"}.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "site"


async def test_pages_and_files_of_the_site_are_shown_under_the_policy_of_pages(site: Path) -> None:
    async with browser(site) as client:
        assert (await client.get("/help")).headers["location"] == "/help/"
        for path, text in {"/help/": "Contents", "/help/api/": "Routes", "/help/assets/a.js": "1"}.items():
            answer = await client.get(path)
            assert (answer.status_code, answer.text) == (200, text)
            assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
            known = await client.get(path, headers={"If-None-Match": answer.headers["etag"]})
            assert (known.status_code, known.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/help/nowhere/", "/help/%2e%2e/key", "/help/..%2fkey", "/help/api/%2e%2e/%2e%2e/key"]
)
async def test_an_address_without_a_page_says_so_and_leads_nowhere_else(site: Path, path: str) -> None:
    async with browser(site) as client:
        answer = await client.get(path)
    assert (answer.status_code, "The documentation has no page" in answer.text) == (404, True)


async def test_an_installation_without_the_site_says_how_to_get_it(tmp_path: Path) -> None:
    async with browser(tmp_path / "none") as client:
        answer = await client.get("/help/")
    assert (answer.status_code, "make docs" in answer.text) == (200, True)


def test_the_documentation_needs_no_key_and_nothing_beside_it_is_open() -> None:
    assert [path for path in ("/help", "/help/", "/help/api/") if not is_open(path)] == []
    assert [path for path in ("/helpers", "/v1/help/", "/ui/help/x") if is_open(path)] == []
