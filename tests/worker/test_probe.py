"""The probe of a worker that runs alone: whether it moves, and its counts."""

import asyncio

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from esker.embedding_worker.probe import LONGEST, probed
from esker.server.core.errors import Misconfigured
from esker.server.usecases.parts import Parts
from tests.support.clock import FakeClock
from tests.support.waiting import PATIENCE


async def test_a_worker_is_alive_as_long_as_its_loop_moves(parts: Parts, clock: FakeClock) -> None:
    async with (
        probed(parts, "127.0.0.1", 0) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client,
    ):
        assert (await client.get("/livez")).status_code == 200, "a model may take long to load"
        parts.pulse.beat(clock())
        clock.advance(seconds=LONGEST.total_seconds() - 1)
        assert (await client.get("/livez")).json() == {"status": "alive"}
        clock.advance(seconds=2)
        answer = await client.get("/livez")
        assert (answer.status_code, answer.json()) == (503, {"status": "has not moved for 601 s"})
        assert (await client.get("/v1/memories")).status_code == 404


async def test_a_worker_shows_its_counts(parts: Parts, clock: FakeClock) -> None:
    parts.pulse.beat(clock())
    clock.advance(seconds=7)
    parts.instruments.batches.labels("done").inc(3)
    async with (
        probed(parts, "127.0.0.1", 0) as port,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client,
    ):
        text = (await client.get("/metrics")).text
    found = {sample.name: sample.value for family in text_string_to_metric_families(text) for sample in family.samples}
    assert found["esker_worker_idle_seconds"] == 7
    assert found["esker_worker_batches_total"] == 3
    assert found["process_resident_memory_bytes"] > 0


async def test_bytes_that_are_no_request_disturb_nobody(parts: Parts) -> None:
    async with probed(parts, "127.0.0.1", 0) as port:
        for sent in (b"\r\n\r\n", b"x" * 100_000, b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            writer.write_eof()
            await reader.read()
            writer.close()
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            assert (await client.get(f"http://127.0.0.1:{port}/livez")).status_code == 200


async def test_a_port_in_use_is_explained(parts: Parts) -> None:
    async with probed(parts, "127.0.0.1", 0) as port:
        with pytest.raises(Misconfigured, match=f"cannot listen on 127.0.0.1 port {port}"):
            async with probed(parts, "127.0.0.1", port):
                pass
    async with probed(parts, "127.0.0.1", None) as none:
        assert none is None
