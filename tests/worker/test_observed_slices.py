"""A session is observed slice by slice, each from the message after the last one that was covered."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from esker.server.core.budgets import LARGE_OBSERVER, ObserverBudget
from esker.server.core.facts.records import Observed, TranscriptSlice
from esker.server.core.records import Principal
from esker.server.providers.roles import Meter
from esker.server.store import sessions
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.observe import observe, observe_leased
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.run_job import claim_job, run_job


@dataclass
class PartialObserver:
    """Covers at most two messages of a slice."""

    name: str = "partial"
    slices: list[Sequence[int]] = field(default_factory=list[Sequence[int]])

    async def budget(self) -> ObserverBudget:
        """Return the usual budget."""
        return LARGE_OBSERVER

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Find nothing in the first two messages."""
        self.slices.append([message.seq for message in shown.messages])
        return Observed(facts=(), last_seq=shown.messages[:2][-1].seq)

    async def close(self) -> None:
        """Do nothing."""


async def test_messages_that_an_observer_did_not_cover_are_in_the_next_slice(parts: Parts, who: Principal) -> None:
    observer = PartialObserver()
    parts = replace(parts, observer=observer)
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s1"))
    messages = [IncomingMessage(f"m{n}", "user", f"Berth {n} was dredged.") for n in range(1, 6)]
    await ingest(parts, who.pool_id, session.id, messages)
    await observe(parts, who.pool_id, session.id, wait=False)
    lease = await claim_job(parts, who.pool_id, ["observe"])
    assert lease
    await run_job(parts, lease, observe_leased)
    assert observer.slices == [[1, 2, 3, 4, 5], [3, 4, 5], [5]]
    async with parts.database.tenant(who.pool_id) as connection:
        assert (await sessions.get(connection, session.id)).observed_seq == 5
