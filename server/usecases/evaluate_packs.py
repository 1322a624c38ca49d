"""Check the pack that a new session would get, row by row, without freezing it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from datetime import datetime

from esker.server.core.budgets import DEFAULT_EFFECTIVE_CONTEXT, budgets
from esker.server.core.conversation.records import StoredSession
from esker.server.core.pack.rendering import render_own, render_pack
from esker.server.core.pool.evaluation import FreshPack, PackFault, PackWorth
from esker.server.core.pool.row_worth import Worthless, worthless
from esker.server.core.records import Memory
from esker.server.db.database import Connection
from esker.server.store import memories
from esker.server.usecases.find_repeats import find_repeats
from esker.server.usecases.pack import choose_rows


async def check_pack(connection: Connection, project: str | None, space: str | None, now: datetime) -> FreshPack:
    """Return the pack that a new session of a project would get, and which of its rows should not be in it."""
    session = _new_session(project, now)
    choice = await choose_rows(connection, session, now)
    # The budget excludes the session's own part, which is two empty tags in a new session.
    (_, tokens), (_, own) = render_pack(choice.lines, session.timezone), render_own(choice.lines, session.timezone)
    shown = [reason.id for reason in choice.reasons]
    rows = await memories.get(connection, shown)
    said_by = (await find_repeats(connection, space, rows.values())).said_by
    faults: dict[str, PackFault] = {
        row_id: fault for row_id in shown if (fault := _fault(rows.get(row_id), project, now))
    }
    before: set[str] = set()
    for row_id in shown:
        if not before.isdisjoint(said_by.get(row_id, ())):
            faults.setdefault(row_id, "repeat")
        before.add(row_id)
    budget = budgets(session.effective_context).global_pack_tokens
    repeated = {row_id for row_id, fault in faults.items() if fault == "repeat"}
    worth = _worth([rows[row_id] for row_id in shown if row_id in rows], repeated)
    return FreshPack(project, len(shown), faults, tokens - own, budget, choice.pins_left, worth)


def _worth(rows: Iterable[Memory], repeated: Set[str]) -> PackWorth:
    found: dict[str, Worthless] = {}
    tokens, wasted = 0, Counter[Worthless]()
    for row in rows:
        tokens += row.tokens
        if reason := "repeat" if row.id in repeated else worthless(row.content, row.kind):
            found[row.id] = reason
            wasted[reason] += row.tokens
    return PackWorth(tokens, found, wasted)


def _fault(row: Memory | None, project: str | None, now: datetime) -> PackFault | None:
    return next(_faults(row, project, now), None)


def _faults(row: Memory | None, project: str | None, now: datetime) -> Iterator[PackFault]:
    if row is None:
        yield "gone"
        return
    if row.superseded_at is not None:
        yield "superseded"
    if row.valid_until is not None and row.valid_until <= now:
        yield "expired"
    # A session without a project sees rows of every project.
    if project is not None and row.project not in (None, project):
        yield "elsewhere"


def _new_session(project: str | None, now: datetime) -> StoredSession:
    """Return a session that has just begun; no table contains it."""
    return StoredSession(
        id="ses_new",
        client="api",
        external_id="new",
        project=project,
        cwd=None,
        timezone="UTC",
        effective_context=DEFAULT_EFFECTIVE_CONTEXT,
        last_seq=0,
        observed_seq=0,
        total_tokens=0,
        unobserved_tokens=0,
        last_received_at=None,
        reflect_at_tokens=None,
        pack_version=0,
        current_task=None,
        suggested_continuation=None,
        thread_title=None,
        created_at=now,
        begun_at=now,
        last_sent_at=None,
        kept_by="client",
    )
