"""One browser for all tests of the page."""

import shutil
from collections.abc import AsyncGenerator

import pytest
from playwright.async_api import Browser, Page, async_playwright

from tests.support.kept_servers import KeptServer
from tests.support.waiting import PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# A browser of a test asks nobody but the server of the test, and root has no sandbox.
_ALONE = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"]
_ALONE += ["disable-component-update", "disable-sync", "disable-extensions", "mute-audio"]
# A process for each page and one for drawing would take longer to start than the page to load.
_ALONE += ["renderer-process-limit=1", "in-process-gpu"]


@pytest.fixture(scope="package")
async def chromium() -> AsyncGenerator[Browser]:
    """A Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not here; Debian has the package chromium")
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[f"--{flag}" for flag in _ALONE], timeout=PATIENCE * 1_000
        )
        yield started
        await started.close()


@pytest.fixture
async def browser(chromium: Browser) -> AsyncGenerator[Browser]:
    """The browser, which is left without pages: they would go on asking the server while other tests run."""
    yield chromium
    for context in chromium.contexts:
        await context.close()


async def opened_page(browser: Browser, server: KeptServer, **options: object) -> Page:
    """Return a page of a browser that knows the server's address and waits as long as tests do."""
    context = await browser.new_context(base_url=server.url, **options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE * 1_000)
    return await context.new_page()
