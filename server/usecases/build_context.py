"""Building a context: what an agent's own loop sends to a model next, from what a session holds. It only reads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from esker.server.core.budgets import budgets, reflect_trigger
from esker.server.core.context.assembly import Context, Tail, assemble, behind_pack, changing, cut_tail, news
from esker.server.core.context.tail import KEEP_LAST_MESSAGES, first_needed, is_enough
from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import Block, Group, Message, Session
from esker.server.core.pack.records import Pack, PackRow
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.fitting import fitting
from esker.server.db.database import Connection
from esker.server.store import groups, memories, messages, sessions
from esker.server.usecases.pack import get_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import MAX_QUERY_CHARACTERS, RecallRequest

# So many messages are read at once, from the latest back.
_PAGE = 500
# What is recalled, and how much is looked at for it, since the model sees some of that anyway.
_RECALLED = 8
_RECALLED_TOKENS = 2_000
_LOOKED_AT = 24


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """What a caller wants sent: its own `system` blocks, how much of the tail, and what is to be recalled.

    `message_tokens` None is the session's budget; `recall` True asks about the last that the user said.
    """

    system: Sequence[Block] = ()
    keep_last_messages: int = KEEP_LAST_MESSAGES
    message_tokens: int | None = None
    recall: str | Literal[True] | None = None


@dataclass(frozen=True, slots=True)
class _Held:
    """What a session holds: its latest messages, its own live rows and their groups, and whether those are too many.

    Messages from seq `needed` on have to be sent.
    """

    session: Session
    messages: Sequence[Message]
    needed: int
    budget: int
    rows: Sequence[PackRow]
    groups: Mapping[str, Group]
    full: bool


async def build_context(parts: Parts, pool_id: str, session_id: str, asked: ContextRequest) -> Context:
    """Return what to send to the Messages API next. The same session gives the same bytes.

    No language model is called. Raises NotFound, and InvalidInput for a `system` with too many marks.
    """
    pack = await get_pack(parts, pool_id, session_id)
    held = await _held(parts, pool_id, session_id, asked)
    tail, observed, shown = await asyncio.to_thread(_cut, held, pack, asked.system)
    found = await _recalled(parts, pool_id, held, asked.recall)
    hits = news(found.hits, {*pack.memory_ids, *shown}, session_id, tail) if found else []
    hits = fitting(hits[:_RECALLED], _RECALLED_TOKENS)
    session = held.session
    told = changing(session, tail, observed, hits)
    system, tokens = await asyncio.to_thread(assemble, pack, tail, told, asked.system)
    return Context(
        system=system,
        messages=tail.messages,
        first_seq=tail.first_seq,
        last_seq=session.last_seq,
        left_out=session.last_seq if tail.first_seq is None else tail.first_seq - 1,
        pending_calls=tail.pending,
        over_budget=tail.tokens > held.budget,
        should_observe=session.unobserved_tokens >= parts.settings.observe_tokens,
        should_reflect=held.full,
        pack_version=pack.version,
        pack_sha256=pack.sha256,
        recalled_ids=[hit.id for hit in hits],
        semantic=found.semantic if found else None,
        tokens=tokens,
    )


async def _held(parts: Parts, pool_id: str, session_id: str, asked: ContextRequest) -> _Held:
    async with parts.database.moment(pool_id) as connection:
        session = await sessions.get(connection, session_id)
        wanted = asked.message_tokens
        budget = budgets(session.effective_context).message_tokens if wanted is None else wanted
        needed = first_needed(session.last_seq, session.observed_seq, asked.keep_last_messages)
        there = await memories.observation_tokens(connection, session_id)
        return _Held(
            session=session,
            messages=await _latest(connection, session, needed, budget),
            needed=needed,
            budget=budget,
            rows=await memories.own_pack_rows(connection, session_id, parts.clock()) if there else [],
            groups={group.id: group for group in await groups.of_session(connection, session_id)} if there else {},
            full=there >= reflect_trigger(session.effective_context, session.reflect_at_tokens),
        )


async def _latest(connection: Connection, session: Session, needed: int, budget: int) -> list[Message]:
    """Return the latest messages of a session, in order, as many as a tail may hold."""
    read: list[Message] = []
    while session.last_seq and not is_enough(read, needed, budget):
        before = read[0].seq if read else session.last_seq + 1
        read = [*await messages.before(connection, session.id, before, _PAGE), *read]
    return read


def _cut(held: _Held, pack: Pack, system: Sequence[Block]) -> tuple[Tail, str, list[str]]:
    told = {str(block.get("text")).strip() for block in system} - {""}
    tail = cut_tail(held.messages, held.needed, held.budget, told)
    observed, shown = behind_pack(pack, held.rows, held.groups, held.session, tail)
    return tail, observed, shown


async def _recalled(parts: Parts, pool_id: str, held: _Held, wanted: str | Literal[True] | None) -> Recalled | None:
    """Return what is known about a query, or about the last that the user said; None where there is no question."""
    query = _last_words(held.messages) if wanted is True else wanted
    if not query:
        return None
    project = held.session.project
    asked = RecallRequest(
        query[:MAX_QUERY_CHARACTERS],
        limit=_LOOKED_AT,
        scope="project" if project else "pool",
        session_id=held.session.id,
        project=project,
    )
    # A context waits for no language model.
    return await recall(replace(parts, paraphrases=None), pool_id, asked)


def _last_words(said: Sequence[Message]) -> str:
    """Return what the user said last, without what only tools answered."""
    heard = (spoken(message.content) for message in reversed(said) if message.role == "user")
    return next((words for words in heard if words.strip()), "")
