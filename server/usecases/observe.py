"""Observe: turn the unobserved messages of a session into memories, slice by slice, oldest first.

A slice is read in one transaction, shown to the observer while no connection is held, and written in another one that
is refused unless the job's lease and the session's cursor are unchanged. So a crash, a second worker or a late answer
neither loses a message nor covers it twice.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain, zip_longest

from esker.server.core.budgets import (
    ObserverBudget,
    reflect_trigger,
)
from esker.server.core.conversation.blocks import recalled_ids, result_ids, tool_names
from esker.server.core.conversation.observer_text import observer_text
from esker.server.core.conversation.records import StoredMessage, StoredSession
from esker.server.core.conversation.slices import first_slice
from esker.server.core.errors import Conflict, RowsChanged, SpendCapReached
from esker.server.core.facts.reconciling import NewFact, discriminating_terms
from esker.server.core.facts.records import Observed, TranscriptSlice
from esker.server.core.ids import new_id
from esker.server.core.json_input import characters
from esker.server.core.pack.rendering import offered_cost
from esker.server.core.records import Lease, Memory
from esker.server.core.redaction import redact
from esker.server.core.reports import ObserveReport
from esker.server.core.text.cutting import cut
from esker.server.core.text.terms import index_terms
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, fetch, send
from esker.server.db.pipeline import known as answered
from esker.server.providers.roles import Observer
from esker.server.store import groups, jobs, memories, messages, packs, sessions
from esker.server.usecases.ingest import observe_due
from esker.server.usecases.keep_facts import plan_facts, prepare_facts, write_plan
from esker.server.usecases.parts import Parts
from esker.server.usecases.quarantine import extend_quarantines
from esker.server.usecases.reflect_pool import schedule_daily
from esker.server.usecases.run_job import wait_for_job
from esker.server.usecases.spending import PoolMeter, falls_back
from esker.server.usecases.tombstones import SaidText, are_forgotten

_MOST_CHARACTERS = 500
_MOST_TRIES = 5
# The search for related rows: maximum messages that are searched for, terms of each, and rows for each.
_MOST_SEARCHED = 40
_MOST_TERMS = 12
_MOST_RELATED = 5
# Maximum assertions of the project's other sessions that are shown without a shared word.
_MOST_LATEST = 10


async def observe(parts: Parts, pool_id: str, session_id: str, *, wait: bool) -> ObserveReport:
    """Have all messages that a session holds now observed, in the background or, with `wait`, before returning.

    A job that takes longer than a request may last continues in the background; another request waits on. Raises
    NotFound, Conflict when observing is switched off, and with `wait` the error of a failed job.
    """
    observer = _observer(parts)
    if wait:
        parts.breakers.try_again()
    async with parts.database.tenant_pipeline(pool_id) as connection:
        before = await sessions.lock(connection, session_id)
        if before.unobserved_tokens:
            await jobs.request(connection, "observe", session_id, parts.clock(), up_to_seq=before.last_seq)

    async def done(connection: Connection) -> bool:
        return (await sessions.get(connection, session_id)).observed_seq >= before.last_seq

    finished = not before.unobserved_tokens
    if wait and not finished:
        finished = await wait_for_job(parts, pool_id, session_id, "observe", done)
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked_outcomes = await send(connection, groups.since(session_id, before.observed_seq))
    outcomes = await asked_outcomes
    memory_ids = [memory_id for outcome in outcomes for memory_id in outcome.memory_ids]
    return ObserveReport(
        groups=len(outcomes),
        memories=len(memory_ids),
        merged=sum(outcome.merged for outcome in outcomes),
        replaced=sum(outcome.replaced for outcome in outcomes),
        refused=dict(sum((Counter(outcome.refused) for outcome in outcomes), Counter[str]())),
        # The spare (extractive) observer, if the daily cap was reached meanwhile.
        observer=outcomes[-1].observer if outcomes else observer.name,
        queued=not finished,
        group_ids=[outcome.id for outcome in outcomes],
        memory_ids=memory_ids,
    )


async def observe_leased(parts: Parts, lease: Lease) -> None:
    """Observe a session slice by slice until nothing is due, and end the job."""
    observer = _observer(parts)
    while shown := await _next_slice(parts, lease, await observer.budget()):
        if any(message.text for message in shown.messages):
            name, observed = await _observed(parts, lease, observer, shown)
        else:
            name, observed = observer.name, Observed(facts=())
        await _commit(parts, lease, shown.up_to(observed.last_seq), name, observed)
        await extend_quarantines(parts, lease.pool_id)


async def _observed(parts: Parts, lease: Lease, observer: Observer, shown: TranscriptSlice) -> tuple[str, Observed]:
    """Return the name of the observer and its output; the spare observer if the daily cap is reached and allows it."""
    meter = PoolMeter(parts, lease.pool_id, "observe")
    try:
        return observer.name, await observer.observe(shown, meter)
    except SpendCapReached:
        if parts.spare_observer is None or not await falls_back(parts, lease.pool_id):
            raise
        return parts.spare_observer.name, await parts.spare_observer.observe(shown, meter)


def _observer(parts: Parts) -> Observer:
    if parts.observer is None:
        raise Conflict("Observing is switched off on this server.", hint="Set ESKER_OBSERVER to switch it on.")
    return parts.observer


async def _next_slice(parts: Parts, lease: Lease, budget: ObserverBudget) -> TranscriptSlice | None:
    """Read the next slice; when nothing is due, end the job in the same transaction and return None."""
    now = parts.clock()
    async with parts.database.tenant_pipeline(lease.pool_id) as connection:
        locked = await send(connection, sessions.locked(lease.subject))
        unobserved = await send(connection, messages.unobserved(lease.subject, budget.transcript))
        up_to_seq = await jobs.hold(connection, lease, lease.until)
        session = await locked
        if not session.unobserved_tokens:
            await jobs.done(connection, lease, now)
            return None
        due = observe_due(parts.settings, session.unobserved_tokens, session.last_received_at or now, now)
        if session.observed_seq >= up_to_seq and due > now:
            await jobs.rest(connection, lease, due)
            return None
        backlog = await unobserved
        names = await _tool_names(connection, session, backlog)
    long = sum(len(message.text) + characters([*message.content]) for message in backlog)
    taken = await parts.processes.run(long, _first_slice, backlog, names, budget.transcript)
    recalled = await asyncio.to_thread(lambda: [i for message in taken for i in recalled_ids(message.content, names)])
    said = await asyncio.to_thread(_terms_said, taken)
    async with parts.database.moment_pipeline(lease.pool_id) as connection:
        asked_previous = await send(connection, memories.latest_of_session(session.id, budget.previous))
        pack = await send(connection, packs.current(session.id))
        related = await _send_related(connection, session, said, now)
        previous, frozen = await asked_previous, await pack
        # Live rows that the agent got in its pack or by a recall.
        got = dict.fromkeys([*recalled, *(frozen.memory_ids if frozen else ())])
        known = await send(connection, memories.by_ids(got.keys() - {row.id for row in previous}))
        sharing = await send(connection, memories.by_ids({row_id for ids in await related.sharing for row_id in ids}))
    rows = await known
    fitting = _fitting((rows[row_id] for row_id in got if row_id in rows), budget.known)
    shown = TranscriptSlice(session, taken, tuple(previous), tuple(fitting))
    return replace(shown, related=tuple(await _related(shown, related, await sharing, budget.related)))


def _terms_said(shown: Sequence[StoredMessage]) -> list[list[str]]:
    """Return the discriminating terms of what a person says in each of the last messages."""
    said = [message for message in shown if message.trust == "user" and message.text][-_MOST_SEARCHED:]
    return [discriminating_terms(index_terms(message.text))[:_MOST_TERMS] for message in said]


@dataclass(frozen=True, slots=True)
class _RelatedRows:
    """Queries under way for rows of the project: the ids that share terms with each message, and the latest rows."""

    sharing: Answer[list[list[str]]]
    latest: Answer[list[Memory]]


async def _send_related(
    connection: Connection, session: StoredSession, said: Sequence[Sequence[str]], now: datetime
) -> _RelatedRows:
    if session.project is None:
        return _RelatedRows(answered([]), answered([]))
    place = {"session_id": session.id, "project": session.project}
    return _RelatedRows(
        await send(connection, memories.sharing(said, **place, now=now, limit=_MOST_RELATED)),
        await send(connection, memories.latest_of_project(**place, now=now, limit=_MOST_LATEST)),
    )


async def _related(
    shown: TranscriptSlice, related: _RelatedRows, sharing: Mapping[str, Memory], room: int
) -> list[Memory]:
    """Return rows of the session's project that share words with what a person says here, then the latest, in budget.

    The observer can only replace a row of another session if it is shown that row, and "make it 45" shares no words.
    """
    shown_already = {row.id for row in (*shown.previous, *shown.known)}
    # The best row for each message first.
    best = (row_id for rank in zip_longest(*await related.sharing) for row_id in rank if row_id is not None)
    ordered = chain((sharing[row_id] for row_id in best if row_id in sharing), await related.latest)
    unseen = {row.id: row for row in ordered if row.id not in shown_already}
    return _fitting(unseen.values(), room)


def _fitting(rows: Iterable[Memory], room: int) -> list[Memory]:
    """Return the live rows that fit into `room` tokens, in order; a row that does not fit is skipped."""
    fitting: list[Memory] = []
    for row in rows:
        if row.superseded_at is None and (cost := offered_cost(row)) <= room:
            room -= cost
            fitting.append(row)
    return fitting


async def _tool_names(
    connection: Connection, session: StoredSession, backlog: Sequence[StoredMessage]
) -> Mapping[str, str]:
    """Return the tool name of each call id, including calls before the backlog whose results are in it."""
    names = {call: name for message in backlog for call, name in tool_names(message.content).items()}
    before = {call for message in backlog for call in result_ids(message.content)} - names.keys()
    if before:
        names |= await fetch(connection, messages.tool_names(session.id, before, backlog[0].seq))
    return names


def _first_slice(backlog: Sequence[StoredMessage], names: Mapping[str, str], limit: int) -> tuple[StoredMessage, ...]:
    return first_slice(_as_observed(backlog, names), limit)


def _as_observed(backlog: Sequence[StoredMessage], names: Mapping[str, str]) -> list[StoredMessage]:
    """Return messages with the text that an observer is shown; a forgotten one has none."""
    return [
        replace(message, text=observer_text(message.role, message.content, names)) if message.text else message
        for message in backlog
    ]


async def _commit(parts: Parts, lease: Lease, shown: TranscriptSlice, observer: str, observed: Observed) -> None:
    """Write a group, its memories and the cursor together, or nothing. Raises LeaseLost."""
    now = parts.clock()
    group_id = new_id("grp", now)
    observed = replace(
        observed,
        current_task=_short(observed.current_task),
        suggested_continuation=_short(observed.suggested_continuation),
        thread_title=_short(observed.thread_title),
    )
    facts = await prepare_facts(shown, group_id, observer, observed.facts, now)
    for _ in range(_MOST_TRIES - 1):
        with suppress(RowsChanged):
            # A row that a fact was to be merged into was forgotten or replaced meanwhile, so the plan changes.
            return await _write(parts, lease, shown, observer, observed, group_id, facts)
    return await _write(parts, lease, shown, observer, observed, group_id, facts)


async def _write(
    parts: Parts,
    lease: Lease,
    shown: TranscriptSlice,
    observer: str,
    observed: Observed,
    group_id: str,
    facts: Sequence[NewFact],
) -> None:
    """Write what was observed in one transaction. Raises LeaseLost, RowsChanged."""
    now = parts.clock()
    session, first, last = shown.session, shown.messages[0], shown.messages[-1]
    async with parts.database.tenant_pipeline(lease.pool_id) as connection:
        # Waits for a transaction that forgets, since its facts must not come back.
        locked = await send(connection, sessions.locked(session.id))
        observed, facts = await _without_forgotten(parts, connection, shown, observed, facts)
        # Its project or directory may have got another name since the slice was read.
        shown = replace(shown, session=await locked)
        facts = [fact.in_project(shown.session.project) for fact in facts]
        covered = await sessions.cover(connection, session.id, first.seq, last.seq, observed)
        await jobs.hold(connection, lease, lease.until)
        await covered
        await jobs.progress(connection, lease, now)
        plan = await plan_facts(connection, shown, facts, observed.used_ids, now)
        await groups.insert(
            connection,
            group_id=group_id,
            session=shown.session,
            first_seq=first.seq,
            last_seq=last.seq,
            observer=observer,
            observed=observed,
            merged=plan.merged,
            replaced=len(plan.replaced),
            now=now,
        )
        await write_plan(connection, plan, shown, group_id, now)
        await _reflect_when_full(parts, connection, session.id)
        await schedule_daily(parts, connection, now)


async def _without_forgotten(
    parts: Parts, connection: Connection, shown: TranscriptSlice, observed: Observed, facts: Sequence[NewFact]
) -> tuple[Observed, Sequence[NewFact]]:
    """Return what was observed without what was forgotten; such facts count as refused."""
    project, said_at = shown.session.project, shown.messages[-1].sent_at
    notes = [observed.current_task, observed.suggested_continuation, observed.thread_title]
    rows = [fact.row.memory for fact in facts]
    texts = [SaidText(row.content, row.said_at, project) for row in rows]
    gone = await are_forgotten(parts, connection, [*texts, *(SaidText(note or "", said_at, project) for note in notes)])
    if not any(gone):
        return observed, facts
    kept = [fact for fact, is_gone in zip(facts, gone[: len(facts)], strict=True) if not is_gone]
    task, continuation, title = (
        None if is_gone else note for note, is_gone in zip(notes, gone[len(facts) :], strict=True)
    )
    refused = Counter(observed.refused) + Counter(forgotten=len(facts) - len(kept))
    observed = replace(
        observed, current_task=task, suggested_continuation=continuation, thread_title=title, refused=dict(refused)
    )
    return observed, kept


def _short(text: str | None) -> str | None:
    """Return an observer's words about the session, redacted and short enough for a list."""
    return cut(redact(text.strip()), _MOST_CHARACTERS) or None if text else None


async def _reflect_when_full(parts: Parts, connection: Connection, session_id: str) -> None:
    asked_session = await send(connection, sessions.by_id(session_id))
    tokens = await fetch(connection, memories.observation_tokens(session_id))
    session = await asked_session
    if parts.reflector and tokens >= reflect_trigger(session.effective_context, session.reflect_at_tokens):
        now = parts.clock()
        await jobs.schedule(connection, "reflect", session_id, now, now)
