"""Metrics and readiness: they say how the server is, also while the database is away or refuses writes."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import LiteralString

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import DiskFull, ReadOnlySqlTransaction, UniqueViolation

from esker.server.app import make_parts
from esker.server.core.api_key import new_key
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.db.refusals import Refusals
from esker.server.rest.metrics import BACKLOG, PROCESS
from esker.server.usecases.report_status import readiness
from tests.support.api import opened, said
from tests.support.impatience import wait_hardly
from tests.support.kept_servers import KeptDatabase
from tests.support.postgres_proxy import Ends, copy, in_front_of
from tests.support.serving import serving
from tests.support.waiting import PATIENCE, eventually

_REFUSE: LiteralString = """
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = {code}; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON memories FOR EACH ROW EXECUTE FUNCTION refuse();
"""


async def samples(client: httpx2.AsyncClient) -> dict[tuple[str, ...], float]:
    """Return the samples of the metrics: by name, and the values of the labels in order."""
    answer = await client.get("/metrics")
    assert answer.status_code == 200, answer.text
    found: dict[tuple[str, ...], float] = {}
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation, family.name
        assert family.type != "unknown", family.name
        for sample in family.samples:
            key = (sample.name, *(value for _, value in sorted(sample.labels.items())))
            assert key not in found, "each series is there once"
            found[key] = sample.value
    return found


async def test_metrics_are_valid_and_complete(client: httpx2.AsyncClient) -> None:
    names = {name for name, *_ in await samples(client)}
    elsewhere = {"embedding_worker_up", "embedding_worker_deaths", "disk_free_bytes", "disk_size_bytes"}
    assert {f"esker_{name}" for name in {*BACKLOG, *PROCESS} - elsewhere} <= names
    assert {"esker_build_info", "process_resident_memory_bytes", "esker_event_loop_lag_seconds_count"} <= names


async def test_recalls_packs_and_jobs_are_counted_by_what_they_were(client: httpx2.AsyncClient) -> None:
    before = await samples(client)
    session = await opened(client)
    await said(client, session, "Let's use Redis for sessions, not Postgres.")
    await client.get(f"/v1/sessions/{session}/pack")
    await client.post("/v1/recall", json={"query": "zebra"})
    after = await samples(client)
    grown = {key: value - before.get(key, 0.0) for key, value in after.items()}
    assert grown["esker_packs_frozen_total", "initial"] == 1
    assert grown["esker_recalls_total", "no", "degraded"] == 1
    assert grown["esker_recall_duration_seconds_count", "all"] == 1
    assert grown["esker_recall_duration_seconds_count", "search"] == 1
    assert after["esker_jobs", "observe", "ready"] == 1
    assert after["esker_database_bytes",] > 1_000_000
    await client.post(f"/v1/sessions/{session}/observe?wait=true")
    await eventually(
        lambda: samples(client), lambda now: ("esker_job_duration_seconds_count", "observe", "done") in now
    )


@pytest.fixture
async def fragile(
    database_url: str,
) -> AsyncGenerator[tuple[httpx2.AsyncClient, AsyncExitStack]]:
    """A client of a server, and the way to its database, which ends when it is closed."""

    async def connect(client: Ends, server: Ends) -> None:
        async with AsyncExitStack() as ends:
            ends.callback(server[1].close)
            await copy_both(client, server)

    async with AsyncExitStack() as way:
        url = await way.enter_async_context(in_front_of(database_url, connect))
        database = Database(url)
        way.callback(wait_hardly, database)
        parts = make_parts(Settings(embedder="none"), database)
        async with serving(parts) as served, httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
            yield client, way


async def copy_both(client: Ends, server: Ends) -> None:
    """Pass on what both ends say until one ends."""
    tasks = [asyncio.create_task(copy(client[0], server[1])), asyncio.create_task(copy(server[0], client[1]))]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


async def test_without_the_database_the_process_says_what_it_knows(
    fragile: tuple[httpx2.AsyncClient, AsyncExitStack],
) -> None:
    client, way = fragile
    with_database = await samples(client)
    assert with_database["esker_database_up",] == 1
    await way.aclose()
    found = await eventually(lambda: samples(client), lambda now: now["esker_database_up",] == 0)
    assert found["esker_database_connections_most",] == 10
    assert "esker_unobserved_tokens" not in {name for name, *_ in found}
    ready = await client.get("/readyz")
    assert ready.status_code == 503
    assert ready.json()["reasons"] == [ready.json()["database"]]
    assert (await client.get("/v1/memories")).status_code == 503


async def test_metrics_of_who_never_read_them_wait_for_the_database(
    fragile: tuple[httpx2.AsyncClient, AsyncExitStack],
) -> None:
    client, way = fragile
    await samples(client)
    await way.aclose()
    answer = await client.get("/metrics", headers={"Authorization": f"Bearer {new_key()}"})
    assert answer.status_code == 503


async def test_a_database_whose_disk_is_full_is_not_ready(
    new_database: KeptDatabase, log_records: list[logging.LogRecord]
) -> None:
    parts = make_parts(Settings(embedder="none"), Database(new_database.url))
    await new_database.owner.execute(sql.SQL(_REFUSE).format(code=sql.Literal("53100")))
    async with serving(parts) as url, httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert (await client.get("/readyz")).status_code == 200
        refused = await client.post("/v1/memories", json={"content": "Our river is the Rhine."})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert "disk is full" in refused.json()["detail"]
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        assert "disk is full" in ready.json()["disk"]
        assert ready.json()["reasons"] == [ready.json()["disk"]]
        assert (await samples(client))["esker_database_writable",] == 0
    assert [record for record in log_records if "not ready" in record.getMessage()]


async def test_a_standby_is_not_ready(new_database: KeptDatabase) -> None:
    async with Database(new_database.url) as database:
        parts = make_parts(Settings(embedder="none"), database)
        assert (await readiness(parts)).database == "ok"
    name = conninfo_to_dict(new_database.url)["dbname"]
    statement = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = on")
    await new_database.owner.execute(statement.format(sql.Identifier(str(name))))
    async with Database(new_database.url) as database:
        parts = make_parts(Settings(embedder="none"), database)
        found = await readiness(parts)
        assert (found.ready, found.database) == (False, "The database is read-only, as a standby is.")
        await new_database.owner.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(sql.Identifier(str(name))))

        async def is_ready() -> bool:  # nobody has to write for the connections to be made anew
            return (await readiness(parts)).ready

        await eventually(is_ready)


def test_a_refused_write_is_forgotten_after_half_a_minute() -> None:
    now = 100.0
    refusals = Refusals(lambda: now)
    assert refusals.note(UniqueViolation()) is None
    assert refusals.present is None
    assert refusals.note(DiskFull()) == "The database's disk is full"
    now += 30
    assert refusals.present == "The database's disk is full."
    now += 1
    assert refusals.present is None


def test_that_a_server_was_read_only_is_not_held_against_its_disk() -> None:
    refusals = Refusals(lambda: 0.0)
    refusals.note(ReadOnlySqlTransaction())
    assert (refusals.present is None, refusals.full_disk) == (False, None)
    refusals.note(DiskFull())
    assert refusals.full_disk == "The database's disk is full."
