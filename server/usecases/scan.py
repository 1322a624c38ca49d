"""Look through all stored texts of a pool for secrets that were not recognised when they were stored, and mask them."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from esker.server.core.conversation.blocks import content_hash, tool_names
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.json_input import Json
from esker.server.core.records import Principal
from esker.server.core.redaction import redact, redact_content, redact_json, redact_name
from esker.server.core.text.batching import by_size
from esker.server.core.text.phrases import texts_in
from esker.server.db.database import Connection
from esker.server.store import (
    audit,
    hidden_calls,
    jobs,
    memories,
    messages,
    packs,
    passages,
    sessions,
    text_columns,
    vectors,
)
from esker.server.store.messages import MaskedMessage
from esker.server.store.text_columns import TEXT_COLUMNS, Key, TextColumn
from esker.server.usecases.cut_passages import leave_out_of_passages, recut_passages
from esker.server.usecases.parts import Parts

Item = TypeVar("Item", bound=Hashable)
OnTexts = Callable[[int], None]
"""Called with the number of texts that were read since the last call."""

# Names that must stay different when they are masked.
_NAMES = frozenset(("client", "external_id", "first_external_id", "last_external_id", "dedupe_key"))
# The keyword index is written again with its rows. The audit log can only be added to.
_FOLLOW = frozenset(("postings",))
# Packs are frozen again, hidden calls are deleted, and derived texts are masked with their originals.
_REMADE_TABLES = frozenset(("packs", "audit", "hidden_calls"))
_REMADE = frozenset(("memories.content", "messages.content", "messages.text", "messages.calls", "passages.text"))
# The most rows that are changed in one transaction, and their characters unless one row has more.
_AT_ONCE = 100
_CHARACTERS_AT_ONCE = 1_000_000
_MASK = re.compile(r"\[redacted:([a-z0-9-]+)\]")


@dataclass(frozen=True, slots=True)
class Finding:
    """A text with secrets: its column, the key of its row, and how many secrets of which kinds."""

    table: str
    column: str
    row: tuple[str, ...]
    kinds: dict[str, int]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """The findings in the texts of a pool; `left` are those that are still there after masking."""

    pool: str
    texts: int
    findings: list[Finding]
    left: list[Finding]


@dataclass(slots=True)
class _Look:
    """The result of a look: how many texts there are, what was found, and, by table, the rows to mask afterwards.

    Each of these has the characters of its text.
    """

    texts: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])
    rows: dict[str, dict[Key, int]] = field(default_factory=lambda: defaultdict(dict))


async def scan(parts: Parts, who: Principal, on_texts: OnTexts, *, mask: bool) -> ScanReport:
    """Look for secrets in every text of a pool; with `mask`, mask them everywhere, and look again.

    A masked memory has new search terms and a new vector; packs that show it are frozen again at the next request.
    Passages are cut again from the masked messages. A text that is changed meanwhile is left to the next scan.
    """
    found = await _look(parts, who, on_texts, mask=mask)
    if not (mask and found.findings):
        return ScanReport(who.pool_name, found.texts, found.findings, found.findings)
    await _mask_memories(parts, who, found.rows["memories"])
    await _mask_messages(parts, who, found.rows["messages"])
    async with parts.database.tenant(who.pool_id) as connection:
        await packs.delete_versions(connection, {(str(key[0]), int(str(key[1]))) for key in found.rows["packs"]})
        await hidden_calls.delete_at(connection, {str(key[0]) for key in found.rows["hidden_calls"]})
    # Passages come last: masked messages have new ones.
    await _mask_passages(parts, who, found.rows["passages"])
    left = (await _look(parts, who, on_texts, mask=False)).findings
    async with parts.database.tenant(who.pool_id) as connection:
        counts: dict[str, Json] = {"texts": len(found.findings), "left": len(left)}
        await audit.insert(connection, who.actor, "scan.mask", who.pool_name, counts, parts.clock())
    return ScanReport(who.pool_name, found.texts, found.findings, left)


async def _look(parts: Parts, who: Principal, on_texts: OnTexts, *, mask: bool) -> _Look:
    """Look at all texts; with `mask`, mask those from which nothing was derived."""
    found = _Look()
    for column in TEXT_COLUMNS:
        if column.table in _FOLLOW:
            continue
        is_replaced = column.table not in _REMADE_TABLES and column.name not in _REMADE
        async for rows in text_columns.texts_of(parts.database, who.pool_id, column):
            lengths = {key: sum(map(len, texts_in(value))) for key, value in rows}
            masked = await parts.processes.run(sum(lengths.values()), _masked_rows, column, rows)
            found.findings += [_finding(column, key, kinds) for key, (_, _, kinds) in masked.items()]
            found.texts += len(rows)
            if mask and is_replaced and masked:
                await _replace(parts, who, column, {key: (old, new) for key, (old, new, _) in masked.items()})
            if column.table == "memories" or not is_replaced:
                found.rows[column.table].update((key, lengths[key]) for key in masked)
            on_texts(len(rows))
    return found


def _finding(column: TextColumn, key: Key, kinds: Mapping[str, int]) -> Finding:
    # A key may hold a secret as well.
    return Finding(column.table, column.column, tuple(redact(str(part)) for part in key), dict(kinds))


def _masked_rows(column: TextColumn, rows: Sequence[tuple[Key, Json]]) -> dict[Key, tuple[Json, Json, Counter[str]]]:
    """Return the rows that change, with their old and their masked values and the kinds of their secrets."""
    found: dict[Key, tuple[Json, Json, Counter[str]]] = {}
    for key, value in rows:
        masked = _masked_value(column, value)
        if masked != value:
            found[key] = (value, masked, _kinds(masked) - _kinds(value))
    return found


def _masked_value(column: TextColumn, value: Json) -> Json:
    if column.name == "messages.content":
        return redact_content(value)
    if isinstance(value, str) and column.shape == "text":
        return redact_name(value) if column.column in _NAMES else redact(value)
    return redact_json(value)


def _kinds(value: Json) -> Counter[str]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return Counter(_MASK.findall(text))


async def _replace(parts: Parts, who: Principal, column: TextColumn, values: Mapping[Key, tuple[Json, Json]]) -> None:
    async with parts.database.tenant(who.pool_id) as connection:
        if "session_id" in column.key:
            place = column.key.index("session_id")
            await sessions.lock_all(connection, {str(key[place]) for key in values})
        await text_columns.replace_texts(connection, column, values)


async def _mask_memories(parts: Parts, who: Principal, rows: Mapping[Key, int]) -> None:
    """Mask memories with their terms; their vectors are made again, and packs that show them are deleted."""
    for some in _some(rows):
        ids = [str(key[0]) for key in some]
        async with parts.database.tenant(who.pool_id) as connection:
            await memories.lock_to_change(connection, ids)
            # Another request may have changed or deleted a row meanwhile.
            found = await memories.get(connection, ids)
            contents = {row.id: redact(row.content) for row in found.values() if redact(row.content) != row.content}
            numbers = await memories.reword(connection, contents)
            await vectors.delete(connection, "memory", numbers)
            await packs.delete_showing(connection, ids)
            await hidden_calls.delete_showing(connection, ids)
        async with parts.database.tenant(who.pool_id) as connection:
            await vectors.enqueue(connection, list(contents), parts.clock())


async def _mask_messages(parts: Parts, who: Principal, rows: Mapping[Key, int]) -> None:
    """Mask messages, and cut the passages that show them again; an observer that reads them starts again."""
    in_sessions: dict[str, dict[int, int]] = defaultdict(dict)
    for (session_id, seq), length in rows.items():
        in_sessions[str(session_id)][int(str(seq))] = length
    for session_id, seqs in in_sessions.items():
        for some in _some(dict(sorted(seqs.items()))):
            async with parts.database.moment(who.pool_id) as connection:
                read = await _messages(connection, session_id, some)
            masked = await parts.processes.run(sum(seqs[seq] for seq in some), _masked_messages, read)
            async with parts.database.tenant(who.pool_id) as connection:
                await sessions.lock(connection, session_id)
                await jobs.take_back(connection, "observe", session_id)
                # Another request may have changed or forgotten some meanwhile.
                now = await _messages(connection, session_id, some)
                same = [masked[seq] for seq, message in now.items() if message == read.get(seq)]
                await messages.replace_content(connection, session_id, same)
                await recut_passages(parts, connection, {session_id: [one.seq for one in same]})


async def _messages(connection: Connection, session_id: str, seqs: Sequence[int]) -> dict[int, StoredMessage]:
    """Return those of some messages that still exist."""
    found = [one for seq in seqs for one in await messages.listed(connection, session_id, seq - 1, 1)]
    return {one.seq: one for one in found if one.seq in seqs}


def _masked_messages(read: Mapping[int, StoredMessage]) -> dict[int, MaskedMessage]:
    return {seq: _masked_message(message) for seq, message in read.items()}


def _masked_message(message: StoredMessage) -> MaskedMessage:
    blocks = as_blocks(redact_content([*message.content]))
    digest = content_hash(message.role, blocks)
    return MaskedMessage(message.seq, blocks, digest, tool_names(blocks), redact(message.text))


async def _mask_passages(parts: Parts, who: Principal, rows: Mapping[Key, int]) -> None:
    """Leave messages out of passages if a secret shows only when they are joined."""
    for some in _some(rows):
        async with parts.database.tenant(who.pool_id) as connection:
            found = (await passages.get(connection, [str(key[0]) for key in some])).values()
            # Most were cut again from masked messages.
            spans = [one for one in found if redact(one.text) != one.text]
            said_in: dict[str, list[int]] = defaultdict(list)
            for one in spans:
                said_in[one.session_id] += range(one.first_seq, one.last_seq + 1)
            await sessions.lock_all(connection, said_in)
            await leave_out_of_passages(parts, connection, said_in)


def _some(lengths: Mapping[Item, int]) -> Iterator[list[Item]]:
    """Yield the items in batches for one transaction each, by the characters of their texts."""
    return by_size(lengths.items(), _AT_ONCE, _CHARACTERS_AT_ONCE)
