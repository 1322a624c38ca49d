"""The worker's pipeline: the next batch is claimed and the previous one stored while the model works."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import psycopg
import pytest

from esker.embedding_worker import backfill
from esker.embedding_worker.backfill import Backfill
from esker.server.core.arrays import Vectors
from esker.server.core.errors import EmbedderDown
from esker.server.core.records import Principal, Space
from esker.server.providers.vectors import scaled
from esker.server.usecases import embed, embed_rows
from esker.server.usecases.authenticate import create_pool, require_pool
from esker.server.usecases.embed import make_space, register
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember
from tests.support.clock import FakeClock
from tests.support.embedding_server import word_vector
from tests.support.vectors import matrix
from tests.support.waiting import eventually

SPACE = Space("gated_8", "gated", "", 8, "", "gated")


@dataclass
class Gated:
    """An embedder that reports each call and answers when it is released."""

    lanes: int = 1
    asked: list[list[str]] = field(default_factory=list[list[str]])
    calls: asyncio.Queue[list[str]] = field(default_factory=asyncio.Queue[list[str]])
    answers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    down: bool = False
    space: Space | None = SPACE
    patient: list[bool] = field(default_factory=list[bool])
    is_patient: bool = False
    portion: int = 1_000

    def be_patient(self, patient: bool) -> None:
        """Record the patience for the next calls."""
        self.is_patient = patient

    async def load(self) -> Space:
        """Return the space."""
        return SPACE

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Answer, when it is time."""
        self.asked.append(list(texts))
        self.patient.append(self.is_patient)
        self.calls.put_nowait(list(texts))
        await self.answers.acquire()
        if self.down:
            raise EmbedderDown("down")
        return scaled(matrix(word_vector(text, 8) for text in texts))

    async def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Answer, when it is time."""
        return await self.embed(texts)

    async def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Split at slashes."""
        return [text.split(" / ") for text in texts]

    async def close(self) -> None:
        """Do nothing."""


@pytest.fixture
async def gated(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Gated:
    """Such an embedder, its space known to every pool, and batches of two rows."""
    monkeypatch.setattr(embed, "BATCH", 2)
    monkeypatch.setattr(embed_rows, "BATCH", 2)
    monkeypatch.setattr(backfill, "_STOP_SECONDS", 60.0)
    await make_space(parts, SPACE)
    await register(parts, SPACE, or_retired=False)
    return Gated()


async def embed_all(parts: Parts, gated: Gated, stop: asyncio.Event | None = None) -> None:
    """Start calls for one round, and wait until they have ended. Raises the error of one."""
    stop = stop or asyncio.Event()
    calls = Backfill(parts, gated, SPACE, asyncio.Event())
    await calls.start_calls(stop)
    await calls.close()
    stop.set()
    await calls.start_calls(stop)


async def wrote(parts: Parts, who: Principal, count: int, first: int = 0) -> None:
    """Write some rows, one after the other."""
    for n in range(first, first + count):
        await remember(parts, who, [Note(f"Row {n}.")])


def queue(owner_url: str) -> list[tuple[str, int, bool]]:
    """Return the queued rows: content, attempts, whether claimed."""
    with psycopg.connect(owner_url) as connection:
        return connection.execute(
            "SELECT m.content, a.attempts, a.lease_token IS NOT NULL FROM embedding_attempts a"
            " JOIN memories m ON m.number = a.number ORDER BY m.number"
        ).fetchall()


def state(owner_url: str) -> str:
    """Return the state of the space in the default pool."""
    with psycopg.connect(owner_url) as connection:
        row = connection.execute("SELECT state FROM embedding_spaces WHERE name = 'gated_8'").fetchone()
    assert row is not None
    return str(row[0])


async def until_queue_is(owner_url: str, expected: list[tuple[str, int, bool]], still: asyncio.Task[None]) -> None:
    """Wait until the queue is as expected; the worker must not have ended."""
    while queue(owner_url) != expected:
        assert not still.done()
        await asyncio.sleep(0)


async def test_the_previous_batch_is_stored_and_the_next_claimed_while_the_model_works(
    parts: Parts, who: Principal, gated: Gated, owner_url: str
) -> None:
    await wrote(parts, who, 7)
    working = asyncio.create_task(embed_all(parts, gated))
    assert sorted(await gated.calls.get()) == ["Row 5.", "Row 6."]
    gated.answers.release()
    await gated.calls.get()
    # The model has the second batch: rows 5 and 6 are stored, and rows 1 and 2 are already claimed.
    await until_queue_is(
        owner_url,
        [("Row 0.", 0, False), *((f"Row {n}.", 1, True) for n in (1, 2, 3, 4))],
        working,
    )
    for _ in range(3):
        gated.answers.release()
    await working
    assert queue(owner_url) == []
    assert [len(texts) for texts in gated.asked] == [2, 2, 2, 1]


async def test_a_stopped_worker_releases_claimed_rows_untried(
    parts: Parts, who: Principal, gated: Gated, owner_url: str
) -> None:
    await wrote(parts, who, 6)
    stop = asyncio.Event()
    working = asyncio.create_task(embed_all(parts, gated, stop))
    await gated.calls.get()
    stop.set()
    gated.answers.release()
    await working
    assert queue(owner_url) == [(f"Row {n}.", 0, False) for n in range(4)]


async def test_an_embedder_that_goes_down_costs_no_attempt_and_loses_no_vector(
    parts: Parts, who: Principal, gated: Gated, owner_url: str
) -> None:
    await wrote(parts, who, 6)
    working = asyncio.create_task(embed_all(parts, gated))
    await gated.calls.get()
    gated.answers.release()
    await gated.calls.get()
    gated.down = True
    gated.answers.release()
    assert await gated.calls.get() == ["esker"], "a row is blamed only if the embedder answers another text"
    gated.answers.release()
    with pytest.raises(EmbedderDown):
        await working
    assert queue(owner_url) == [(f"Row {n}.", 0, False) for n in range(4)]


async def test_pools_take_turns(parts: Parts, who: Principal, gated: Gated) -> None:
    await create_pool(parts, "small")
    small = await require_pool(parts, "small")
    await register(parts, SPACE, or_retired=False)
    await remember(parts, who, [Note(f"Large {n}.") for n in range(8)])
    await remember(parts, replace(who, pool_id=small.id, pool_name="small"), [Note("Small.")])
    for _ in range(8):
        gated.answers.release()
    await embed_all(parts, gated)
    assert ["Small."] in gated.asked[:2]


async def test_recall_is_not_switched_to_a_new_model_while_rows_are_with_it(
    parts: Parts, who: Principal, gated: Gated, owner_url: str
) -> None:
    await wrote(parts, who, 4)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        connection.execute("UPDATE embedding_spaces SET state = 'building'")
    working = asyncio.create_task(embed_all(parts, gated))
    await gated.calls.get()
    await until_queue_is(owner_url, [(f"Row {n}.", 1, True) for n in range(4)], working)
    gated.answers.release()
    await gated.calls.get()
    await until_queue_is(owner_url, [(f"Row {n}.", 1, True) for n in range(2)], working)
    assert state(owner_url) == "building"
    gated.answers.release()
    await working
    assert state(owner_url) == "active"


async def test_a_long_backfill_pauses_for_other_work(
    parts: Parts, who: Principal, gated: Gated, owner_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "_ROUND", 2)
    await wrote(parts, who, 8)
    for _ in range(8):
        gated.answers.release()
    await embed_all(parts, gated)
    assert queue(owner_url) == [(f"Row {n}.", 0, False) for n in range(4)]


async def test_rows_that_were_due_for_a_minute_do_not_stand_back_for_other_processes(
    parts: Parts, who: Principal, gated: Gated, clock: FakeClock
) -> None:
    for _ in range(8):
        gated.answers.release()
    await wrote(parts, who, 2)
    await embed_all(parts, gated)
    await wrote(parts, who, 2, first=2)
    clock.advance(seconds=61)
    await embed_all(parts, gated)
    await wrote(parts, who, 2, first=4)
    await embed_all(parts, gated)
    assert gated.patient == [True, False, True]


async def test_new_rows_in_front_of_late_ones_are_late_as_well(
    parts: Parts, who: Principal, gated: Gated, clock: FakeClock
) -> None:
    for _ in range(8):
        gated.answers.release()
    await wrote(parts, who, 2)
    clock.advance(seconds=61)
    await wrote(parts, who, 2, first=2)
    await embed_all(parts, gated)
    assert (sorted(gated.asked[0]), gated.patient) == (["Row 2.", "Row 3."], [False, False])


async def test_on_a_slow_machine_rows_are_stored_portion_by_portion_and_soon_go_first(
    parts: Parts, who: Principal, gated: Gated, clock: FakeClock, owner_url: str
) -> None:
    gated.portion = 10  # characters, of which a row has six
    await wrote(parts, who, 2)
    working = asyncio.create_task(embed_all(parts, gated))
    await gated.calls.get()
    clock.advance(seconds=61)
    gated.answers.release()
    await gated.calls.get()
    await eventually(lambda: asyncio.to_thread(queue, owner_url), lambda left: len(left) == 1)
    gated.answers.release()
    await working
    assert (queue(owner_url), gated.patient) == ([], [True, False])


async def test_rows_that_a_slow_machine_does_not_reach_within_a_claim_are_released_untried(
    parts: Parts, who: Principal, gated: Gated, clock: FakeClock, owner_url: str
) -> None:
    gated.portion = 1
    await wrote(parts, who, 2)
    working = asyncio.create_task(embed.embed_due(parts, gated, SPACE, who.pool_id))
    await gated.calls.get()
    clock.advance(seconds=200)
    gated.answers.release()
    await working
    assert [(attempts, claimed) for _, attempts, claimed in queue(owner_url)] == [(0, False)]


async def test_a_long_row_gets_a_vector_for_each_part_and_a_call_never_has_too_many(
    parts: Parts, who: Principal, gated: Gated, owner_url: str
) -> None:
    await remember(parts, who, [Note("One. / Two. / Three.")])
    await remember(parts, who, [Note("Four.")])
    for _ in range(8):
        gated.answers.release()
    await embed_all(parts, gated)
    assert [len(texts) for texts in gated.asked] == [2, 2]
    with psycopg.connect(owner_url) as connection:
        found = connection.execute(
            "SELECT m.content, v.part, v.embedding::text FROM embeddings_gated_8 v JOIN memories m USING (number)"
            " ORDER BY m.number, v.part"
        ).fetchall()
    assert [(content, part) for content, part, _ in found] == [
        *(("One. / Two. / Three.", n) for n in range(3)),
        ("Four.", 0),
    ]
    for text, (_, _, stored) in zip(["One.", "Two.", "Three.", "Four."], found, strict=True):
        [expected] = scaled(matrix([word_vector(text, 8)]))
        assert all(abs(a - b) < 0.001 for a, b in zip(json.loads(stored), expected, strict=True))
