"""Forget a fact with everything that says it: rows, vectors, terms, reflections, packs, notes, echoes and messages.

`plan_forgetting.py` decides what that is. All of it goes in one transaction, which searches every text of the pool
before it commits: the receipt says what is left.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from esker.server.core.clock import as_utc
from esker.server.core.errors import Conflict, InvalidInput
from esker.server.core.facts.forgetting import ForgetPlan, ForgetRequest, Receipt, Selection
from esker.server.core.ids import new_id
from esker.server.core.json_input import Json
from esker.server.core.records import Memory, Principal
from esker.server.core.text.labels import without_notes, without_quotations
from esker.server.core.text.phrases import Phrases
from esker.server.db.database import Connection
from esker.server.store import (
    audit,
    forgetting,
    hidden_calls,
    jobs,
    memories,
    messages,
    packs,
    projects,
    quarantine,
    session_histories,
    sessions,
    text_columns,
    vectors,
)
from esker.server.usecases.cut_passages import leave_out_of_passages
from esker.server.usecases.find_phrases import saying
from esker.server.usecases.parts import Parts
from esker.server.usecases.plan_forgetting import Doomed, doomed_by, plan_of
from esker.server.usecases.tombstones import bury, bury_places

_MOST_TRIES = 5
MOST_IDS = 1_000
MOST_WORDS = 50
_SHORTEST_WORD = 2
"""Characters that words to forget must have: a single letter would be found everywhere."""


async def forget(parts: Parts, who: Principal, request: ForgetRequest, *, shown: str | None = None) -> Receipt:
    """Delete what a request names, what says the same, and what was drawn from it; blank its messages if asked.

    A reflection is deleted with the rows it replaced, and a row with the reflections drawn from it; other sources of
    such a reflection are live again. An insight is deleted without the sources beside it, unless they say the same. A
    newer row that quotes a forgotten one loses the quotation. Packs that show any of these are deleted and frozen
    again at the next request. That changes a frozen prefix: forgetting is more important.

    A passage contains only the words of its messages, so these are blanked in any case, and the rows taken from them
    are deleted. Raises NotFound, InvalidInput, and Conflict when sessions repeat it faster than it can be forgotten, or
    when its plan is not the one that a person was `shown` (its digest; None: nobody was).
    """
    request = _checked(request)
    locked: set[str] = set()
    for _ in range(_MOST_TRIES):
        async with parts.database.tenant(who.pool_id) as connection:
            # Before all other locks, as when a quarantine is lifted.
            await quarantine.lock(connection)
            if request.selection.words:
                # No key is bound to a project whose name is being forgotten, and no project gets such a name.
                await projects.lock(connection)
            await sessions.lock_all(connection, locked)
            doomed = await doomed_by(parts, connection, request)
            if doomed.sessions <= locked:
                if shown is not None and (await plan_of(connection, request, doomed)).digest != shown:
                    raise Conflict("Something else would be forgotten now than was shown; nothing was forgotten.")
                receipt, reworded = await _forget(parts, connection, who, request, await _locked(connection, doomed))
                break
        # Locking them now would break the lock order, so start again.
        locked |= doomed.sessions
    else:
        raise Conflict("Sessions keep repeating this; nothing was forgotten.", hint="Try again.")
    # Another transaction, since this one has locked other entries of the queue.
    async with parts.database.tenant(who.pool_id) as connection:
        await vectors.enqueue(connection, reworded, parts.clock())
    return receipt


async def forget_text(
    parts: Parts, who: Principal, text_id: str, *, with_messages: bool, echoes: bool = True
) -> Receipt:
    """Forget a memory or a passage by its id, as `forget` does."""
    return await forget(parts, who, ForgetRequest(Selection(ids=[text_id]), with_messages, echoes))


async def plan_forgetting(parts: Parts, pool_id: str, request: ForgetRequest) -> ForgetPlan:
    """Return what `forget` would forget; nothing changes. Raises NotFound, InvalidInput."""
    request = _checked(request)
    async with parts.database.moment(pool_id) as connection:
        return await plan_of(connection, request, await doomed_by(parts, connection, request))


def _checked(request: ForgetRequest) -> ForgetRequest:
    """Return a request with times in UTC. Raises InvalidInput."""
    selection = request.selection
    if selection.ids and (selection.words or selection.is_limited):
        raise InvalidInput("Ids cannot be combined with words or limits.")
    if not (selection.ids or any(map(str.strip, selection.words)) or selection.is_limited):
        raise InvalidInput("Nothing is named.", hint="Give ids, words, or limits such as a session.")
    if len(selection.ids) > MOST_IDS or len(selection.words) > MOST_WORDS:
        raise InvalidInput(f"At most {MOST_IDS:,} ids and {MOST_WORDS} words can be forgotten at once.")
    if any(len(word.strip()) < _SHORTEST_WORD for word in selection.words):
        raise InvalidInput(f"Words must have at least {_SHORTEST_WORD} characters.")
    dated = replace(selection, since=as_utc(selection.since), until=as_utc(selection.until))
    return replace(request, selection=dated)


async def _locked(connection: Connection, doomed: Doomed) -> Doomed:
    """Lock the rows that go or change; leave out those that another transaction deleted meanwhile."""
    # In one statement, so that all locks are taken in one order.
    ids = doomed.rows.keys() | doomed.revived.keys() | doomed.quoting.keys() | doomed.placed
    existing = await memories.lock_to_delete(connection, ids)
    doomed.rows = {memory_id: row for memory_id, row in doomed.rows.items() if memory_id in existing}
    doomed.quoting = {memory_id: row for memory_id, row in doomed.quoting.items() if memory_id in existing}
    return doomed


async def _forget(
    parts: Parts, connection: Connection, who: Principal, request: ForgetRequest, doomed: Doomed
) -> tuple[Receipt, list[str]]:
    """Delete locked rows and all that shows them; return also the ids of rows that need new vectors.

    The key of the hashes is locked after the memories, and only here. The other locks are taken in the common order
    (`store/sessions.py`), except that passages whose project gets another name are locked after the queue of vectors.
    """
    now = parts.clock()
    receipt_id = new_id("fgt", now)
    said_in = {session_id: sorted(seqs) for session_id, seqs in doomed.messages.items()}
    digests = await bury(parts, connection, request, doomed, receipt_id, now)
    blanked = await _blank(connection, {s: sorted(seqs) for s, seqs in doomed.blanked(request).items()})
    # Otherwise recall would still find it word for word.
    await leave_out_of_passages(parts, connection, said_in)
    contents = {row.id: _unquoted(row.content, doomed.phrases) for row in doomed.quoting.values()}
    numbers, restored, reworded = await _delete_rows(connection, doomed.rows, contents)
    await forgetting.forget_notes(connection, doomed.noted_in, doomed.notes)
    renamed = set[str]()
    if request.selection.words:
        renamed = await text_columns.rename_places(connection, doomed.phrases, digests.name_for)
        await projects.rename_in_jobs(connection, {place: digests.name_for(place) for place in renamed})
    # An id that was made of words would confirm a guess of them, and so would that of the turn behind it.
    turns = await messages.turn_ids(connection, doomed.blanked(request))
    await text_columns.give_turns_names(connection, {turn: digests.name_for(turn) for turn in turns})
    await bury_places(connection, digests, renamed | turns, receipt_id, now)
    await jobs.forget_errors(connection, doomed.sessions)
    embedded = await vectors.delete(connection, "memory", [*numbers, *reworded])
    shown = await packs.delete_showing(connection, {*doomed.rows, *doomed.quoting, *doomed.placed})
    await hidden_calls.delete_all(connection)
    await session_histories.delete(connection, doomed.sessions)
    receipt = Receipt(
        id=receipt_id,
        memories=len(numbers),
        reflections=sum(row.kind == "reflection" for row in doomed.rows.values()),
        restored=restored,
        vectors=embedded,
        packs=shown,
        messages=blanked,
        notes=len(doomed.notes),
        renamed=len(renamed),
        left=await _left(parts, connection, doomed.phrases),
    )
    counts: dict[str, Json] = {
        name: getattr(receipt, name) for name in ("memories", "vectors", "packs", "messages", "notes", "renamed")
    }
    await audit.insert(connection, who.actor, "forget", receipt.id, counts, now)
    return receipt, list(doomed.quoting)


async def _left(parts: Parts, connection: Connection, phrases: Phrases) -> dict[str, int]:
    """Return how many texts of the pool contain one of some phrases, by place, without places in which none does."""
    left: dict[str, int] = {}
    for column in text_columns.TEXT_COLUMNS if phrases else ():
        async with aclosing(text_columns.maybe_containing(connection, column, phrases)) as batches:
            async for values in batches:
                if count := sum(await saying(parts, phrases, values)):
                    left[column.words] = left.get(column.words, 0) + count
    return left


def _unquoted(content: str, phrases: Phrases) -> str:
    """Return a row without its notes about older rows and, if it still says it, without all that it quotes."""
    noted = without_notes(content)
    return without_quotations(noted) if phrases.found_in(noted) else noted


async def _delete_rows(
    connection: Connection, rows: Mapping[str, Memory], contents: Mapping[str, str]
) -> tuple[list[int], int, list[int]]:
    """Return the numbers of deleted rows, how many are live again, and the numbers of those that got new `contents`."""
    numbers = await memories.delete(connection, rows.keys())
    restored = await memories.restore(connection, rows.keys())
    await quarantine.forget_superseders(connection, rows.keys())
    return numbers, len(restored), await memories.reword(connection, contents)


async def _blank(connection: Connection, said_in: Mapping[str, Sequence[int]]) -> int:
    """Blank messages, each once; return how many."""
    blanked = 0
    for session_id, seqs in said_in.items():
        # An observer that is reading these messages must not store facts from them.
        await jobs.take_back(connection, "observe", session_id)
        blanked += await messages.blank(connection, session_id, seqs)
    return blanked
