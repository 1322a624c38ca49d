"""Expand a memory or a passage: its sources, and the messages in which they were said."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from esker.server.core.clock import age
from esker.server.core.conversation.records import StoredSession
from esker.server.core.errors import InvalidInput
from esker.server.core.ids import is_passage
from esker.server.core.json_input import clean_text
from esker.server.core.recall.expansion import (
    FORGOTTEN,
    Excerpt,
    ExpandedMemory,
    ExpandedPassage,
    Expansion,
    HeardMessage,
    OmittedCounts,
)
from esker.server.core.recall.expansion_fit import MIN_TOKENS, fitted
from esker.server.core.records import Memory, Source, SourcedMemory
from esker.server.core.sources import sourced
from esker.server.db.database import Connection
from esker.server.db.pipeline import fetch
from esker.server.store import memories, messages, passages, sessions
from esker.server.store.messages import SourceMessage
from esker.server.usecases.parts import Parts

MAX_AROUND = 20
MAX_TOKENS = 200_000
# Limits of an expansion: levels of sources, memories, and cited messages. The rest is counted.
_DEEPEST = 8
_MOST_MEMORIES = 200
_MOST_CITED = 500
# A longer message is truncated here; its session has it whole.
_MOST_CHARACTERS = 32_000


@dataclass(frozen=True, slots=True)
class ExpandRequest:
    """A memory or a passage to expand, with `around` messages on either side of each cited one.

    `max_tokens` limits the text of the answer, as a model reads it.
    """

    text_id: str
    around: int = 2
    max_tokens: int = 10_000


@dataclass(frozen=True, slots=True)
class _WalkedRow:
    """A row of the walk through the sources: its distance from the expanded memory, and the row it is a source of."""

    memory: Memory
    depth: int
    source_of: str | None


async def expand(parts: Parts, pool_id: str, asked: ExpandRequest) -> Expansion:
    """Return a memory with its sources and their messages, or a passage with its messages.

    Raises InvalidInput, NotFound.
    """
    _check(asked)
    now = parts.clock()
    text_id = clean_text(asked.text_id)
    async with parts.database.moment(pool_id) as connection:
        expand_one = _expand_passage if is_passage(text_id) else _expand_memory
        whole = await expand_one(connection, text_id, asked.around, now)
    # In a thread: counting the tokens of many messages is slow.
    return await asyncio.to_thread(fitted, whole, asked.max_tokens)


async def _expand_memory(connection: Connection, memory_id: str, around: int, now: datetime) -> Expansion:
    rows, omitted = await _walk(connection, memory_id)
    other_sources = await fetch(connection, memories.other_sources([row.memory.id for row in rows]))
    expanded = [_expanded(row, other_sources.get(row.memory.id, ()), now) for row in rows]
    cited = _cited(row.memory for row in expanded)
    excerpts = await _excerpts(connection, cited[:_MOST_CITED], around, now)
    left_out = OmittedCounts(memories=omitted, cited=len(cited[_MOST_CITED:]))
    return Expansion(expanded[0], expanded[1:], excerpts, left_out)


async def _expand_passage(connection: Connection, passage_id: str, around: int, now: datetime) -> Expansion:
    passage = (await passages.get(connection, [passage_id])).get(passage_id)
    if passage is None:
        raise passages.missing(passage_id)
    cited = [(passage.session_id, seq) for seq in range(passage.first_seq, passage.last_seq + 1)]
    excerpts = await _excerpts(connection, cited[:_MOST_CITED], around, now)
    expanded = ExpandedPassage(
        id=passage.id,
        session_id=passage.session_id,
        project=passage.project,
        first_seq=passage.first_seq,
        last_seq=passage.last_seq,
        trust=passage.trust,
        said_at=passage.said_to,
        age=age(now - passage.said_to),
    )
    return Expansion(expanded, [], excerpts, OmittedCounts(cited=len(cited[_MOST_CITED:])))


def _check(asked: ExpandRequest) -> None:
    if not 0 <= asked.around <= MAX_AROUND:
        raise InvalidInput(f"around must be between 0 and {MAX_AROUND}.")
    if not MIN_TOKENS <= asked.max_tokens <= MAX_TOKENS:
        raise InvalidInput(f"max_tokens must be between {MIN_TOKENS} and {MAX_TOKENS:,}.")


async def _walk(connection: Connection, memory_id: str) -> tuple[list[_WalkedRow], int]:
    """Return a row and its sources, nearest first and each once, and how many sources are omitted.

    Raises NotFound.
    """
    found = await _rows(connection, {memory_id: None}, 0)
    if not found:
        raise memories.missing(memory_id)
    level = found
    for depth in range(1, _DEEPEST + 1):
        sources = _sources(level, found)
        wanted = dict(islice(sources.items(), _MOST_MEMORIES - len(found)))
        level = await _rows(connection, wanted, depth)
        found = [*found, *level]
        if len(wanted) < len(sources):
            return found, len(sources) - len(wanted)
    return found, len(_sources(level, found))


def _sources(level: Sequence[_WalkedRow], found: Sequence[_WalkedRow]) -> dict[str, str]:
    """Return the new ids among the sources of these rows, each with a row that it is a source of."""
    known = {row.memory.id for row in found}
    sources: dict[str, str] = {}
    for row in level:
        for source_id in row.memory.source_ids:
            if source_id not in known:
                sources.setdefault(source_id, row.memory.id)
    return sources


async def _rows(connection: Connection, wanted: Mapping[str, str | None], depth: int) -> list[_WalkedRow]:
    """Return the rows of these ids that exist, in the order of the ids."""
    rows = await memories.get(connection, wanted.keys()) if wanted else {}
    return [_WalkedRow(rows[row_id], depth, source_of) for row_id, source_of in wanted.items() if row_id in rows]


def _expanded(row: _WalkedRow, other_sources: Sequence[Source], now: datetime) -> ExpandedMemory:
    memory = sourced(row.memory, other_sources)
    return ExpandedMemory(memory, age(now - memory.said_at), row.depth, row.source_of)


def _cited(rows: Iterable[SourcedMemory]) -> list[tuple[str, int]]:
    """Return the messages in which rows were said as (session id, seq), each once, in the order of the rows."""
    cited = (
        (source.session_id, seq) for row in rows for source in row.sources if source.session_id for seq in source.seqs
    )
    return list(dict.fromkeys(cited))


async def _excerpts(
    connection: Connection, cited: Sequence[tuple[str, int]], around: int, now: datetime
) -> list[Excerpt]:
    """Return the messages that are cited and those around them, a session at a time, in the order of the citations."""
    if not cited:
        return []
    known = await sessions.several(connection, {session_id for session_id, _ in cited})
    found: dict[str, list[HeardMessage]] = {session_id: [] for session_id, _ in cited}
    named = set(cited)
    for message in await messages.around(connection, cited, around, _MOST_CHARACTERS):
        is_cited = (message.session_id, message.seq) in named
        found[message.session_id].append(_heard(message, age(now - message.sent_at), cited=is_cited))
    return [_excerpt(known[session_id], heard) for session_id, heard in found.items()]


def _heard(message: SourceMessage, its_age: str, *, cited: bool) -> HeardMessage:
    return HeardMessage(
        seq=message.seq,
        external_id=message.external_id,
        role=message.role,
        trust=message.trust,
        sent_at=message.sent_at,
        age=its_age,
        text=FORGOTTEN if message.forgotten else message.text,
        cited=cited,
        forgotten=message.forgotten,
        truncated=message.truncated,
    )


def _excerpt(session: StoredSession, heard: list[HeardMessage]) -> Excerpt:
    return Excerpt(session.id, session.client, session.external_id, session.project, session.timezone, heard)
