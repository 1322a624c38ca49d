"""Keep facts: what an observer found becomes rows, or joins and replaces rows that are there.

A fact that a live row of the same session or project says already gives that row another source. A fact that replaces
what was said before supersedes it; both are kept.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from server.core.ids import memory_ids_in, new_ids
from server.core.indexing import IndexedMemory, indexed
from server.core.ranking import pack_score
from server.core.records import Fact, Memory, NewMemory, TranscriptSlice, Trust
from server.core.redaction import redact
from server.core.similarity import Fingerprint, fingerprint, same_fact, same_subject
from server.core.trust import at_least_as_trusted, highest_trust
from server.db.database import Connection
from server.store import memories, vectors
from server.store.memories import SaidAgain, Superseder

# What must be shared for two rows to be one is at least this share of their terms, see server.core.similarity.
_SHARED = 0.8
# So many more terms than are needed to find every such row, so that rows which share most come first.
_SPARE_TERMS = 2
_CANDIDATES = 50
# How much a row must be about what a fact says it replaces.
_SAME_SUBJECT = 0.6


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact with the row that it would be, and what tells it from others."""

    fact: Fact
    row: IndexedMemory
    print: Fingerprint
    voice: Trust


@dataclass(slots=True)
class Plan:
    """What is to become of facts: rows to write, and by their ids rows that were said again, superseded or used."""

    fresh: list[IndexedMemory] = field(default_factory=list[IndexedMemory])
    again: dict[str, SaidAgain] = field(default_factory=dict[str, SaidAgain])
    replaced: dict[str, Superseder] = field(default_factory=dict[str, Superseder])
    used: list[str] = field(default_factory=list[str])
    merged: int = 0


async def prepare_facts(
    shown: TranscriptSlice, group_id: str, author: str, facts: Sequence[Fact], now: datetime
) -> list[NewFact]:
    """Make rows of facts, each wording once; what takes long is done here, before a transaction begins."""
    return await asyncio.to_thread(_prepared, shown, group_id, author, facts, now)


def _prepared(
    shown: TranscriptSlice, group_id: str, author: str, facts: Sequence[Fact], now: datetime
) -> list[NewFact]:
    trusts: dict[int, Trust] = {message.seq: message.trust for message in shown.messages}
    cleaned = [replace(fact, content=redact(fact.content)) for fact in facts]
    distinct: list[tuple[Fact, Fingerprint]] = []
    for fact in cleaned:
        mark = fingerprint(fact.content)
        for place, (other, its_mark) in enumerate(distinct):
            if same_fact(mark, its_mark):
                together = _together(other, fact)
                distinct[place] = (together, fingerprint(together.content))
                break
        else:
            distinct.append((fact, mark))
    ids = new_ids("mem", now, len(distinct))
    rows = indexed(
        _row(shown, group_id, author, memory_id, fact, now) for memory_id, (fact, _) in zip(ids, distinct, strict=True)
    )
    return [
        NewFact(fact, row, mark, highest_trust(trusts[seq] for seq in fact.source_seqs))
        for (fact, mark), row in zip(distinct, rows, strict=True)
    ]


def _together(one: Fact, again: Fact) -> Fact:
    """Return a fact that was found twice in one slice."""
    fuller = max(one.content, again.content, key=lambda content: len(fingerprint(content).terms))
    return replace(
        one,
        content=fuller,
        source_seqs=tuple(sorted({*one.source_seqs, *again.source_seqs})),
        replaces=one.replaces or again.replaces,
        tentative=one.tentative and again.tentative,
    )


def _row(shown: TranscriptSlice, group_id: str, author: str, memory_id: str, fact: Fact, now: datetime) -> NewMemory:
    return NewMemory(
        id=memory_id,
        kind="observation",
        priority=fact.priority,
        category=fact.category,
        trust=fact.trust,
        content=fact.content,
        author=author,
        said_at=fact.said_at,
        created_at=now,
        session_id=shown.session.id,
        group_id=group_id,
        project=shown.session.project,
        tags=fact.tags,
        source_seqs=fact.source_seqs,
        refers_from=fact.refers_from,
        refers_to=fact.refers_to,
        valid_until=fact.valid_until,
        tentative=fact.tentative,
    )


async def plan_facts(
    connection: Connection, shown: TranscriptSlice, facts: Sequence[NewFact], used_ids: Sequence[str], now: datetime
) -> Plan:
    """Decide what becomes of facts, and lock every row that is to change. The caller holds the session's lock.

    `used_ids` are memories that the agent used, as far as they were shown.

    Whoever else adds to the session or its project waits from here on, so that the same is not written twice.
    """
    session = shown.session
    await memories.lock_place(connection, session.project or session.id)
    named = [_named(fact.fact) for fact in facts]
    alike, meant = [
        await memories.sharing(
            connection, asked, session_id=session.id, project=session.project, now=now, limit=_CANDIDATES
        )
        for asked in (
            [_telling_terms(fact.row.terms) for fact in facts],
            [fingerprint(words).terms for words in named],
        )
    ]
    offered = {row.id: row for row in (*shown.previous, *shown.known)}
    same = [_same_row(fact, rows) for fact, rows in zip(facts, alike, strict=True)]
    old = [
        _less_full(fact, like) or _replaced_row(fact, words, offered, rows)
        for fact, like, words, rows in zip(facts, alike, named, meant, strict=True)
    ]
    used = _best_used(offered, used_ids)
    live = await memories.lock_live(connection, {*used, *(row.id for row in (*same, *old) if row)})
    plan = Plan(used=[memory_id for memory_id in used if memory_id in live])
    for fact, row, former in zip(facts, same, old, strict=True):
        _add(plan, fact, row if row and row.id in live else None, former if former and former.id in live else None)
    return plan


def _telling_terms(terms: Iterable[str]) -> list[str]:
    """Return as many of a text's terms as every row that says the same must share one of, the longest (rarest) first.

    Of n terms a row shares at least 0.8 n, so of any n - 0.8 n + 1 at least one.
    """
    distinct = sorted(set(terms), key=lambda term: (-len(term), term))
    return distinct[: len(distinct) - math.ceil(_SHARED * len(distinct)) + 1 + _SPARE_TERMS]


def _named(fact: Fact) -> str:
    """Return what a fact says it replaces, unless it may replace nothing."""
    return fact.replaces or "" if not fact.tentative else ""


def _same_row(fact: NewFact, rows: Sequence[Memory]) -> Memory | None:
    """Return the row that says all of what a fact says."""
    for row in rows:
        mark = fingerprint(row.content)
        if same_fact(fact.print, mark) and fact.print.terms <= mark.terms:
            return row
    return None


def _less_full(fact: NewFact, rows: Sequence[Memory]) -> Memory | None:
    """Return the row that a fact says with a word more: it is replaced, so that nothing of either is lost."""
    for row in rows:
        mark = fingerprint(row.content)
        if same_fact(fact.print, mark) and mark.terms < fact.print.terms and _outranks(fact, row):
            return row
    return None


def _replaced_row(fact: NewFact, named: str, offered: Mapping[str, Memory], sharing: Sequence[Memory]) -> Memory | None:
    """Return the row that a fact replaces: the one that it names, among those that were shown, or that it means."""
    if ids := memory_ids_in(named):
        candidates = [offered[memory_id] for memory_id in ids if memory_id in offered]
    elif named:
        candidates = _meant(fingerprint(named), {row.id: row for row in (*offered.values(), *sharing)})
    else:
        return None
    return next((row for row in candidates if _may_replace(fact, row)), None)


def _meant(named: Fingerprint, rows: Mapping[str, Memory]) -> list[Memory]:
    scores = {row.id: same_subject(named, fingerprint(row.content)) for row in rows.values()}
    fitting = [row for row in rows.values() if scores[row.id] >= _SAME_SUBJECT]
    return sorted(fitting, key=lambda row: (-scores[row.id], -row.said_at.timestamp(), row.id))


def _may_replace(fact: NewFact, row: Memory) -> bool:
    """Tell whether a fact may supersede a row: what was said later, by somebody who is trusted as much.

    What a person ruled or wants is undone by a person alone, and what is pinned by nobody but who pinned it.
    """
    return _outranks(fact, row) and not same_fact(fact.print, fingerprint(row.content))


def _outranks(fact: NewFact, row: Memory) -> bool:
    if row.kind == "manual" or row.said_at > fact.fact.said_at or fact.fact.tentative > row.tentative:
        return False
    if row.category in ("decision", "preference"):
        return at_least_as_trusted(fact.voice, row.trust)
    return fact.voice in ("user", "assistant") or at_least_as_trusted(fact.voice, row.trust)


def _add(plan: Plan, fact: NewFact, row: Memory | None, former: Memory | None) -> None:
    by = row.id if row else fact.row.memory.id
    if row:
        plan.merged += 1
        plan.again[row.id] = _said_again(plan.again.get(row.id), row.id, fact.fact)
    else:
        plan.fresh.append(fact.row)
    if former and former.id != by:
        plan.replaced[former.id] = Superseder(by, fact.fact.said_at)


def _said_again(before: SaidAgain | None, memory_id: str, fact: Fact) -> SaidAgain:
    seqs = sorted({*(before.seqs if before else ()), *fact.source_seqs})
    return SaidAgain(memory_id, seqs, fact.said_at, fact.priority, fact.tentative)


async def write_plan(connection: Connection, plan: Plan, shown: TranscriptSlice, group_id: str, now: datetime) -> None:
    """Write what was planned; the group must be there."""
    written = await memories.insert(connection, plan.fresh)
    await vectors.enqueue(connection, written, now)
    await memories.say_again(connection, list(plan.again.values()), shown.session.id, group_id)
    await memories.supersede(connection, plan.replaced, now)
    await memories.use(connection, plan.used, min(now, shown.messages[-1].sent_at))


def _rank(row: Memory) -> tuple[bool, float, str]:
    """Order rows as a pack does: what is pinned, then by score."""
    pinned = row.kind == "manual"
    return not pinned, 0.0 if pinned else -pack_score(row.kind, row.priority, row.last_used_at), row.id


def _best_used(offered: Mapping[str, Memory], used_ids: Sequence[str]) -> list[str]:
    """Return the shown rows that an agent really used; of several that say the same, only the best."""
    used = sorted(
        (offered[memory_id] for memory_id in dict.fromkeys(used_ids) if memory_id in offered),
        key=_rank,
    )
    best: list[tuple[str, Fingerprint]] = []
    for row in used:
        mark = fingerprint(row.content)
        if not any(same_fact(mark, other) for _, other in best):
            best.append((row.id, mark))
    return [memory_id for memory_id, _ in best]
