"""A row that makes an embedding endpoint fail keeps no other row from its vector, and an outage causes no storm."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import timedelta

import psycopg
import pytest

from esker.embedding_worker import backfill as backfills
from esker.embedding_worker import worker
from esker.embedding_worker.backfill import Backfill
from esker.server.core.errors import EmbedderDown
from esker.server.core.records import Principal, Space
from esker.server.providers import remote_embedder
from esker.server.providers.remote_embedder import RemoteEmbedder, longest_call
from esker.server.usecases.embed import MAX_ATTEMPTS, cooldown
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.clock import FakeClock
from tests.support.embedding_server import EmbeddingServer, Fault, asked_at, embedding_server, known_space

FAULTS: list[Fault] = ["500", "403", "429", "null", "missing", "dimension", "drop", "hang"]


@pytest.fixture
async def endpoint(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[EmbeddingServer]:
    """A scripted embeddings endpoint; the time of a call with POISON in it is over as soon as it hangs."""

    def seconds(texts: Sequence[str]) -> float:
        return 0.1 if any("POISON" in text for text in texts) else 60.0

    monkeypatch.setattr(remote_embedder, "longest_call", seconds)
    async with embedding_server() as server:
        yield server


@pytest.fixture
async def embedder(endpoint: EmbeddingServer) -> AsyncGenerator[RemoteEmbedder]:
    """An embedder that uses this endpoint."""
    async with asked_at(endpoint) as made:
        yield made


@pytest.fixture
async def space(parts: Parts, embedder: RemoteEmbedder) -> Space:
    """Its space, known to every pool."""
    return await known_space(parts, embedder)


@pytest.fixture
def wake() -> asyncio.Event:
    """An event that is set when a call has ended."""
    return asyncio.Event()


@pytest.fixture
def backfill(
    parts: Parts,
    endpoint: EmbeddingServer,
    embedder: RemoteEmbedder,
    space: Space,
    wake: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> Backfill:
    """The calls of a worker to it, which may take their time; what was asked before is forgotten."""
    monkeypatch.setattr(backfills, "_STOP_SECONDS", 60.0)
    endpoint.asked.clear()
    return Backfill(parts, embedder, space, wake)


async def embed_all(backfill: Backfill) -> None:
    """Embed what is due. Raises the error of a call."""
    stop = asyncio.Event()
    await backfill.start_calls(stop)
    await backfill.close()
    stop.set()
    await backfill.start_calls(stop)


async def wrote(parts: Parts, who: Principal, contents: Sequence[str]) -> None:
    """Write notes."""
    await remember(parts, who, [Note(content) for content in contents])


def queue(owner_url: str) -> dict[str, tuple[int, bool, str | None]]:
    """Return the rows without a vector: their attempts, whether they are dead, and their error."""
    with psycopg.connect(owner_url) as connection:
        found = connection.execute(
            "SELECT m.content, a.attempts, a.dead, a.last_error"
            " FROM embedding_attempts a JOIN memories m USING (number)"
        ).fetchall()
    return {content: (attempts, dead, error) for content, attempts, dead, error in found}


async def until_waiting(count: int, owner_url: str, wake: asyncio.Event) -> None:
    """Wait for calls to end until only `count` rows have no vector."""
    while len(queue(owner_url)) > count:
        wake.clear()
        await wake.wait()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_row_that_breaks_the_endpoint_delays_no_other_row(
    parts: Parts, who: Principal, endpoint: EmbeddingServer, backfill: Backfill, owner_url: str, fault: Fault
) -> None:
    endpoint.breaks = {"POISON": fault}
    await wrote(parts, who, [f"River {n}." if n != 100 else "POISON river." for n in range(150)])
    await embed_all(backfill)
    assert {content: state[:2] for content, state in queue(owner_url).items()} == {"POISON river.": (1, False)}
    # Its batch, three rounds of four pieces, two other batches, and at most one harmless text a round.
    assert len(endpoint.asked) <= 1 + 3 * 4 + 2 + 4
    assert sum(any("POISON" in text for text in texts) for texts in endpoint.asked) == 4


@pytest.mark.parametrize("fault", ["500", pytest.param("drop", marks=pytest.mark.slow)])
async def test_a_row_that_always_breaks_the_endpoint_is_given_up(
    parts: Parts,
    who: Principal,
    clock: FakeClock,
    endpoint: EmbeddingServer,
    backfill: Backfill,
    owner_url: str,
    fault: Fault,
) -> None:
    endpoint.breaks = {"POISON": fault}
    await wrote(parts, who, ["POISON river.", "River."])
    for number in range(1, MAX_ATTEMPTS + 1):
        await embed_all(backfill)
        assert {content: state[:2] for content, state in queue(owner_url).items()} == {
            "POISON river.": (number, number == MAX_ATTEMPTS)
        }
        clock.now += cooldown(number)


async def test_several_bad_rows_are_separated_from_the_good_ones(
    parts: Parts, who: Principal, endpoint: EmbeddingServer, backfill: Backfill, owner_url: str
) -> None:
    endpoint.breaks = {"POISON": "500"}
    bad = {f"POISON {n}." for n in range(64) if n % 3 == 0}
    await wrote(parts, who, [f"POISON {n}." if n % 3 == 0 else f"River {n}." for n in range(64)])
    await embed_all(backfill)
    assert {content: state[:2] for content, state in queue(owner_url).items()} == dict.fromkeys(bad, (1, False))
    # Each piece once, and a harmless text for each bad row and each other failure at most.
    assert len(endpoint.asked) <= (1 + 4 + 16 + 64) + (1 + 4 + 16 + 22)


async def test_rows_behind_one_that_hangs_get_their_vectors_meanwhile(
    parts: Parts,
    who: Principal,
    endpoint: EmbeddingServer,
    backfill: Backfill,
    wake: asyncio.Event,
    owner_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_embedder, "longest_call", lambda _: 60.0)
    endpoint.breaks = {"POISON": "hang"}
    stop = asyncio.Event()
    await wrote(parts, who, ["POISON river."])
    await backfill.start_calls(stop)
    await endpoint.hanging.acquire()
    await wrote(parts, who, [f"River {n}." for n in range(150)])
    await backfill.start_calls(stop)
    await until_waiting(1, owner_url, wake)
    assert list(queue(owner_url)) == ["POISON river."]
    endpoint.breaks = {}
    endpoint.released.set()
    await backfill.close()


async def test_one_row_at_a_time_is_retried_so_that_new_rows_find_a_free_lane(
    parts: Parts,
    who: Principal,
    clock: FakeClock,
    endpoint: EmbeddingServer,
    backfill: Backfill,
    wake: asyncio.Event,
    owner_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint.breaks = {"POISON": "hang"}
    await wrote(parts, who, ["POISON river.", "POISON hill."])
    await embed_all(backfill)
    clock.now += cooldown(1)
    monkeypatch.setattr(remote_embedder, "longest_call", lambda _: 60.0)
    stop = asyncio.Event()
    endpoint.asked.clear()
    endpoint.hanging = asyncio.Semaphore(0)
    await backfill.start_calls(stop)
    await endpoint.hanging.acquire()
    await wrote(parts, who, ["River."])
    await backfill.start_calls(stop)
    await until_waiting(2, owner_url, wake)
    assert sum("POISON" in texts[0] for texts in endpoint.asked) == 1
    endpoint.released.set()
    await backfill.close()


@pytest.mark.parametrize("status", [401, 429, 500, 503])
async def test_an_endpoint_that_is_down_is_asked_a_few_times_and_no_row_is_blamed(
    parts: Parts, who: Principal, endpoint: EmbeddingServer, backfill: Backfill, owner_url: str, status: int
) -> None:
    endpoint.status = status
    await wrote(parts, who, [f"River {n}." for n in range(300)])
    with pytest.raises(EmbedderDown):
        await embed_all(backfill)
    # Two open calls, and a harmless text after each.
    assert len(endpoint.asked) <= 4
    assert {state[:2] for state in queue(owner_url).values()} == {(0, False)}


async def test_an_endpoint_that_goes_down_while_a_row_is_isolated_is_asked_no_more_than_three_times(
    parts: Parts, who: Principal, endpoint: EmbeddingServer, backfill: Backfill, owner_url: str
) -> None:
    endpoint.breaks = {"POISON": "500"}
    await wrote(parts, who, [f"River {n}." if n != 63 else "POISON river." for n in range(64)])
    endpoint.down_after = 8  # the first round is over, and the second has begun
    with pytest.raises(EmbedderDown):
        await embed_all(backfill)
    assert len(endpoint.asked) <= 8 + 3
    assert {state[:2] for state in queue(owner_url).values()} == {(0, False)}


@pytest.mark.parametrize("asked", range(7))
async def test_no_row_is_blamed_for_an_endpoint_that_goes_down(
    parts: Parts, who: Principal, endpoint: EmbeddingServer, backfill: Backfill, owner_url: str, asked: int
) -> None:
    endpoint.breaks = {"POISON": "500"}
    endpoint.down_after = asked
    await wrote(parts, who, ["POISON river.", "River 1.", "River 2.", "River 3."])
    with pytest.raises(EmbedderDown):
        await embed_all(backfill)
    assert {state[0] for content, state in queue(owner_url).items() if "POISON" not in content} <= {0}


async def test_while_the_endpoint_is_down_each_pause_ends_with_one_harmless_text(
    parts: Parts, endpoint: EmbeddingServer, embedder: RemoteEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "PAUSE", timedelta(0))
    endpoint.status = 503
    said: list[str] = []
    down, stop = EmbedderDown("down"), asyncio.Event()
    waiting = asyncio.create_task(worker._until_it_answers(parts, embedder, down, stop, said.append))
    while len(endpoint.asked) < 5:
        assert not waiting.done()
        await asyncio.sleep(0)
    endpoint.status = 200
    await waiting
    assert {len(texts) for texts in endpoint.asked} == {1}
    assert not any("River" in texts[0] for texts in endpoint.asked)


async def test_a_stopped_worker_releases_the_row_that_hangs(
    parts: Parts,
    who: Principal,
    endpoint: EmbeddingServer,
    backfill: Backfill,
    owner_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_embedder, "longest_call", lambda _: 60.0)
    monkeypatch.setattr(backfills, "_STOP_SECONDS", 0.0)
    endpoint.breaks = {"POISON": "hang"}
    await wrote(parts, who, ["POISON river."])
    await backfill.start_calls(asyncio.Event())
    await endpoint.hanging.acquire()
    await backfill.close()
    assert queue(owner_url) == {"POISON river.": (0, False, None)}


def test_a_call_may_take_longer_the_more_there_is_to_embed() -> None:
    one, many = longest_call(["A river."]), longest_call(["The river runs through the valley. " * 50] * 64)
    assert 10 <= one < 11
    assert many > 60
