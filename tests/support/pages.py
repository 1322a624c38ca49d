"""A pool for the page with something of every kind, whose words would be scripts if a page did not escape them."""

from dataclasses import dataclass

import httpx2

from tests.support.api import observed, opened, said
from tests.support.reflecting import OVERTAKEN

HOSTILE = [
    "<script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "\"><svg onload=document.title='broken'>",
    "'\"--></style></script><script>document.title='broken'</script>",
    "<a href=\"javascript:document.title='broken'\">here</a>",
    "{{ 7 * 7 }}{% raw %}",
    "<iframe srcdoc=\"<script>parent.document.title='broken'</script>\"></iframe>",
    "</textarea><script>document.title='broken'</script>",
    "</pre></title><script>document.title='broken'</script>",
]
"""Words that run as a script, or as a template, on a page that does not escape them."""

_UNUSUAL: list[dict[str, object]] = [
    {"type": "tool_result"},
    {"type": "tool_use", "id": "t2", "name": "run"},
    {"type": "image", "source": {"type": "base64"}},
]
"""Blocks without their usual parts."""


@dataclass(frozen=True, slots=True)
class ShownPool:
    """The addresses of the pages of one pool, and a live note in it."""

    paths: list[str]
    note: str


async def shown_pool(client: httpx2.AsyncClient) -> ShownPool:
    """Fill the default pool, and return the addresses of its pages."""
    session = await opened(client, HOSTILE[0], project=HOSTILE[1], cwd=HOSTILE[2])
    every = "\n".join(HOSTILE)
    called = {"type": "tool_use", "id": "t1", "name": "run", "input": {"command": every}}
    parts = [{"type": "text", "text": every}, {"type": "image", "source": {"data": every}}, every]
    result = {"type": "tool_result", "tool_use_id": "t1", "content": parts}
    await said(client, session, *OVERTAKEN)
    await said(client, session, {"external_id": "said", "role": "user", "content": f"We decided: use {every}"})
    await said(client, session, {"external_id": "called", "role": "assistant", "content": [called]})
    await said(client, session, {"external_id": "result", "role": "user", "content": [result, *_UNUSUAL]})
    await observed(client, session)
    # A filled table of savings is wider than a phone, and so is its head.
    used = {"input_tokens": 1_234_567, "output_tokens": 20, "cache_read_input_tokens": 2_345_678}
    await client.post(f"/v1/sessions/{session}/usage", json=used | {"model": "claude-sonnet-5", "request_id": "r"})
    reflected = (await client.post(f"/v1/sessions/{session}/reflect?wait=true")).json()
    for kind in ("note", "manual"):
        body = {"content": f"The {kind} is {every}", "kind": kind, "project": HOSTILE[1], "tags": [HOSTILE[3]]}
        note = (await client.post("/v1/memories", json=body)).json()["id"]
    await client.get(f"/v1/sessions/{session}/pack")
    await client.post(f"/v1/sessions/{session}/events", json={"kind": "evicted"})
    await client.get(f"/v1/sessions/{session}/pack")
    own = [
        f"/ui/memories/{note}",
        f"/ui/memories/{note}/forget?messages=true",
        f"/ui/sessions/{session}",
        f"/ui/sessions/{session}/pack",
        f"/ui/sessions/{session}/pack/changes?older=1&newer=2",
        f"/ui/bulk/forget?id={note}",
        f"/ui/reflections/{reflected['reflection_ids'][0]}",
    ]
    lists = [
        "/",
        "/ui/search?q=note",
        "/ui/memories",
        "/ui/sessions",
        "/ui/reflections",
        "/ui/operations",
        "/ui/login",
        "/ui/bulk",
        "/docs",
    ]
    return ShownPool([*lists, *own], note)
