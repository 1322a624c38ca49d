"""Observe: the unobserved messages of a session become memories, slice by slice, oldest first.

A slice is read in one transaction, shown to the observer without any connection held, and written in another that
is refused unless the job's lease and the session's cursor are what they were. So a crash, a second worker or a late
answer neither loses a message nor covers it twice.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from server.core.blocks import cut
from server.core.budgets import MAX_TRANSCRIPT_TOKENS, PREVIOUS_OBSERVATION_TOKENS, budgets
from server.core.errors import Conflict
from server.core.ids import new_id, new_ids
from server.core.indexing import IndexedMemory, indexed
from server.core.records import Fact, Lease, NewMemory, Observed, Session, TranscriptSlice
from server.core.redaction import redact
from server.core.slices import first_slice
from server.db.database import Connection
from server.providers.roles import Observer
from server.store import groups, jobs, memories, messages, sessions, vectors
from server.usecases.ingest import observe_due
from server.usecases.parts import Parts
from server.usecases.run_job import wait_for_job

_MOST_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class ObserveReport:
    """What observing a session wrote; `queued` says that it will happen in the background."""

    groups: int
    memories: int
    observer: str
    queued: bool
    group_ids: list[str]
    memory_ids: list[str]


async def observe(parts: Parts, pool_id: str, session_id: str, *, wait: bool) -> ObserveReport:
    """Have everything that a session holds by now observed, in the background or, with `wait`, before returning.

    What takes longer than a request may last goes on in the background; asking again waits on. Raises NotFound,
    Conflict when observing is switched off, and with `wait` whatever the job failed with.
    """
    observer = _observer(parts)
    async with parts.database.tenant(pool_id) as connection:
        before = await sessions.lock(connection, session_id)
        if before.unobserved_tokens:
            await jobs.request(connection, "observe", session_id, parts.clock(), before.last_seq)

    async def done(connection: Connection) -> bool:
        return (await sessions.get(connection, session_id)).observed_seq >= before.last_seq

    finished = not before.unobserved_tokens
    if wait and not finished:
        finished = await wait_for_job(parts, pool_id, session_id, "observe", done)
    async with parts.database.tenant(pool_id) as connection:
        group_ids, memory_ids = await groups.since(connection, session_id, before.observed_seq)
    return ObserveReport(len(group_ids), len(memory_ids), observer.name, not finished, group_ids, memory_ids)


async def observe_leased(parts: Parts, lease: Lease) -> None:
    """Observe a session slice by slice until nothing is due, and end the job."""
    observer = _observer(parts)
    while shown := await _next_slice(parts, lease):
        seen = any(message.text for message in shown.messages)
        observed = await observer.observe(shown) if seen else Observed(facts=())
        await _commit(parts, lease, shown, observer.name, observed)


def _observer(parts: Parts) -> Observer:
    if parts.observer is None:
        raise Conflict("Observing is switched off on this server.", hint="Set ESKER_OBSERVER to switch it on.")
    return parts.observer


async def _next_slice(parts: Parts, lease: Lease) -> TranscriptSlice | None:
    """Read what to observe next; when nothing is due, end the job in the same transaction and return None."""
    now = parts.clock()
    async with parts.database.tenant(lease.pool_id) as connection:
        session = await sessions.lock(connection, lease.session_id)
        up_to_seq = await jobs.hold(connection, lease, lease.until)
        if not session.unobserved_tokens:
            await jobs.done(connection, lease, now)
            return None
        due = observe_due(parts.settings, session.unobserved_tokens, session.last_received_at or now, now)
        if session.observed_seq >= up_to_seq and due > now:
            await jobs.rest(connection, lease, due)
            return None
        backlog = await messages.unobserved(connection, session.id, session.observed_seq, MAX_TRANSCRIPT_TOKENS)
        previous = await memories.latest_of_session(connection, session.id, PREVIOUS_OBSERVATION_TOKENS)
    return TranscriptSlice(
        session, await asyncio.to_thread(first_slice, backlog, MAX_TRANSCRIPT_TOKENS), tuple(previous)
    )


async def _commit(parts: Parts, lease: Lease, shown: TranscriptSlice, observer: str, observed: Observed) -> None:
    """Write a group, its memories and the cursor together, or nothing. Raises LeaseLost."""
    now = parts.clock()
    session, first, last = shown.session, shown.messages[0], shown.messages[-1]
    group_id = new_id("grp", now)
    observed = replace(
        observed,
        current_task=_short(observed.current_task),
        suggested_continuation=_short(observed.suggested_continuation),
        thread_title=_short(observed.thread_title),
    )
    rows = await asyncio.to_thread(_rows, session, group_id, observer, observed.facts, now)
    async with parts.database.tenant(lease.pool_id) as connection:
        await sessions.cover(connection, session.id, first.seq, last.seq, observed)
        await jobs.hold(connection, lease, lease.until)
        await jobs.progress(connection, lease)
        await groups.insert(
            connection,
            group_id=group_id,
            session=session,
            first=first,
            last=last,
            observer=observer,
            observed=observed,
            now=now,
        )
        written = await memories.insert(connection, rows)
        await vectors.enqueue(connection, written, now)
        await _reflect_when_full(parts, connection, session.id, session.effective_context)


def _short(text: str | None) -> str | None:
    """Return what an observer says about the session, without secrets and in a size that a list can hold."""
    return cut(redact(text.strip()), _MOST_CHARACTERS) or None if text else None


def _rows(session: Session, group_id: str, observer: str, facts: Sequence[Fact], now: datetime) -> list[IndexedMemory]:
    ids = new_ids("mem", now, len(facts))
    return indexed(
        NewMemory(
            id=memory_id,
            kind="observation",
            priority=fact.priority,
            category=fact.category,
            trust=fact.trust,
            content=redact(fact.content),
            author=observer,
            said_at=fact.said_at,
            created_at=now,
            session_id=session.id,
            group_id=group_id,
            project=session.project,
            tags=fact.tags,
            source_seqs=fact.source_seqs,
            refers_from=fact.refers_from,
            refers_to=fact.refers_to,
            valid_until=fact.valid_until,
        )
        for memory_id, fact in zip(ids, facts, strict=True)
    )


async def _reflect_when_full(parts: Parts, connection: Connection, session_id: str, effective_context: int) -> None:
    trigger = budgets(effective_context).observation_tokens
    if parts.reflector and await memories.observation_tokens(connection, session_id) >= trigger:
        now = parts.clock()
        await jobs.schedule(connection, "reflect", session_id, now, now)
