"""Keep facts: write the facts of an observer as rows, or merge them into existing rows, or replace those.

If a live row of the same session or project already says a fact, the row gets another source. A fact that replaces
an earlier row supersedes it; both are kept. `server/core/facts/reconciling.py` decides which is which.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from esker.server.core.errors import RowsChanged
from esker.server.core.facts.reconciling import (
    NewFact,
    ReconciliationPlan,
    best_used,
    discriminating_terms,
    named_by,
    new_facts,
    planned,
)
from esker.server.core.facts.records import Fact, TranscriptSlice
from esker.server.core.facts.same_fact import fingerprint
from esker.server.core.records import Memory
from esker.server.db.database import Connection
from esker.server.db.pipeline import send
from esker.server.store import memories, vectors

_CANDIDATES = 50


async def prepare_facts(
    shown: TranscriptSlice, group_id: str, author: str, facts: Sequence[Fact], now: datetime
) -> list[NewFact]:
    """Make rows of facts, each wording once. The slow part is done here, before a transaction begins."""
    return await asyncio.to_thread(new_facts, shown, group_id, author, facts, now)


async def plan_facts(
    connection: Connection, shown: TranscriptSlice, facts: Sequence[NewFact], used_ids: Sequence[str], now: datetime
) -> ReconciliationPlan:
    """Plan whether each fact is inserted, merged or replaces rows, and lock every row that will change.

    The caller holds the session's lock. `used_ids` are memories that the agent used; those that were not shown are
    ignored. From here on, other writers to the session or its project wait, so that no fact is written twice.
    Raises RowsChanged when a row was forgotten or replaced meanwhile: the transaction must begin anew, since all locks
    are taken in one order.
    """
    session = shown.session
    await memories.lock_observed(connection, session.project or session.id)
    sharing = [
        await send(
            connection,
            memories.sharing(asked, session_id=session.id, project=session.project, now=now, limit=_CANDIDATES),
        )
        for asked in (
            [discriminating_terms(fact.row.terms) for fact in facts],
            [fingerprint(named_by(fact.fact)).terms for fact in facts],
        )
    ]
    contents = [fact.fact.content for fact in facts]
    same_words = memories.same_words(contents, session_id=session.id, project=session.project, now=now)
    said_already = await send(connection, same_words)
    shown_ids = {row.id for row in (*shown.previous, *shown.known, *shown.related)}
    there = await send(connection, memories.by_ids(shown_ids))
    ids = [await each for each in sharing]
    rows = await memories.get(connection, {row_id for each in ids for some in each for row_id in some})
    # A row may have been forgotten since.
    alike, meant = [[[rows[row_id] for row_id in some if row_id in rows] for some in each] for each in ids]
    worded: dict[str, list[Memory]] = {}
    for row in await said_already:
        worded.setdefault(row.content, []).append(row)
    alike = [[*worded.get(content, ()), *some] for content, some in zip(contents, alike, strict=True)]
    offered = {row.id: row for row in (await there).values() if row.superseded_at is None}
    used = best_used({i: row for i, row in offered.items() if i not in {one.id for one in shown.related}}, used_ids)
    # Comparing many rows is slow, so it runs in a thread.
    plan = await asyncio.to_thread(planned, facts, alike, meant, offered)
    touched = {*used, *plan.merged_into, *(plan.replaced.keys() - {fact.row.memory.id for fact in facts})}
    if touched and await memories.lock_live(connection, touched) != touched:
        raise RowsChanged("A row was changed while it was being compared.")
    return replace(plan, used=used)


async def write_plan(
    connection: Connection, plan: ReconciliationPlan, shown: TranscriptSlice, group_id: str, now: datetime
) -> None:
    """Write a plan; the group must exist."""
    written = await memories.insert(connection, plan.fresh)
    await vectors.enqueue(connection, written, now)
    await memories.add_restatements(connection, list(plan.merged_into.values()), shown.session.id, group_id)
    await memories.supersede(connection, plan.replaced, now)
    await memories.inherit_sources(connection, plan.said_by)
    await memories.mark_used(connection, plan.used, min(now, shown.messages[-1].sent_at))
