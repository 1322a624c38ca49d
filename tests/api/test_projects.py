"""One repository is one project: its name has one form, whatever case and slashes its clients write."""

from typing import Any

import httpx2
import pytest

from esker.server.core.project_names import project_name
from tests.support.api import opened, said

SPELLINGS = ["acme/shop", "Acme/Shop", "ACME/SHOP"]
PATHS = ["c:/work/shop", r"C:\Work\Shop", r"c:\work/SHOP"]


async def answered(client: httpx2.AsyncClient, method: str, path: str, **more: Any) -> Any:
    """Return the answer to a request."""
    answer = await client.request(method, path, **more)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


@pytest.mark.parametrize("spellings", [SPELLINGS, PATHS])
async def test_a_project_is_found_in_every_spelling(client: httpx2.AsyncClient, spellings: list[str]) -> None:
    first, second, third = spellings
    notes = [
        await answered(client, "POST", "/v1/memories", json={"content": f"Lamp {n} is red.", "project": spelling})
        for n, spelling in enumerate(spellings)
    ]
    assert {note["project"] for note in notes} == {first}
    session = await opened(client, "s1", project=second)
    await said(client, session, "The lamp shop opens at nine.")
    assert (await answered(client, "GET", f"/v1/sessions/{session}"))["project"] == first
    for spelling in spellings:
        listed = await answered(client, "GET", "/v1/memories", params={"project": spelling})
        assert len(listed["memories"]) == 3
        found = await answered(client, "POST", "/v1/recall", json={"query": "lamp", "project": spelling})
        assert (len(found["hits"]), found["unknown_project"]) == (4, None)
        briefing = await answered(client, "GET", "/v1/briefing", params={"project": spelling})
        assert briefing["unknown_project"] is None
    limits = {"project": third, "dry_run": True}
    plan = await answered(client, "POST", "/v1/forget", json=limits)
    assert {note["id"] for note in notes} <= {row["id"] for row in plan["memories"]}
    quarantined = await answered(client, "POST", "/v1/quarantines", json={"project": third})
    assert quarantined["memories"] == 3


def test_only_a_windows_directory_has_other_slashes() -> None:
    assert project_name(r"\\Host\Share\Shop") == "//host/share/shop"
    assert project_name(r"Acme\Shop") == r"acme\shop"
    assert project_name("Größe/ÄPFEL") == "größe/äpfel"
