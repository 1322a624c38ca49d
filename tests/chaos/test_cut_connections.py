"""The connection to Postgres breaks before and after each single statement of each verb; nothing is lost or doubled.

To Postgres, this is the death of the server at that moment. Afterwards another server repeats the verb, as clients and
job runners do.
"""

import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import LiteralString, get_args

import psycopg
import pytest

from esker.server.core.errors import Unavailable
from esker.server.core.records import JobKind, Principal
from esker.server.db.database import Database
from esker.server.usecases.embed import embed_due
from esker.server.usecases.forget import forget_text
from esker.server.usecases.import_pool import import_pool
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.reflect import reflect, reflect_leased
from esker.server.usecases.remember import Note, remember
from esker.server.usecases.run_job import Work, claim_job, pools_with_jobs, run_job
from tests.support.clock import FakeClock
from tests.support.cut_network import CutNetwork, Place, cut_network
from tests.support.embedding_server import asked_at, embedding_server, known_space
from tests.support.impatience import wait_hardly, wait_long
from tests.support.invariants import broken
from tests.support.pool_files import small_file
from tests.support.waiting import eventually

_SAMPLED = 3
"""The places of a verb that are tried without --full."""
WORK: dict[JobKind, Work] = {"observe": observe_leased, "reflect": reflect_leased}
SAID = (
    "We decided to use {} for the cache, on port 6379.",
    "The deploy of {} goes through make ship and never by hand.",
    "Please remember that {} must be restarted after each migration.",
)
_IDLE: LiteralString = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state ^@ 'idle in transaction'
"""
_OPEN: LiteralString = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND xact_start IS NOT NULL
"""

Run = Callable[[Parts, Principal, str], Awaitable[object]]


async def opened(parts: Parts, who: Principal, name: str) -> str:
    """Open the session of that name and return its id."""
    return (await open_session(parts, who.pool_id, SessionRequest("api", name, project="acme/shop"))).id


async def told(parts: Parts, who: Principal, name: str) -> None:
    """Send the session its three messages."""
    batch = [IncomingMessage(f"m{n}", "user", text.format(name)) for n, text in enumerate(SAID)]
    await ingest(parts, who.pool_id, await opened(parts, who, name), batch)


async def asked_to_observe(parts: Parts, who: Principal, name: str) -> None:
    """Have a session with messages whose observation was requested."""
    await told(parts, who, name)
    await observe(parts, who.pool_id, await opened(parts, who, name), wait=False)


async def asked_to_reflect(parts: Parts, who: Principal, name: str) -> None:
    """Have a session with observations whose reflection was requested."""
    await asked_to_observe(parts, who, name)
    await due_jobs(parts, who, name)
    await reflect(parts, who.pool_id, await opened(parts, who, name), wait=False)


async def due_jobs(parts: Parts, _: Principal, __: str) -> None:
    """Run the jobs that are due, as the job runner does."""
    for pool_id in await pools_with_jobs(parts, list(WORK)):
        while lease := await claim_job(parts, pool_id, list(WORK)):
            await run_job(parts, lease, WORK[lease.kind])


async def noted(parts: Parts, who: Principal, name: str) -> str:
    """Write a note and return its id."""
    [note] = await remember(parts, who, [Note(f"The river {name} flows to the sea.")])
    return note


async def forgotten(parts: Parts, who: Principal, name: str) -> None:
    """Forget that note, unless it is gone already."""
    async with parts.database.tenant(who.pool_id) as connection:
        found = await connection.execute(
            "SELECT id FROM memories WHERE content = %s", [f"The river {name} flows to the sea."]
        )
        ids = [row[0] for row in await found.fetchall()]
    for note in ids:
        await forget_text(parts, who, note, with_messages=False)


async def packed(parts: Parts, who: Principal, name: str) -> None:
    """Read the pack of the session."""
    await get_pack(parts, who.pool_id, await opened(parts, who, name))


async def imported(parts: Parts, who: Principal, name: str) -> None:
    """Import a file with the session and its three messages."""
    await import_pool(parts, who, small_file(name, [text.format(name) for text in SAID]))


async def nothing(_: Parts, __: Principal, ___: str) -> None:
    """Prepare nothing."""


@dataclass(frozen=True, slots=True)
class Verb:
    """`run` is done on what `prepare` has made; `effect` is a statement with the one right answer for a name."""

    name: str
    prepare: Run
    run: Run
    effect: LiteralString
    right: tuple[object, ...]


VERBS = (
    Verb("open", nothing, opened, "SELECT count(*) FROM sessions WHERE external_id = %(name)s", (1,)),
    Verb(
        "ingest",
        opened,
        told,
        "SELECT count(*), count(DISTINCT m.external_id), max(s.last_seq) FROM sessions s"
        " JOIN messages m ON m.session_id = s.id WHERE s.external_id = %(name)s",
        (3, 3, 3),
    ),
    Verb(
        "import",
        nothing,
        imported,
        "SELECT count(*), count(DISTINCT m.external_id), max(s.passages_seq), (SELECT count(*) FROM memories)"
        " - (SELECT count(*) FROM sessions) FROM sessions s"
        " JOIN messages m ON m.session_id = s.id WHERE s.external_id = %(name)s",
        (3, 3, 3, 0),
    ),
    Verb(
        "observe",
        asked_to_observe,
        due_jobs,
        "SELECT count(*), max(g.last_seq), max(s.observed_seq) FROM sessions s"
        " JOIN observation_groups g ON g.session_id = s.id WHERE s.external_id = %(name)s",
        (1, 3, 3),
    ),
    Verb(
        "reflect",
        asked_to_reflect,
        due_jobs,
        "SELECT count(*) FROM jobs j JOIN sessions s ON s.id = j.subject WHERE s.external_id = %(name)s",
        (0,),
    ),
    Verb(
        "pack",
        told,
        packed,
        "SELECT count(*), max(p.version) FROM packs p JOIN sessions s ON s.id = p.session_id"
        " WHERE s.external_id = %(name)s",
        (1, 1),
    ),
    Verb(
        "remember",
        nothing,
        noted,
        "SELECT count(*) FROM memories WHERE content = 'The river ' || %(name)s || ' flows to the sea.'",
        (1,),
    ),
    Verb(
        "forget",
        noted,
        forgotten,
        "SELECT count(*) FROM memories WHERE content = 'The river ' || %(name)s || ' flows to the sea.'",
        (0,),
    ),
)


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether every place is tried, and not only a few."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
async def network(database_url: str) -> AsyncGenerator[CutNetwork]:
    """A network in front of Postgres that can break at any statement."""
    async with cut_network(database_url) as made:
        yield made


@pytest.fixture
async def far(parts: Parts, network: CutNetwork) -> AsyncGenerator[Parts]:
    """The parts of a server behind that network; when it breaks, it counts as dead, and waits for no connection."""
    async with Database(network.url, connections=2) as database:
        network.on_cut = partial(wait_hardly, database)
        yield replace(parts, database=database)


async def is_cut(far: Parts, who: Principal, network: CutNetwork, run: Run, name: str, at: tuple[int, Place]) -> bool:
    """Run a verb on a network that breaks at a statement; return whether it broke, so that the verb failed.

    A connection is open before: its own statements are not of the verb.
    """
    network.heal()
    await eventually(partial(is_connected, far))
    wait_long(far.database)
    network.arm(*at)
    with suppress(Unavailable):  # so that clients try again
        await run(far, who, name)
        return network.was_cut
    assert network.was_cut
    return True


async def is_connected(far: Parts) -> bool:
    """Return whether a statement is answered."""
    try:
        return bool(await far.database.ask("SELECT 1"))
    except Unavailable:
        return False


async def transactions_end(owner_url: str) -> None:
    """Wait until no connection is idle in a transaction, as those of a running server are for moments."""
    await eventually(partial(_is_none_idle, owner_url))


async def _is_none_idle(owner_url: str) -> bool:
    with psycopg.connect(owner_url) as connection:
        return connection.execute(_IDLE).fetchone() == (0,)


async def has_no_transactions(owner_url: str) -> bool:
    """Return whether no connection has a transaction open."""
    with psycopg.connect(owner_url) as connection:
        return connection.execute(_OPEN).fetchone() == (0,)


async def places(far: Parts, who: Principal, network: CutNetwork, run: Run, *, full: bool) -> list[tuple[int, Place]]:
    """Run a verb; return the places at its statements: all of them, or a few that are the same each time."""
    network.heal()
    await eventually(partial(is_connected, far))
    wait_long(far.database)
    network.arm(1_000_000, "before")
    await run(far, who, "first")
    found: list[tuple[int, Place]] = [
        (n, place) for n in range(1, len(network.passed) + 1) for place in get_args(Place)
    ]
    return found if full else random.Random(len(found)).sample(found, min(_SAMPLED, len(found)))  # noqa: S311


@pytest.mark.parametrize("verb", VERBS, ids=[verb.name for verb in VERBS])
async def test_a_verb_that_breaks_at_any_statement_is_done_once_when_it_is_repeated(
    verb: Verb,
    parts: Parts,
    far: Parts,
    who: Principal,
    network: CutNetwork,
    clock: FakeClock,
    owner_url: str,
    full: bool,
) -> None:
    cuts = 0
    await verb.prepare(parts, who, "first")
    for number, place in await places(far, who, network, verb.run, full=full):
        name = f"{verb.name} {number} {place}"
        await verb.prepare(parts, who, name)
        cuts += await is_cut(far, who, network, verb.run, name, (number, place))
        # Until then, Postgres may hold a job that was claimed.
        await eventually(partial(has_no_transactions, owner_url))
        clock.advance(hours=2)
        await verb.run(parts, who, name)
        async with parts.database.tenant(who.pool_id) as connection:
            found = await (await connection.execute(verb.effect, {"name": name})).fetchone()
        assert found == verb.right, network.name()
    assert cuts
    assert await broken(parts) == []
    await transactions_end(owner_url)


async def test_a_worker_that_breaks_at_any_statement_leaves_rows_that_another_one_embeds(
    parts: Parts, far: Parts, who: Principal, network: CutNetwork, clock: FakeClock, owner_url: str, full: bool
) -> None:
    async with embedding_server() as endpoint, asked_at(endpoint) as embedder:
        space = await known_space(parts, embedder)

        async def embedded(its: Parts, who: Principal, _: str) -> None:
            while await embed_due(its, embedder, space, who.pool_id):
                pass

        cuts = 0
        await noted(parts, who, "first")
        for number, place in await places(far, who, network, embedded, full=full):
            await noted(parts, who, f"{number} {place}")
            cuts += await is_cut(far, who, network, embedded, "", (number, place))
            # Until then, Postgres may hold a job that was claimed.
            await eventually(partial(has_no_transactions, owner_url))
            clock.advance(hours=2)
            await embedded(parts, who, "")
            with psycopg.connect(owner_url) as connection:
                left = connection.execute("SELECT count(*) FROM embedding_attempts").fetchone()
            assert left == (0,), network.name()
    assert cuts
    assert await broken(parts) == []
    await transactions_end(owner_url)
