"""The pages of a large pool, over HTTP."""

from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import httpx2

from esker.server.bench.bench_server import BenchServer
from esker.server.bench.figures import BenchFigure, Effort, timed
from esker.server.bench.progress import BenchProgress
from esker.server.bench.texts import Writer
from esker.server.core.text.indexing import indexed_parts
from esker.server.core.text.tokens import estimate_tokens
from esker.server.db.statements import Statements, as_json
from esker.server.rest.access import COOKIE
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.pack import get_pack

SQL = Statements(Path(__file__).parent / "sql/pages.sql")

_MESSAGES = 100
"""Messages of a session, and rows that were taken from it."""
_SENTENCES = 2_000
_STEPS = ("add_sessions", "add_messages", "add_groups", "add_memories", "add_postings", "add_reflections", "add_audit")


async def measure_pages(
    place: BenchServer, rows: int, effort: Effort, progress: BenchProgress
) -> AsyncGenerator[BenchFigure]:
    """Yield the time of each page for a pool of `rows` memories, as many messages and a reflection for a hundred."""
    name = f"pages-{rows}"
    [[pool_id]] = await place.rows("make_pool", {"name": name})
    await _fill(place, pool_id, rows, progress)
    key = (await create_key(place.parts, name="browser", pool=name)).key
    pages = await _addresses(place, pool_id)
    with progress.step(f"Showing pages of {rows:,} rows", len(pages)) as advance:
        for shown, address in pages.items():
            yield await _page(place, f"{rows:,} rows in the pool, {shown}", address, {COOKIE: key}, effort.pages)
            advance(1)


async def _fill(place: BenchServer, pool_id: str, rows: int, progress: BenchProgress) -> None:
    """Fill a pool as if its sessions had been observed and reflected."""
    values = {
        "pool": pool_id,
        "now": place.parts.clock(),
        "sessions": rows // _MESSAGES,
        "messages": _MESSAGES,
        "sentences": as_json(_sentences(rows)),
    }
    with progress.step(f"Filling a pool with {rows:,} rows and their messages", len(_STEPS)) as advance:
        for step in _STEPS:
            await place.owner.execute(SQL[step], values)
            advance(1)
    await place.rows("analyze")


def _sentences(seed: int) -> list[dict[str, object]]:
    """Return sentences with their tokens, their terms and the frequency of each term."""
    writer, made = Writer(seed), list[dict[str, object]]()
    for place in range(_SENTENCES):
        content = writer.sentence()
        [terms] = indexed_parts(content)
        counts = {"tokens": estimate_tokens(content), "terms": terms.total(), "frequencies": terms}
        made.append({"place": place, "content": content, **counts})
    return made


async def _addresses(place: BenchServer, pool_id: str) -> Mapping[str, str]:
    """Return the addresses of all pages by the name of what they show."""
    [[memory, session, reflection, content]] = await (
        await place.owner.execute(SQL["some_ids"], {"pool": pool_id})
    ).fetchall()
    await get_pack(place.parts, pool_id, session)
    question = str(httpx2.QueryParams({"q": Writer(1).question(content)}))
    return {
        "overview": "/",
        "search": f"/ui/search?{question}",
        "memories": "/ui/memories",
        "memories of a project": "/ui/memories?project=project-7&kind=note&min_priority=high",
        "memories, further back": f"/ui/memories?superseded=true&before={memory}",
        "memory": f"/ui/memories/{memory}",
        "forget": f"/ui/memories/{memory}/forget",
        "rows to change": "/ui/bulk?project=project-7&min_priority=high",
        "sessions": "/ui/sessions",
        "sessions of a project": "/ui/sessions?project=project-7",
        "session": f"/ui/sessions/{session}",
        "pack": f"/ui/sessions/{session}/pack",
        "reflections": "/ui/reflections",
        "reflection": f"/ui/reflections/{reflection}",
        "operations": "/ui/operations",
    }


async def _page(place: BenchServer, at: str, address: str, cookies: Mapping[str, str], times: int) -> BenchFigure:
    headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}

    async def show(_: int) -> None:
        (await place.client.get(address, headers=headers)).raise_for_status()

    async def nothing(_: int) -> None:
        (await place.empty.get("/empty")).raise_for_status()

    shown, empty = await timed(times, show, nothing)
    more = {"p95": shown.p95, "floor p95": empty.p95}
    return BenchFigure("page", at, "ms", shown.p50, "an empty FastAPI route", empty.p50, more)
