"""A context: `system` and `messages` of a request to the Messages API, assembled from a session's memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from esker.server.core.context.prefix import HINT, for_model, system_blocks, task_text
from esker.server.core.context.tail import tail_start
from esker.server.core.context.turns import parts_of, turns
from esker.server.core.conversation.blocks import content_tokens
from esker.server.core.conversation.records import Block, Group, StoredMessage, StoredSession
from esker.server.core.pack.records import Pack, PackRow
from esker.server.core.pack.rendering import render_own
from esker.server.core.pack.selection import choose
from esker.server.core.recall.answer import Hit
from esker.server.core.recall.rendering import recalled_block
from esker.server.core.text.tokens import estimate_tokens

# Longest time from a group's `created_at` (the start of its transaction) to its commit; a pack may be frozen in
# between.
_COMMITTED_LATE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Tail:
    """The messages that are sent verbatim, from `first_seq` on (None: none), as the API accepts them.

    `pending` are the ids of calls without a result yet; each gets a placeholder result.
    """

    first_seq: int | None
    messages: list[Block]
    pending: list[str]
    tokens: int

    def holds(self, seq: int) -> bool:
        """Return whether a message of the session is sent verbatim."""
        return self.first_seq is not None and seq >= self.first_seq


@dataclass(frozen=True, slots=True)
class ContextTokens:
    """Estimated tokens of each part of a context, and of all of it."""

    system: int
    pack: int
    observed: int
    hint: int
    task: int
    recalled: int
    messages: int
    total: int


@dataclass(frozen=True, slots=True)
class Context:
    """The next request to the Messages API.

    `left_out` messages before `first_seq` are not sent verbatim; `pending_calls` have no result yet. If `over_budget`,
    the messages that must be sent exceed the caller's budget. `recalled_ids` are hits that are in no other part;
    `semantic` says how they were found (None: recall was not requested).
    """

    system: list[Block]
    messages: list[Block]
    first_seq: int | None
    last_seq: int
    left_out: int
    pending_calls: list[str]
    over_budget: bool
    should_observe: bool
    should_reflect: bool
    pack_version: int
    pack_sha256: str
    recalled_ids: list[str]
    semantic: Literal["ok", "weak", "degraded", "off"] | None
    tokens: ContextTokens


def cut_tail(read: Sequence[StoredMessage], needed: int, budget: int, told: Collection[str]) -> Tail:
    """Return the tail of a session, from its latest messages in order; it includes all from seq `needed` on.

    A system message with a text in `told` is left out, since the request contains that text already.
    """
    if not read:
        return Tail(None, [], [], 0)
    talk = parts_of(read, told)
    start = tail_start(talk.parts, needed - read[0].seq, budget)
    sent = talk.parts[start:]
    messages = turns(sent, talk.answers)
    pending = [call for part in sent for call in part.calls if call in talk.pending]
    first_seq = read[start].seq if start < len(read) else None
    return Tail(first_seq, messages, pending, sum(content_tokens(_content(message)) for message in messages))


def _content(message: Block) -> list[Block]:
    content = message["content"]
    assert isinstance(content, list)  # they are made as lists of blocks
    return [block for block in content if isinstance(block, dict)]


def behind_pack(
    pack: Pack, own: Sequence[PackRow], groups: Mapping[str, Group], session: StoredSession, tail: Tail
) -> tuple[str, list[str]]:
    """Return text and ids of the rows observed after a pack was frozen, in messages that are not sent any more.

    Without them a model would see neither these messages nor their rows. The text is empty if there are none.
    """
    since = {group.id for group in groups.values() if group.created_at > pack.created_at - _COMMITTED_LATE}
    unsent = {group_id for group_id in since if not tail.holds(groups[group_id].first_seq)}
    shown = set(pack.memory_ids)
    rows = [row for row in own if row.group_id in unsent and row.id not in shown]
    if not rows:
        return "", []
    lines = choose((), (), rows, groups, session).lines
    return for_model(render_own(lines, session.timezone)[0]), [line.row.id for line in lines.own]


def news(hits: Sequence[Hit], shown: Collection[str], session_id: str, tail: Tail) -> list[Hit]:
    """Return the hits that the model does not see otherwise: neither in the `shown` rows nor in the tail."""
    return [hit for hit in hits if hit.id not in shown and not _is_in_tail(hit, session_id, tail)]


def _is_in_tail(hit: Hit, session_id: str, tail: Tail) -> bool:
    return bool(hit.sources) and all(
        source.session_id == session_id and source.seqs and tail.holds(min(source.seqs)) for source in hit.sources
    )


@dataclass(frozen=True, slots=True)
class Changing:
    """The texts after the cache breakpoint, in this order; empty ones are left out."""

    observed: str
    hint: str
    task: str
    recalled: str


def changing(session: StoredSession, tail: Tail, observed: str, hits: Sequence[Hit]) -> Changing:
    """Return the texts after the cache breakpoint for a session."""
    return Changing(
        observed=observed,
        hint=HINT if tail.first_seq != 1 and session.last_seq else "",
        task=task_text(session),
        recalled=for_model(recalled_block(hits, session.timezone)) if hits else "",
    )


def assemble(pack: Pack, tail: Tail, told: Changing, caller: Sequence[Block]) -> tuple[list[Block], ContextTokens]:
    """Return the `system` of a request, and the tokens of every part.

    Raises InvalidInput if the caller's blocks have too many `cache_control` marks.
    """
    text = for_model(pack.text)
    costs = {
        "system": sum(content_tokens([block]) for block in caller),
        "pack": estimate_tokens(text),
        "observed": estimate_tokens(told.observed),
        "hint": estimate_tokens(told.hint),
        "task": estimate_tokens(told.task),
        "recalled": estimate_tokens(told.recalled),
        "messages": tail.tokens,
    }
    system = system_blocks(caller, text, (told.observed, told.hint, told.task, told.recalled))
    return system, ContextTokens(**costs, total=sum(costs.values()))
