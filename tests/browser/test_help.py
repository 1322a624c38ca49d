"""The documentation in a real browser: the policy stops nothing, nothing comes from elsewhere, and search works."""

import pytest
from playwright.async_api import Browser, Request

from esker.server.web.help import BUILT
from tests.browser.conftest import opened_page
from tests.support.kept_servers import KeptServer

pytestmark = pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="`make docs` was not run")


async def test_pages_search_and_pictures_work_under_the_policy(browser: Browser, kept_server: KeptServer) -> None:
    page = await opened_page(browser, kept_server)
    errors: list[str] = []
    foreign: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith((kept_server.url, "data:", "blob:")):
            foreign.append(request.url)

    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", note)
    await page.goto("/help")
    assert await page.locator("img[src$='overview.svg']").evaluate("image => image.naturalWidth") > 0
    await page.locator("[data-md-component=search-query]").click()
    await page.keyboard.type("half-life")
    await page.locator(".md-search-result__item").first.wait_for()
    await page.keyboard.press("Escape")
    await page.get_by_role("link", name="Claude Code").first.click()
    await page.wait_for_url("**/help/start/claude-code/")
    assert (errors, foreign) == ([], [])
    await page.context.close()
