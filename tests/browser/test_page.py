"""The page in a real browser: by mouse, by keyboard, for screen readers, at phone width, with hostile memories."""

import asyncio
from typing import Any

import httpx2
import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, ConsoleMessage, Page, Route, ViewportSize

from tests.browser.conftest import opened_page
from tests.support.kept_servers import KeptServer
from tests.support.pages import HOSTILE, ShownPool, shown_pool

AXE = Axe()
DESKTOP, PHONE = ViewportSize(width=1280, height=720), ViewportSize(width=360, height=700)


@pytest.fixture
async def pool(client: httpx2.AsyncClient) -> ShownPool:
    """A pool whose words would be scripts if a page did not escape them."""
    return await shown_pool(client)


def errors_of(page: Page) -> list[str]:
    """Return a list to which a page's errors will be added; a script that its policy blocks is one."""
    errors: list[str] = []

    def keep(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    page.on("console", keep)
    page.on("pageerror", lambda error: errors.append(str(error)))
    return errors


async def test_no_page_runs_a_memory_has_a_barrier_or_is_wider_than_a_phone(
    browser: Browser, pool: ShownPool, kept_server: KeptServer
) -> None:
    page = await opened_page(browser, kept_server)
    errors = errors_of(page)
    for path in pool.paths:
        await page.set_viewport_size(DESKTOP)
        await page.emulate_media(color_scheme="light")
        await page.goto(path)
        assert (await page.title()).endswith(" · Esker"), path
        assert errors == [], path
        if path == "/docs":  # its sections are alike, and axe takes half a minute for all of them
            await page.evaluate(
                "document.querySelectorAll('section:nth-of-type(n + 3)').forEach(each => each.remove())"
            )
        assert await barriers(page) == [], path
        await page.emulate_media(color_scheme="dark")
        assert await barriers(page, "color-contrast") == [], path
        await page.set_viewport_size(PHONE)
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], path


async def barriers(page: Page, *rules: str) -> Any:
    """Return what keeps people out of a page, by all rules or by some."""
    # axe is a script of the test, which the page's policy keeps out; the tool brings it in from outside.
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.axe_script)
    only = {"runOnly": list(rules)} if rules else {}
    found = await page.evaluate("given => axe.run(given)", {"resultTypes": ["violations"], **only})
    return found["violations"]


async def test_search_answers_while_one_types(browser: Browser, pool: ShownPool, kept_server: KeptServer) -> None:
    page = await opened_page(browser, kept_server)
    await page.goto("/ui/search")
    await page.get_by_label("Question").press_sequentially("what is the note")
    first = page.locator("#hits li").first
    await first.wait_for()
    assert HOSTILE[0] in (await first.inner_text())
    assert "q=what" in page.url
    announced = await page.locator("main [role=status]").inner_text()
    assert ("found" in announced, HOSTILE[0] in announced) == (True, False)
    assert await page.locator("[aria-live]").count() == 0
    await first.get_by_text("Score").click()
    assert "Rank by words" in (await first.inner_text())
    assert (await page.title()) == "Search · Esker"


async def press_until(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate("given => document.activeElement.matches(given)", selector):
            return
    pytest.fail(f"{selector} cannot be reached by Tab on {page.url}")


async def test_a_row_is_found_edited_and_forgotten_by_keyboard_alone(
    browser: Browser, pool: ShownPool, kept_server: KeptServer
) -> None:
    page = await opened_page(browser, kept_server)
    await page.goto("/")

    await press_until(page, "input[type=search]")
    await page.keyboard.type("note")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/ui/search?q=note")
    await press_until(page, "#hits a[href^='/ui/memories/']")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/ui/memories/*")
    await press_until(page, "textarea")
    await page.keyboard.press("Control+A")
    await page.keyboard.type("The note is short.")
    await press_until(page, "form[action$='/edit'] button")
    await page.keyboard.press("Enter")
    await page.get_by_text("The note is short.").first.wait_for()
    await press_until(page, "a[href$='/forget']")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/forget")
    await press_until(page, "button.danger")
    await page.keyboard.press("Enter")
    await page.get_by_text("It is forgotten").wait_for()


async def test_the_page_works_without_scripts(browser: Browser, pool: ShownPool, kept_server: KeptServer) -> None:
    page = await opened_page(browser, kept_server, java_script_enabled=False)
    await page.goto("/")
    await page.get_by_placeholder("Ask memory a question").fill("note")
    await asyncio.gather(page.wait_for_url("**/ui/search?q=note"), page.get_by_role("button", name="Search").click())
    assert await page.locator("#hits li").count() > 0


async def test_memories_are_announced_that_came_after_the_page_was_made(
    browser: Browser, client: httpx2.AsyncClient, kept_server: KeptServer
) -> None:
    page = await opened_page(browser, kept_server)
    errors = errors_of(page)

    async def begin_late(stream: Route) -> None:
        await client.post("/v1/memories", json={"content": "The boat is blue."})
        await stream.continue_()

    # The page is made, and its stream of events has not begun yet.
    await page.route("**/ui/events*", begin_late, times=1)
    await page.goto("/ui/memories")
    await page.get_by_role("link", name="1 new. Show them").click()
    await page.get_by_text("The boat is blue.").wait_for()
    assert errors == []


LOOKS = """hidden => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


async def test_a_tab_that_nobody_looks_at_lets_go_and_tells_later_what_came(
    browser: Browser, client: httpx2.AsyncClient, kept_server: KeptServer
) -> None:
    page = await opened_page(browser, kept_server)
    await page.goto("/ui/memories")
    await client.post("/v1/memories", json={"content": "The boat is blue."})
    await page.get_by_text("1 new").wait_for()
    async with page.expect_event("requestfailed", lambda request: "/ui/events" in request.url):
        await page.evaluate(LOOKS, arg=True)
    await client.post("/v1/memories", json={"content": "The mast is green."})
    await page.evaluate(LOOKS, arg=False)
    await page.get_by_text("2 new").wait_for()


async def test_open_tabs_keep_no_other_page_waiting(browser: Browser, kept_server: KeptServer) -> None:
    tabs = (await opened_page(browser, kept_server)).context
    for _ in range(7):  # a browser has six connections to a server
        await (await tabs.new_page()).goto("/ui/memories")


async def test_rows_are_chosen_and_changed_by_keyboard_alone(
    browser: Browser, pool: ShownPool, kept_server: KeptServer
) -> None:
    page = await opened_page(browser, kept_server)
    await page.goto("/ui/bulk?kind=manual")
    await press_until(page, "[data-all]")
    await page.keyboard.press("Space")
    assert await page.locator("input[name=id]:checked").count() == 0
    await press_until(page, f"input[value={pool.note}]")
    await page.keyboard.press("Space")
    await press_until(page, "button[formmethod=get]")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/ui/bulk/forget?*")
    await press_until(page, "button.danger")
    await page.keyboard.press("Enter")
    await page.get_by_text("It is forgotten").wait_for()
