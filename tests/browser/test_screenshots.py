"""The screenshots of the documentation, of the transcript of `esker demo`; `make screenshots` takes them again."""

import asyncio
from contextlib import closing
from importlib.resources import as_file, files
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Browser

from esker.server.agents.api import Api
from esker.server.agents.claude_code import read_transcript
from esker.server.agents.sending import SendReport, send
from tests.browser.conftest import opened_page
from tests.support.kept_servers import KeptServer

PICTURES = Path(__file__).parents[2] / "docs/pictures"
PROJECT = "ferry-booking"


def ingested(url: str) -> list[str]:
    """Send the sample transcript as a client does, and return its sessions."""
    sent = SendReport()
    with closing(Api(url, None)) as api:
        for sample in files("esker.server.agents").joinpath("samples").iterdir():
            with as_file(sample) as path:
                for transcript in read_transcript(path).transcripts:
                    send(api, transcript, sent, lambda _: None)
    return list(sent.sessions)


@pytest.mark.slow
async def test_the_pages_of_the_sample_are_shown_in_the_documentation(
    browser: Browser, client: httpx2.AsyncClient, kept_server: KeptServer
) -> None:
    [session, *_] = await asyncio.to_thread(ingested, kept_server.url)
    await client.post(f"/v1/sessions/{session}/observe?wait=true")
    pinned = {"content": "Bookings are never deleted, only cancelled.", "kind": "manual", "project": PROJECT}
    await client.post("/v1/memories", json=pinned)
    await client.post(f"/v1/sessions/{session}/reflect?wait=true")
    await client.get(f"/v1/sessions/{session}/pack")
    page = await opened_page(browser, kept_server, viewport={"width": 1000, "height": 760})
    for name, path in (
        ("overview", "/"),
        ("search", "/ui/search?q=how+do+migrations+get+their+numbers"),
        ("session", f"/ui/sessions/{session}"),
        ("pack", f"/ui/sessions/{session}/pack"),
    ):
        answer = await page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        await page.screenshot(path=PICTURES / f"page-{name}.png")
