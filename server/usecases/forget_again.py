"""Forget what a backup brought back: its texts are compared with the tombstones of forgettings made after it.

Rows are forgotten with what was drawn from them, and messages lose their words or leave the passages, as they did when
they were forgotten. Running it again changes nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from esker.server.core.facts.forgetting import ForgetRequest, Selection
from esker.server.core.facts.tombstones import Digests, Tombstone, holding
from esker.server.core.json_input import Json, characters
from esker.server.core.records import Principal
from esker.server.store import (
    forgetting,
    hidden_calls,
    jobs,
    messages,
    session_histories,
    sessions,
    text_columns,
    tombstones,
)
from esker.server.store.tombstones import StoredText, StoredWords
from esker.server.usecases.cut_passages import leave_out_of_passages
from esker.server.usecases.forget import forget
from esker.server.usecases.forgotten_places import new_names
from esker.server.usecases.parts import Parts
from esker.server.usecases.prove_forgotten import prove_forgotten
from esker.server.usecases.tombstones import SaidText, are_forgotten, hashes_of_message

_ROWS = 1_000
_MESSAGES = 200
"""Memories and messages that are compared at once."""


@dataclass(frozen=True, slots=True)
class ForgottenAgain:
    """How many memories, messages, notes and names of places went again, and what is left of the receipts by place."""

    memories: int
    messages: int
    notes: int
    places: int
    left: dict[str, int]


async def forget_again(parts: Parts, who: Principal, receipts: Iterable[str]) -> ForgottenAgain:
    """Forget all that the tombstones of a pool know, and prove it for some receipts."""
    rows = await _forget_rows(parts, who)
    said = await _forget_messages(parts, who.pool_id)
    notes = await _forget_notes(parts, who.pool_id)
    async with parts.database.tenant(who.pool_id) as connection:
        there = await text_columns.places(connection)
        renamed = await new_names(connection, dict.fromkeys(there))
        await text_columns.give_names(connection, renamed)
        await hidden_calls.delete_all(connection)
    left: dict[str, int] = {}
    for receipt in sorted(receipts):
        for place, count in (await prove_forgotten(parts, who.pool_id, receipt)).left.items():
            left[place] = left.get(place, 0) + count
    return ForgottenAgain(rows, said, notes, len(renamed), left)


async def _forget_rows(parts: Parts, who: Principal) -> int:
    forgotten, after = 0, ""
    while True:
        async with parts.database.moment(who.pool_id) as connection:
            rows = await tombstones.stored_rows(connection, after, _ROWS)
            gone = await are_forgotten(parts, connection, list(map(_said, rows)))
        if not rows:
            return forgotten
        if ids := [row.id for row, is_gone in zip(rows, gone, strict=True) if is_gone]:
            # Echoes and messages were forgotten by tombstones of their own.
            receipt = await forget(parts, who, ForgetRequest(Selection(ids=ids), messages=False, echoes=False))
            forgotten += receipt.memories
        after = rows[-1].id


def _said(row: StoredText) -> SaidText:
    return SaidText(row.text, row.said_at, row.project, row.id)


async def _forget_messages(parts: Parts, pool_id: str) -> int:
    """Blank messages, or leave them out of passages; return how many."""
    forgotten, after = 0, ("", 0)
    while True:
        async with parts.database.moment(pool_id) as connection:
            digests = await tombstones.digests(connection)
            found = await tombstones.stored_messages(connection, after, _MESSAGES)
            if not found or digests is None:
                return forgotten
            long = sum(len(one.text) + characters(list[Json](one.content)) for one in found)
            made = await parts.processes.run(long, _hashes_of_all, digests, found)
            known = await tombstones.known(connection, {digest for each in made for digest in each})
        kinds = [_kind(each, known, one) for each, one in zip(made, found, strict=True)]
        forgotten += await _leave_out(parts, pool_id, found, kinds)
        after = (found[-1].session_id, found[-1].seq)


def _hashes_of_all(digests: Digests, found: Sequence[StoredWords]) -> list[set[bytes]]:
    return [
        hashes_of_message(digests, one.session_id, one.content_hash, one.external_id, one.text, one.content)
        for one in found
    ]


def _kind(hashes: set[bytes], known: Mapping[bytes, Tombstone], message: StoredWords) -> bool | None:
    """Return whether a message loses its words; None if it was not forgotten."""
    held = list(holding(hashes, known, message.sent_at))
    return any(tombstone.blanks for tombstone in held) if held else None


async def _leave_out(parts: Parts, pool_id: str, found: Sequence[StoredWords], blanks: Sequence[bool | None]) -> int:
    told = [
        (one, blank)
        for one, blank in zip(found, blanks, strict=True)
        if blank or (blank is not None and not one.left_out)
    ]
    for session_id in sorted({one.session_id for one, _ in told}):
        seqs = [one.seq for one, _ in told if one.session_id == session_id]
        blanked = [one.seq for one, blank in told if one.session_id == session_id and blank]
        async with parts.database.tenant(pool_id) as connection:
            await sessions.lock_all(connection, {session_id})
            await jobs.take_back(connection, "observe", session_id)
            if await messages.blank(connection, session_id, blanked):
                await session_histories.delete(connection, {session_id})
            await leave_out_of_passages(parts, connection, {session_id: seqs})
    return len(told)


async def _forget_notes(parts: Parts, pool_id: str) -> int:
    async with parts.database.tenant(pool_id) as connection:
        notes = await tombstones.stored_notes(connection)
        texts = [SaidText(note.text, note.said_at, note.project) for note in notes]
        gone = await are_forgotten(parts, connection, texts)
        forgotten = [note for note, is_gone in zip(notes, gone, strict=True) if is_gone]
        if forgotten:
            ids = {note.id for note in forgotten}
            await sessions.lock_all(connection, ids)
            await forgetting.forget_notes(connection, ids, {note.text for note in forgotten})
    return len(forgotten)
