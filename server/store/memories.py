"""Memories, one fact per row, and their keyword index."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import TupleRow, args_row, class_row

from esker.server.core.clock import LATEST
from esker.server.core.context.session_memory import SessionRowCounts
from esker.server.core.errors import NotFound
from esker.server.core.facts.records import Reflection, Restatement, Superseder
from esker.server.core.pack.records import PackRow
from esker.server.core.pack.rendering import offered_cost
from esker.server.core.pack.walks import Walk, WalkPage, extended
from esker.server.core.records import Filter, Memory, NewMemory, Source
from esker.server.core.text import labels
from esker.server.core.text.indexing import IndexedMemory, indexed_parts, part_values
from esker.server.core.text.tokens import estimate_tokens
from esker.server.db.ahead import computed_ahead
from esker.server.db.database import Connection, Database
from esker.server.db.pipeline import Answer, Query, fetch, send
from esker.server.db.statements import Statements, as_array, as_json

SQL = Statements(Path(__file__).parent / "sql/memories.sql")


@dataclass(frozen=True, slots=True)
class Past:
    """The state of an exported row that is imported. `outdated_at` is -infinity for a row that was undone."""

    last_used_at: datetime
    superseded_by: str | None
    superseded_at: datetime | None
    outdated_at: datetime | str | None
    left_alone: bool


# Rows per statement: even the longest ones are written well within the statement timeout. While Postgres writes them,
# the next ones are prepared.
_MOST_ROWS = 100


def missing(memory_id: str) -> NotFound:
    """Return the error for a memory that does not exist."""
    hint = "`esker memories` lists the existing ones; a key gives access only to its own pool."
    return NotFound(f"There is no memory {memory_id!r} in this pool.", hint=hint)


def filter_values(row_filter: Filter) -> dict[str, Any]:
    """Return the parameters of `visible_memories`."""
    listed = {
        name: as_array(value) if value else None
        for name, value in (
            ("kinds", row_filter.kinds),
            ("priorities", row_filter.priorities),
            ("tags", row_filter.tags),
        )
    }
    return listed | {
        "session": row_filter.session,
        "project": row_filter.project,
        "since": row_filter.since,
        "until": row_filter.until,
        "as_of": row_filter.as_of,
        "moment": row_filter.moment,
        "with_superseded": row_filter.with_superseded,
    }


async def insert(
    connection: Connection, rows: Sequence[IndexedMemory], pasts: Mapping[str, Past] | None = None
) -> set[str]:
    """Write rows and their keyword index; return the ids written. `pasts` has the state of imported rows, by id.

    A row with the external id of a live row, or of another row of this call, is left out.
    """
    known, written = pasts or {}, list[Answer[set[str]]]()
    # Sorted across all statements, so that locks are taken in one order; see the statement.
    ordered = sorted(rows, key=lambda row: (row.memory.external_id or "", row.memory.id))
    batches = [ordered[start : start + _MOST_ROWS] for start in range(0, len(ordered), _MOST_ROWS)]
    async with aclosing(computed_ahead(lambda batch: _insert_values(batch, known), batches)) as ahead:
        async for values in ahead:
            # In a pipeline, Postgres writes them meanwhile.
            written.append(await send(connection, Query(SQL["insert"], values, _ids)))
    return set[str]().union(*[await ids for ids in written])


def _ids(rows: Iterable[TupleRow]) -> set[str]:
    return {str(row[0]) for row in rows}


def _insert_values(batch: Sequence[IndexedMemory], pasts: Mapping[str, Past]) -> dict[str, str]:
    rows = [
        # Postgres reads a missing value as NULL.
        {name: value for name, value in _values(row, pasts.get(row.memory.id)).items() if value is not None}
        | {"place": place}
        for place, row in enumerate(batch, start=1)
    ]
    return {"rows": as_json(rows), **_posting_values(batch)}


def _posting_values(batch: Sequence[IndexedMemory]) -> dict[str, str]:
    """Return the columns of the keyword index of rows, which are numbered from 1 on, in the order of the terms."""
    postings = sorted(
        (term, place, part, frequency, length)
        for place, row in enumerate(batch, start=1)
        for part, terms in enumerate(row.parts, start=1)
        for length in (terms.total(),)
        for term, frequency in terms.items()
    )
    terms, *numbers = zip(*postings, strict=True) if postings else [()] * 5
    names = ("places", "parts", "frequencies", "lengths")
    return {"terms": json.dumps(terms)} | {
        name: f"{{{','.join(map(str, column))}}}" for name, column in zip(names, numbers, strict=True)
    }


def _values(indexed: IndexedMemory, past: Past | None) -> dict[str, Any]:
    row = indexed.memory
    values: dict[str, Any] = {
        "id": row.id,
        "kind": row.kind,
        "priority": row.priority,
        "category": row.category,
        "trust": row.trust,
        "content": row.content,
        "author": row.author,
        "session_id": row.session_id,
        "group_id": row.group_id,
        "project": row.project,
        "tags": row.tags,
        "source_seqs": row.source_seqs,
        "source_ids": row.source_ids,
        "tokens": indexed.tokens,
        "terms": sum(part.total() for part in indexed.parts),
        "parts": len(indexed.parts),
        "said_at": row.said_at.isoformat(),
        "refers_from": _iso(row.refers_from),
        "refers_to": _iso(row.refers_to),
        "valid_until": _iso(row.valid_until),
        # A clock that runs ahead must not keep a row on top.
        "last_used_at": min(row.last_used_at or row.said_at, row.created_at).isoformat(),
        "reflection_id": row.reflection_id,
        "external_id": row.external_id,
        "tentative": row.tentative,
        "facet": row.facet,
        "created_at": row.created_at.isoformat(),
    }
    return values if past is None else values | _past_values(past)


def _past_values(past: Past) -> dict[str, Any]:
    return {
        "last_used_at": past.last_used_at.isoformat(),
        "superseded_by": past.superseded_by,
        "superseded_at": _iso(past.superseded_at),
        "outdated_at": past.outdated_at if isinstance(past.outdated_at, str) else _iso(past.outdated_at),
        "left_alone": past.left_alone,
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


@dataclass(frozen=True, slots=True)
class NamedMemory:
    """A live row with the external id that its caller gave it."""

    external_id: str
    id: str
    content: str


async def by_external_id(connection: Connection, external_ids: Collection[str]) -> dict[str, NamedMemory]:
    """Return the live rows with these external ids."""
    async with connection.cursor(row_factory=class_row(NamedMemory)) as cursor:
        await cursor.execute(SQL["by_external_id"], {"external_ids": list(external_ids)})
        return {named.external_id: named for named in await cursor.fetchall()}


async def raise_again(connection: Connection, again: Sequence[tuple[str, NewMemory]]) -> None:
    """Raise the kind, trust, priority and tags of rows (by id) that were written again, and never lower them."""
    rows = [
        {"id": memory_id, "kind": row.kind, "trust": row.trust, "priority": row.priority, "tags": row.tags}
        for memory_id, row in again
    ]
    await lock_to_change(connection, [memory_id for memory_id, _ in again])
    await connection.execute(SQL["raise"], {"rows": as_json(rows)})


def by_ids(ids: Collection[str]) -> Query[dict[str, Memory]]:
    """Return rows by id; unknown ids are left out."""
    return Query(SQL["get"], {"ids": as_array(ids)}, lambda rows: {row.id: row for row in rows}, class_row(Memory))


async def get(connection: Connection, ids: Collection[str]) -> dict[str, Memory]:
    """Return rows by id; unknown ids are left out."""
    return await fetch(connection, by_ids(ids))


async def listed(connection: Connection, row_filter: Filter, before: str | None, limit: int) -> list[Memory]:
    """Return rows, newest first, that are older than the row `before`."""
    return await _fetch(connection, "list", {**filter_values(row_filter), "before": before, "limit": limit})


def latest_of_session(session_id: str, tokens: int) -> Query[list[Memory]]:
    """Return the session's own latest rows, oldest first, that fit into `tokens` tokens of an observer's prompt."""

    def fitting(rows: Iterable[Memory]) -> list[Memory]:
        kept: list[Memory] = []
        spent = 0
        for memory in rows:
            spent += offered_cost(memory)
            if spent > tokens:
                break
            kept.append(memory)
        return kept[::-1]

    values = {"session": session_id, "limit": tokens // 4}
    return Query(SQL["latest_of_session"], values, fitting, class_row(Memory))


def latest_of_project(*, session_id: str, project: str, now: datetime, limit: int) -> Query[list[Memory]]:
    """Return the latest assertions of a project's other sessions, the newest first."""
    values = {"session": session_id, "project": project, "now": now, "limit": limit}
    return Query(SQL["latest_of_project"], values, list, class_row(Memory))


async def live_of_session(connection: Connection, session_id: str) -> list[Memory]:
    """Return the session's own live observations and reflections by `said_at`."""
    return await _fetch(connection, "live_of_session", {"session": session_id})


def observation_tokens(session_id: str) -> Query[int]:
    """Return the tokens of the session's live observations."""
    return Query(SQL["observation_tokens"], {"session": session_id}, lambda rows: int(rows[0][0]))


async def row_counts(connection: Connection, session_id: str) -> SessionRowCounts:
    """Count the rows that were made from a session."""
    async with connection.cursor(row_factory=class_row(SessionRowCounts)) as cursor:
        await cursor.execute(SQL["row_counts"], {"session": session_id})
        found = await cursor.fetchone()
    assert found is not None  # it counts
    return found


async def lock_observed(connection: Connection, scope: str) -> None:
    """Serialise transactions that add observations to the same session or project."""
    await connection.execute(SQL["lock_observed"], {"scope": scope})


def sharing(
    term_sets: Sequence[Collection[str]], *, session_id: str, project: str | None, now: datetime, limit: int
) -> Query[list[list[str]]]:
    """Return, for each set of terms, ids of live rows of the session or its project that share terms, most first."""
    texts = [{"number": number, "terms": list(terms)} for number, terms in enumerate(term_sets)]
    values = {"asked": as_json(texts), "session": session_id, "project": project, "now": now, "limit": limit}

    def by_set(pairs: Iterable[TupleRow]) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in term_sets]
        for number, memory_id in pairs:
            found[int(number)].append(str(memory_id))
        return found

    return Query(SQL["sharing"], values, by_set)


async def add_restatements(
    connection: Connection, again: Sequence[Restatement], session_id: str, group_id: str
) -> None:
    """Add a source to rows that were said again. The caller has locked them."""
    if not again:
        return
    rows = [{**asdict(one), "seqs": list(one.seqs), "said_at": one.said_at.isoformat()} for one in again]
    values = {"again": as_json(rows), "session": session_id, "group": group_id}
    await connection.execute(SQL["add_sources"], values)
    await connection.execute(SQL["add_restatements"], values)


async def inherit_sources(connection: Connection, by: Mapping[str, str]) -> None:
    """Copy the sources of superseded rows (the keys of `by`) to the rows that restate them (its values)."""
    for memory_id, by_id in by.items():
        await connection.execute(SQL["inherit_sources"], {"id": memory_id, "by_id": by_id})


def other_sources(ids: Collection[str]) -> Query[dict[str, list[Source]]]:
    """Return the further sources of rows, by id; rows that were said once are missing."""
    return Query(SQL["other_sources"], {"ids": as_array(ids)}, _sources_by_id)


def _sources_by_id(rows: Iterable[TupleRow]) -> dict[str, list[Source]]:
    found: dict[str, list[Source]] = {}
    for memory_id, session_id, seqs in rows:
        found.setdefault(memory_id, []).append(Source(session_id, seqs, []))
    return found


async def mark_used(connection: Connection, ids: Collection[str], at: datetime) -> None:
    """Set the last use of rows to `at` if it is later. The caller has locked them."""
    await connection.execute(SQL["mark_used"], {"ids": list(ids), "at": at})


async def confirm(connection: Connection, memory_id: str) -> bool:
    """Give a live note or pinned row the trust of a person; return whether there is such a row."""
    return (await connection.execute(SQL["confirm"], {"id": memory_id})).rowcount > 0


async def lock_live(connection: Connection, ids: Collection[str]) -> set[str]:
    """Lock rows that are about to be changed; return those that are still live."""
    cursor = await connection.execute(SQL["lock_live"], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def supersede(connection: Connection, by: Mapping[str, Superseder], now: datetime) -> Answer[set[str]]:
    """Supersede each row (a key of `by`) that is live; return the ids of those."""
    values = {
        "ids": list(by),
        "by_ids": [superseder.id for superseder in by.values()],
        "said": [superseder.said_at for superseder in by.values()],
        "now": now,
    }
    return await send(connection, Query(SQL["supersede"], values, _ids))


async def inherit_use(connection: Connection, ids: Collection[str]) -> None:
    """Give reflections the latest use of their source rows."""
    await connection.execute(SQL["inherit_use"], {"ids": list(ids)})


async def to_reflect(
    connection: Connection,
    project: str | None,
    *,
    until: datetime,
    notes_until: datetime,
    now: datetime,
    limit: int,
) -> list[Memory]:
    """Return the rows that a reflection of the pool reads, by project and time; `project` None: all rows."""
    values = {"project": project, "until": until, "notes_until": notes_until, "now": now, "limit": limit}
    return await _fetch(connection, "to_reflect", values)


async def grows_old(connection: Connection) -> bool:
    """Whether a row exists that a reflection of the pool will read when it is old enough."""
    row = await (await connection.execute(SQL["grows_old"])).fetchone()
    return bool(row and row[0])


async def undo(connection: Connection, reflection: Reflection, now: datetime) -> tuple[set[str], set[str]]:
    """Undo a reflection: restore its inputs and supersede its outputs; return the ids of both.

    The caller has locked all of them.
    """
    values = {"reflection": reflection.id, "input_ids": reflection.input_ids, "output_ids": reflection.output_ids}
    restored, superseded = set[str](), set[str]()
    statements = (("restore_replaced", restored), ("restore_dropped", restored), ("supersede_outputs", superseded))
    for statement, ids in statements:
        cursor = await connection.execute(SQL[statement], {**values, "now": now})
        ids |= {str(row[0]) for row in await cursor.fetchall()}
    if reflection.scope == "pool":
        await connection.execute(SQL["leave_alone"], values)
    return restored, superseded


def same_words(texts: Sequence[str], *, session_id: str, project: str | None, now: datetime) -> Query[list[Memory]]:
    """Return live rows of the session or its project whose content is exactly one of these texts."""
    values = {"texts": list(texts), "session": session_id, "project": project, "now": now}
    return Query(SQL["same_words"], values, list, class_row(Memory))


async def replaced_by(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return the ids of rows that were superseded by some rows."""
    cursor = await connection.execute(SQL["replaced_by"], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def quoting(connection: Connection, others: Collection[Memory]) -> dict[str, Memory]:
    """Return the rows, by id, whose notes quote one of some other rows."""
    patterns = [f"%{mark}%)" for mark in labels.NOTES]
    noted = await _fetch(connection, "with_notes", {"patterns": patterns})
    return {
        row.id: row
        for row in noted
        if any(labels.note_quotes(mark, row.content, other.content) for mark in labels.NOTES for other in others)
    }


async def reword(connection: Connection, contents: Mapping[str, str]) -> list[int]:
    """Give rows, by id, other words; return the numbers of their vectors. The caller has locked them."""
    if not contents:
        return []
    rows = [
        {
            "id": memory_id,
            "content": content,
            "tokens": estimate_tokens(content),
            "parts": part_values(indexed_parts(labels.without_label(content))),
        }
        for memory_id, content in contents.items()
    ]
    values = {"rows": as_json(rows)}
    numbers = await (await connection.execute(SQL["reword"], values)).fetchall()
    await connection.execute(SQL["index_again"], values)
    return [int(row[0]) for row in numbers]


async def restore(connection: Connection, by_ids: Collection[str]) -> set[str]:
    """Make rows live again that were superseded by these; return their ids."""
    cursor = await connection.execute(SQL["restore"], {"by_ids": list(by_ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def lock_to_change(connection: Connection, ids: Collection[str]) -> set[str]:
    """Lock rows that are about to be changed; return those that exist."""
    cursor = await connection.execute(SQL["lock_to_change"], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def lock_to_delete(connection: Connection, ids: Collection[str]) -> set[str]:
    """Lock rows that are about to be deleted; return those that exist."""
    cursor = await connection.execute(SQL["lock_to_delete"], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def with_sources_of(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those of `ids` that exist, with their sources and the sources of those, over any number of steps."""
    cursor = await connection.execute(SQL["with_sources_of"], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def drawn_from(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those of `ids` that exist, and all reflections made from them, over any number of steps."""
    cursor = await connection.execute(SQL["drawn_from"], {"ids": list(ids)})
    return {str(row[0]) for row in await cursor.fetchall()}


async def taken_from(connection: Connection, session_id: str, seqs: Collection[int]) -> set[str]:
    """Return the rows that were taken from one of these messages of a session, or said again in one."""
    cursor = await connection.execute(SQL["taken_from"], {"session": session_id, "seqs": list(seqs)})
    return {str(row[0]) for row in await cursor.fetchall()}


def said_in(ids: Collection[str]) -> Query[dict[str, set[tuple[str, int]]]]:
    """Return the messages (session and seq) that rows come from, directly or through other rows, by their ids."""
    return Query(SQL["said_in"], {"ids": as_array(ids)}, _messages_by_id)


def _messages_by_id(rows: Iterable[TupleRow]) -> dict[str, set[tuple[str, int]]]:
    found: dict[str, set[tuple[str, int]]] = {}
    for memory_id, session_id, seqs in rows:
        found.setdefault(memory_id, set()).update((session_id, seq) for seq in seqs)
    return found


async def delete(connection: Connection, ids: Collection[str]) -> list[int]:
    """Delete rows and every mention of them in reflections; return the numbers of their vectors."""
    await connection.execute(SQL["forget_in_reflections"], {"ids": list(ids)})
    cursor = await connection.execute(SQL["delete"], {"ids": list(ids)})
    return [int(row[0]) for row in await cursor.fetchall()]


async def lock_pins(connection: Connection) -> None:
    """Serialise transactions that pin rows in this pool."""
    await connection.execute(SQL["lock_pins"])


async def pinned_tokens(connection: Connection, project: str | None) -> int:
    """Return the tokens of the pinned rows of one project, or (None) of those for all projects."""
    row = await (await connection.execute(SQL["pinned_tokens"], {"project": project})).fetchone()
    return int(row[0]) if row else 0


def pinned(project: str | None, now: datetime) -> Query[list[PackRow]]:
    """Return the rows pinned for all projects and for this one; without a project, all pinned rows."""
    return Query(SQL["pinned"], {"project": project, "now": now}, list, args_row(PackRow))


def own_pack_rows(session_id: str, now: datetime) -> Query[list[PackRow]]:
    """Return the session's own live observations and reflections by `said_at`."""
    return Query(SQL["own_pack_rows"], {"session": session_id, "now": now}, list, args_row(PackRow))


def walked(
    walks: Sequence[Walk],
    pages: Sequence[WalkPage],
    *,
    project: str | None,
    without_session: str | None,
    now: datetime,
) -> Query[list[Walk]]:
    """Return walks of a project, or (None) of the pool, extended by these pages.

    Rows of the session `without_session` are left out, except notes.
    """
    steps = [_step(walks[page.number], page) for page in pages]
    values = {"walks": as_json(steps), "session": without_session or "", "now": now, "limit": pages[0].limit}

    def with_pages(rows: Iterable[TupleRow]) -> list[Walk]:
        found: dict[int, list[PackRow]] = {}
        for number, *columns in rows:
            found.setdefault(number, []).append(PackRow(*columns))
        result = list(walks)
        for page in pages:
            result[page.number] = extended(walks[page.number], page, found.get(page.number, []))
        return result

    return Query(SQL["next_of_project" if project else "next_of_pool"], values, with_pages, binary=True)


def _step(walk: Walk, page: WalkPage) -> dict[str, Any]:
    last = walk.rows[-1][-1] if walk.rows else None
    return {
        "number": page.number,
        "of_kind": walk.kind,
        "of_priority": walk.priority,
        "of_project": walk.project or "",
        "used_by": (last.last_used_at if last else LATEST).isoformat(),
        "after_id": last.id if last else "",
        "floor": page.floor.isoformat(),
    }


async def pools_with_expired(database: Database, now: datetime) -> list[str]:
    """Return the pools with expired rows that are not marked yet."""
    return [str(row["pool_id"]) for row in await database.ask(SQL["pools_with_expired"], {"now": now})]


async def mark_expired(connection: Connection, now: datetime, limit: int) -> int:
    """Mark some expired rows, so that packs skip them; return how many. They change in no other way."""
    return (await connection.execute(SQL["mark_expired"], {"now": now, "limit": limit})).rowcount


async def _fetch(connection: Connection, statement: str, values: dict[str, Any]) -> list[Memory]:
    async with connection.cursor(row_factory=class_row(Memory)) as cursor:
        await cursor.execute(SQL[statement], values)
        return await cursor.fetchall()
