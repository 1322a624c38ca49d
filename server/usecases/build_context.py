"""Build a context: the next model request of an agent's loop. It writes nothing but a pack that is not frozen yet."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from esker.server.core.budgets import budgets, reflect_trigger
from esker.server.core.context.assembly import Context, Tail, assemble, behind_pack, changing, cut_tail, news
from esker.server.core.context.tail import KEEP_LAST_MESSAGES, first_needed, is_enough
from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import Block, Group, StoredMessage, StoredSession
from esker.server.core.pack.records import Pack, PackRow
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.fitting import fitting
from esker.server.db.pipeline import send
from esker.server.store import groups, memories, messages, packs, sessions
from esker.server.usecases.pack import freeze_first_pack
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import MAX_QUERY_CHARACTERS, RecallRequest

# Messages read per statement, from the latest back.
_PAGE = 500
# Most hits that are shown, and their tokens. More are recalled, since some are in the context already.
_SHOWN_HITS = 8
_SHOWN_TOKENS = 2_000
_RECALLED_HITS = 24


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """Options of a context: the caller's own `system` blocks, the length of the tail, and the query to recall.

    `message_tokens` None means the session's budget; `recall` True takes the user's last words as the query.
    """

    system: Sequence[Block] = ()
    keep_last_messages: int = KEEP_LAST_MESSAGES
    message_tokens: int | None = None
    recall: str | Literal[True] | None = None


@dataclass(frozen=True, slots=True)
class _SessionContent:
    """The latest messages of a session, its own live rows and their groups.

    Messages from seq `needed` on must be sent. `reflect_due`: the rows have reached the trigger.
    """

    session: StoredSession
    messages: Sequence[StoredMessage]
    needed: int
    budget: int
    rows: Sequence[PackRow]
    groups: Mapping[str, Group]
    reflect_due: bool


async def build_context(parts: Parts, pool_id: str, session_id: str, asked: ContextRequest) -> Context:
    """Return the next request to the Messages API. An unchanged session gives the same bytes.

    No language model is called. Raises NotFound, and InvalidInput for a `system` with too many cache breakpoints.
    """
    content, frozen = await _content(parts, pool_id, session_id, asked)
    # A pack that is frozen after the content was read shows at least its rows.
    pack = frozen or await freeze_first_pack(parts, pool_id, content.session)
    tail, observed, shown = await asyncio.to_thread(_cut, content, pack, asked.system)
    found = await _recalled(parts, pool_id, content, asked.recall)
    hits = news(found.hits, {*pack.memory_ids, *shown}, session_id, tail) if found else []
    hits = fitting(hits, _SHOWN_HITS, _SHOWN_TOKENS)
    session = content.session
    changing_text = changing(session, tail, observed, hits)
    system, tokens = await asyncio.to_thread(assemble, pack, tail, changing_text, asked.system)
    return Context(
        system=system,
        messages=tail.messages,
        first_seq=tail.first_seq,
        last_seq=session.last_seq,
        left_out=session.last_seq if tail.first_seq is None else tail.first_seq - 1,
        pending_calls=tail.pending,
        over_budget=tail.tokens > content.budget,
        should_observe=session.unobserved_tokens >= parts.settings.observe_tokens,
        should_reflect=content.reflect_due,
        pack_version=pack.version,
        pack_sha256=pack.sha256,
        recalled_ids=[hit.id for hit in hits],
        semantic=found.semantic if found else None,
        tokens=tokens,
    )


async def _content(
    parts: Parts, pool_id: str, session_id: str, asked: ContextRequest
) -> tuple[_SessionContent, Pack | None]:
    """Return the content of a session, and its pack if that is frozen."""
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked_session = await send(connection, sessions.by_id(session_id))
        pack = await send(connection, packs.current(session_id))
        asked_tokens = await send(connection, memories.observation_tokens(session_id))
        rows = await send(connection, memories.own_pack_rows(session_id, parts.clock()))
        own_groups = await send(connection, groups.of_session(session_id))
        last_messages = await send(connection, messages.before(session_id, None, _PAGE))
    session, live_tokens = await asked_session, await asked_tokens
    wanted = asked.message_tokens
    budget = budgets(session.effective_context).message_tokens if wanted is None else wanted
    needed = first_needed(session.last_seq, session.observed_seq, asked.keep_last_messages)
    content = _SessionContent(
        session=session,
        messages=await _with_earlier(parts, pool_id, session_id, await last_messages, needed, budget),
        needed=needed,
        budget=budget,
        rows=await rows if live_tokens else [],
        groups=await own_groups if live_tokens else {},
        reflect_due=live_tokens >= reflect_trigger(session.effective_context, session.reflect_at_tokens),
    )
    return content, await pack


async def _with_earlier(
    parts: Parts, pool_id: str, session_id: str, read: list[StoredMessage], needed: int, budget: int
) -> list[StoredMessage]:
    """Return the latest messages of a session, in order, at least as many as its tail can contain."""
    while read and not is_enough(read, needed, budget):
        async with parts.database.moment_pipeline(pool_id) as connection:
            earlier = await send(connection, messages.before(session_id, read[0].seq, _PAGE))
        read = [*await earlier, *read]
    return read


def _cut(content: _SessionContent, pack: Pack, system: Sequence[Block]) -> tuple[Tail, str, list[str]]:
    system_texts = {str(block.get("text")).strip() for block in system} - {""}
    tail = cut_tail(content.messages, content.needed, content.budget, system_texts)
    observed, shown = behind_pack(pack, content.rows, content.groups, content.session, tail)
    return tail, observed, shown


async def _recalled(
    parts: Parts, pool_id: str, content: _SessionContent, wanted: str | Literal[True] | None
) -> Recalled | None:
    """Recall a query, or (True) the user's last words; None without a query."""
    query = _last_words(content.messages) if wanted is True else wanted
    if not query:
        return None
    project = content.session.project
    asked = RecallRequest(
        query[:MAX_QUERY_CHARACTERS],
        limit=_RECALLED_HITS,
        scope="project" if project else "pool",
        session_id=content.session.id,
        project=project,
    )
    # No paraphrases: building a context does not wait for a language model.
    return await recall(replace(parts, paraphrases=None), pool_id, asked)


def _last_words(messages_in_order: Sequence[StoredMessage]) -> str:
    """Return the last text of the user; messages that contain only tool results are skipped."""
    texts = (spoken(message.content) for message in reversed(messages_in_order) if message.role == "user")
    return next((text for text in texts if text.strip()), "")
