"""How often a request waits for Postgres: with a distant database, that is most of its time."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, cast
from uuid import uuid4

import pytest

from esker.server.core.arrays import Vector
from esker.server.core.facts.forgetting import ForgetRequest, Selection
from esker.server.core.json_input import Json
from esker.server.core.records import Principal, Space
from esker.server.db.database import Database
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.usecases.authenticate import authenticate
from esker.server.usecases.build_context import ContextRequest, build_context
from esker.server.usecases.forget import forget
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionRequest, get_session, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.remember import Note, remember, remember_one
from esker.server.usecases.run_job import claim_job, run_job
from tests.support.round_trips import RoundTrips, counted_round_trips
from tests.support.vectors import note_with_vectors, unit_vectors

SPACE = Space("trips_8", "m", "r", 8, "", "openai:http://x#m")
[VECTOR] = unit_vectors(1, 8, seed=7)


class OneVector:
    """Embeds every question as the same vector."""

    broken = None

    def prepare(self, source: str) -> None:
        """Need no time."""

    async def embed(self, source: str, space: str, query: str) -> Vector:
        """Return the vector."""
        return VECTOR


@pytest.fixture
async def trips(database_url: str) -> AsyncGenerator[RoundTrips]:
    """The round trips of the parts below."""
    async with counted_round_trips(database_url) as counted:
        yield counted


@pytest.fixture
async def far(parts: Parts, trips: RoundTrips) -> AsyncGenerator[Parts]:
    """The parts of a server whose round trips are counted."""
    async with Database(trips.url) as database:
        yield replace(parts, database=database)


@pytest.fixture
async def remembered(parts: Parts, who: Principal) -> str:
    """The id of a session with notes and passages about boats, some of them with vectors."""
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1", project="boats"))
    said = [IncomingMessage(f"m{n}", "user", f"The boat {n} is moored at wharf {n % 3}.") for n in range(4)]
    await ingest(parts, who.pool_id, session.id, said)
    await remember(
        parts, who, [Note(f"Boat {n} at the wharf was painted blue.", session_id=session.id) for n in range(6)]
    )
    await note_with_vectors(parts, who, SPACE, unit_vectors(20, 8, seed=1))
    return session.id


async def count(trips: RoundTrips, parts: Parts, **asked: Any) -> int:
    """Return the round trips of a recall as a request makes it, when its statements are prepared."""
    for _ in range(8):
        trips.reset()
        who = await authenticate(parts, None, is_owner=True)
        found = await recall(
            parts, who.pool_id, RecallRequest("Which boat was painted blue, and which is moored at a wharf?", **asked)
        )
        assert {hit.tier for hit in found.hits} == {"memory", "passage"}
    return trips.count


async def test_a_recall_takes_at_most_five_round_trips(remembered: str, far: Parts, trips: RoundTrips) -> None:
    assert await count(trips, far, ranking="keyword") <= 4
    assert await count(trips, far) <= 5
    assert await count(trips, far, session_id=remembered, scope="session") <= 5
    assert await count(trips, far, project="boats") <= 5


async def test_a_recall_that_finds_no_note_of_a_session_takes_four_round_trips(
    parts: Parts, far: Parts, who: Principal, trips: RoundTrips
) -> None:
    await remember(parts, who, [Note("The boat was painted blue."), Note("The wharf was painted red.")])
    for _ in range(8):
        trips.reset()
        await authenticate(far, None, is_owner=True)
        assert (await recall(far, who.pool_id, RecallRequest("Which boat was painted blue?"))).hits
    assert trips.count <= 4


async def test_a_write_takes_few_round_trips(remembered: str, far: Parts, trips: RoundTrips) -> None:
    who, of_one = await authenticate(far, None, is_owner=True), list[int]()
    for turn in range(8):
        trips.reset()
        who = await authenticate(far, None, is_owner=True)
        await remember_one(far, who, Note(f"The crane {turn} is green."))
        of_one.append(trips.count)
        trips.reset()
        await remember(far, who, [Note(f"The crane {turn} lifts {n} tons.") for n in range(50)])
    # The fewest: opening a connection of the pool takes trips of its own.
    assert min(of_one) <= 5
    assert trips.count <= 2
    trips.reset()
    await remember(far, who, [Note("The crane 1 is green."), Note("The dock is empty.", session_id=remembered)])
    assert trips.count <= 9


async def test_a_recall_by_meaning_takes_no_more(remembered: str, far: Parts, trips: RoundTrips) -> None:
    with_vectors = replace(far, embedders=cast(QueryEmbedders, OneVector()))
    assert await count(trips, with_vectors) <= 5
    assert await count(trips, with_vectors, project="boats") <= 5


async def ingests(trips: RoundTrips, parts: Parts, session_id: str) -> int:
    """Return the round trips of an ingest as a request makes it, with a result of an earlier call and a copied id.

    The fewest of some: opening a connection of the pool takes trips of its own.
    """
    counted: list[int] = []
    for _ in range(8):
        trips.reset()
        who = await authenticate(parts, None, is_owner=True)
        result: Json = [{"type": "tool_result", "tool_use_id": "call", "content": "The crane lifts 9 tons."}]
        said = [
            IncomingMessage(str(uuid4()), "user", "The boat has two sails.", id_scope="client"),
            IncomingMessage(str(uuid4()), "user", result),
        ]
        assert (await ingest(parts, who.pool_id, session_id, said)).accepted == 2
        counted.append(trips.count)
    return min(counted)


async def test_an_ingest_takes_at_most_six_round_trips(
    remembered: str, parts: Parts, far: Parts, who: Principal, trips: RoundTrips
) -> None:
    assert await ingests(trips, far, remembered) <= 6
    await forget(parts, who, ForgetRequest(Selection(words=["The anchor is in the shed."])))
    assert await ingests(trips, far, remembered) <= 6


async def test_a_batch_that_is_sent_again_takes_at_most_three_round_trips(
    remembered: str, far: Parts, trips: RoundTrips
) -> None:
    said = [IncomingMessage("again", "user", "The boat has two sails.")]
    for _ in range(8):
        trips.reset()
        who = await authenticate(far, None, is_owner=True)
        await ingest(far, who.pool_id, remembered, said)
    assert trips.count <= 3


async def test_a_pack_takes_at_most_two_round_trips_and_five_when_it_is_frozen(
    remembered: str, parts: Parts, far: Parts, who: Principal, trips: RoundTrips
) -> None:
    first, again = list[int](), list[int]()
    for turn in range(8):
        session = await open_session(parts, who.pool_id, SessionRequest("api", f"new {turn}", project="boats"))
        for counted in (first, again):
            trips.reset()
            await authenticate(far, None, is_owner=True)
            assert "painted blue" in (await get_pack(far, who.pool_id, session.id)).text
            counted.append(trips.count)
    assert min(first) <= 5
    assert again[-1] == 2


async def test_a_context_takes_at_most_six_round_trips(
    remembered: str, far: Parts, who: Principal, trips: RoundTrips
) -> None:
    with_vectors = replace(far, embedders=cast(QueryEmbedders, OneVector()))
    for asked, most in ((ContextRequest(), 2), (ContextRequest(recall=True), 6)):
        for _ in range(8):
            trips.reset()
            await authenticate(far, None, is_owner=True)
            await build_context(with_vectors, who.pool_id, remembered, asked)
        assert trips.count <= most


async def test_the_observation_of_a_slice_takes_at_most_twenty_round_trips(
    remembered: str, parts: Parts, far: Parts, who: Principal, trips: RoundTrips
) -> None:
    counted: list[int] = []
    for turn in range(4):
        session = await open_session(parts, who.pool_id, SessionRequest("api", f"new {turn}", project="boats"))
        said = [IncomingMessage(f"{n}", "user", f"We decided to paint boat {turn}{n} green.") for n in range(6)]
        await ingest(parts, who.pool_id, session.id, said)
        await get_pack(parts, who.pool_id, session.id)
        trips.reset()
        await observe(far, who.pool_id, session.id, wait=False)
        lease = await claim_job(far, who.pool_id, ["observe"])
        assert lease
        await run_job(far, lease, observe_leased)
        counted.append(trips.count)
        assert (await get_session(parts, who.pool_id, session.id)).observations
    assert min(counted) <= 20
