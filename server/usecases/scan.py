"""Look through all stored texts of a pool for secrets that were not recognised when they were stored, and mask them."""

import asyncio
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from esker.server.core.conversation.blocks import content_hash, tool_names
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.json_input import Json
from esker.server.core.records import Principal
from esker.server.core.redaction import redact, redact_content, redact_json, redact_name
from esker.server.db.database import Connection
from esker.server.store import audit, jobs, memories, messages, packs, passages, sessions, text_columns, vectors
from esker.server.store.messages import MaskedMessage
from esker.server.store.text_columns import TEXT_COLUMNS, TextColumn
from esker.server.usecases.cut_passages import leave_out_of_passages, recut_passages
from esker.server.usecases.parts import Parts

Item = TypeVar("Item")
Key = tuple[Json, ...]
OnTexts = Callable[[int], None]
"""Called with how many more texts were looked at."""

# Names that must stay different when they are masked.
_NAMES = frozenset(("client", "external_id", "first_external_id", "last_external_id", "dedupe_key"))
# The keyword index is written again with its rows. The audit log can only be added to.
_FOLLOW = frozenset(("postings",))
_UNCHANGEABLE = frozenset(("audit",))
# Rows that are changed in one transaction.
_AT_ONCE = 100
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


@dataclass(frozen=True, slots=True)
class _Masked:
    """A column, and the masked values by the keys of their rows."""

    column: TextColumn
    values: Mapping[Key, Json]


async def scan(parts: Parts, who: Principal, on_texts: OnTexts, *, mask: bool) -> ScanReport:
    """Look for secrets in every text of a pool; with `mask`, mask them everywhere, and look again.

    A masked memory has new search terms and a new vector; packs that show it are frozen again at the next request.
    Passages are cut again from the masked messages.
    """
    texts, findings, masked = await _look(parts, who, on_texts)
    if not (mask and findings):
        return ScanReport(who.pool_name, texts, findings, findings)
    # Passages come last: masked messages have new ones.
    for table in sorted(masked, key="passages".__eq__):
        await _mask_table(parts, who, table, masked[table])
    left = (await _look(parts, who, on_texts))[1]
    async with parts.database.tenant(who.pool_id) as connection:
        counts: dict[str, Json] = {"texts": len(findings), "left": len(left)}
        await audit.insert(connection, who.actor, "scan.mask", who.pool_name, counts, parts.clock())
    return ScanReport(who.pool_name, texts, findings, left)


async def _look(parts: Parts, who: Principal, on_texts: OnTexts) -> tuple[int, list[Finding], dict[str, list[_Masked]]]:
    """Return how many texts there are, what was found, and the masked values by table."""
    texts = 0
    findings: list[Finding] = []
    masked: dict[str, list[_Masked]] = defaultdict(list)
    for column in TEXT_COLUMNS:
        if column.table in _FOLLOW:
            continue
        values: dict[Key, Json] = {}
        async with parts.database.moment(who.pool_id) as connection:
            async for rows in text_columns.keyed_texts(connection, column):
                found = await asyncio.to_thread(_masked_rows, column, rows)
                values |= {key: value for key, (value, _) in found.items()}
                findings += [_finding(column, key, kinds) for key, (_, kinds) in found.items()]
                texts += len(rows)
                on_texts(len(rows))
        if values:
            masked[column.table].append(_Masked(column, values))
    return texts, findings, masked


def _finding(column: TextColumn, key: Key, kinds: Mapping[str, int]) -> Finding:
    # A key may hold a secret as well.
    return Finding(column.table, column.column, tuple(redact(str(part)) for part in key), dict(kinds))


def _masked_rows(column: TextColumn, rows: Sequence[tuple[Key, Json]]) -> dict[Key, tuple[Json, Counter[str]]]:
    """Return the rows that change, with their masked values and the kinds of their secrets."""
    found: dict[Key, tuple[Json, Counter[str]]] = {}
    for key, value in rows:
        masked = _masked_value(column, value)
        if masked != value:
            found[key] = (masked, _kinds(masked) - _kinds(value))
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


async def _mask_table(parts: Parts, who: Principal, table: str, columns: Sequence[_Masked]) -> None:
    match table:
        case "memories":
            await _mask_memories(parts, who, columns)
        case "messages":
            await _mask_messages(parts, who, columns)
        case "passages":
            await _mask_passages(parts, who, columns)
        case "packs":
            versions = {(str(key[0]), int(str(key[1]))) for one in columns for key in one.values}
            async with parts.database.tenant(who.pool_id) as connection:
                await packs.delete_versions(connection, versions)
        case _ if table not in _UNCHANGEABLE:
            await _replace(parts, who, columns)
        case _:
            pass


async def _replace(parts: Parts, who: Principal, columns: Sequence[_Masked]) -> None:
    for one in columns:
        for some in _some(list(one.values)):
            async with parts.database.tenant(who.pool_id) as connection:
                await text_columns.replace_texts(connection, one.column, {key: one.values[key] for key in some})


async def _mask_memories(parts: Parts, who: Principal, columns: Sequence[_Masked]) -> None:
    """Mask memories with their terms; their vectors are made again, and packs that show them are deleted."""
    ids = list({str(key[0]) for one in columns for key in one.values})
    for some in _some(ids):
        async with parts.database.tenant(who.pool_id) as connection:
            await memories.lock_to_change(connection, some)
            # Another request may have changed or deleted a row meanwhile.
            rows = await memories.get(connection, some)
            contents = {row.id: redact(row.content) for row in rows.values() if redact(row.content) != row.content}
            numbers = await memories.reword(connection, contents)
            await vectors.delete(connection, "memory", numbers)
            for one in columns:
                if one.column.column != "content":
                    await _replace_some(connection, one, some)
            await packs.delete_showing(connection, some)
        async with parts.database.tenant(who.pool_id) as connection:
            await vectors.enqueue(connection, list(contents), parts.clock())


async def _replace_some(connection: Connection, one: _Masked, ids: Sequence[str]) -> None:
    values = {key: value for key, value in one.values.items() if key[0] in ids}
    if values:
        await text_columns.replace_texts(connection, one.column, values)


async def _mask_messages(parts: Parts, who: Principal, columns: Sequence[_Masked]) -> None:
    """Mask messages, and cut the passages that show them again; an observer that reads them starts again."""
    seqs: dict[str, set[int]] = defaultdict(set)
    for one in columns:
        for session_id, seq in one.values:
            seqs[str(session_id)].add(int(str(seq)))
    await _replace(parts, who, [one for one in columns if one.column.column == "external_id"])
    for session_id, changed in seqs.items():
        for some in _some(sorted(changed)):
            async with parts.database.tenant(who.pool_id) as connection:
                await sessions.lock(connection, session_id)
                await jobs.take_back(connection, "observe", session_id)
                masked = [one for seq in some if (one := await _masked_message(connection, session_id, seq))]
                await messages.replace_content(connection, session_id, masked)
                await recut_passages(parts, connection, {session_id: some})


async def _masked_message(connection: Connection, session_id: str, seq: int) -> MaskedMessage | None:
    """Return a message with its secrets masked; None if it was deleted meanwhile."""
    found = await messages.listed(connection, session_id, seq - 1, 1)
    if not found or found[0].seq != seq:
        return None
    message = found[0]
    blocks = as_blocks(redact_content([*message.content]))
    digest = content_hash(message.role, blocks)
    return MaskedMessage(seq, blocks, digest, tool_names(blocks), redact(message.text))


async def _mask_passages(parts: Parts, who: Principal, columns: Sequence[_Masked]) -> None:
    """Leave messages out of passages whose secret is only seen when they stand beside each other."""
    ids = [str(key[0]) for one in columns for key in one.values if one.column.column == "text"]
    await _replace(parts, who, [one for one in columns if one.column.column != "text"])
    for some in _some(ids):
        async with parts.database.tenant(who.pool_id) as connection:
            found = (await passages.get(connection, some)).values()
            # Most were cut again from masked messages.
            spans = [one for one in found if redact(one.text) != one.text]
            said_in: dict[str, list[int]] = defaultdict(list)
            for one in spans:
                said_in[one.session_id] += range(one.first_seq, one.last_seq + 1)
            await sessions.lock_all(connection, said_in)
            await leave_out_of_passages(parts, connection, said_in)


def _some(items: Sequence[Item]) -> list[Sequence[Item]]:
    return [items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE)]
