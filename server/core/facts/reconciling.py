"""Decides whether a new fact becomes a row, is merged into a row that says the same, or replaces rows.

Pure rules; `server/usecases/keep_facts.py` finds the rows and writes the plan.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.conversation.trust import at_least_as_trusted, highest_trust, lowest_trust
from esker.server.core.facts.records import Fact, Restatement, Superseder, TranscriptSlice
from esker.server.core.facts.same_fact import SAME_SUBJECT, Fingerprint, fingerprint, same_fact, same_subject
from esker.server.core.ids import memory_ids_in, new_ids
from esker.server.core.ranking import PRIORITY_WEIGHT, pack_score
from esker.server.core.records import Memory, NewMemory, Trust
from esker.server.core.redaction import redact
from esker.server.core.text.indexing import IndexedMemory, indexed

# Minimum share of their terms that two rows have in common if they are one (see `same_fact.py`).
_SHARED = 0.8
# Terms searched for in addition to those that find every such row, so that rows which share most come first.
_SPARE_TERMS = 2
_RULINGS = ("decision", "preference")
_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])|\n+")

AnyRow = Memory | NewMemory
"""A row that exists, or that this call writes."""


@dataclass(frozen=True, slots=True)
class NewFact:
    """A fact with the row that it would become, and its fingerprint.

    `voice` is the trust of the one who vouches for it; `asserted` is False when it was merely asked.
    """

    fact: Fact
    row: IndexedMemory
    print: Fingerprint
    voice: Trust
    asserted: bool

    def in_project(self, project: str | None) -> "NewFact":
        """Return the fact with its row in a project."""
        if self.row.memory.project == project:
            return self
        return replace(self, row=IndexedMemory(replace(self.row.memory, project=project)))


@dataclass(slots=True)
class ReconciliationPlan:
    """Rows to write, and the ids of rows to merge into, to supersede or to mark as used.

    `said_by`: id of a replaced row → id of the row that restates all of it and takes over its sources.
    """

    fresh: list[IndexedMemory] = field(default_factory=list[IndexedMemory])
    merged_into: dict[str, Restatement] = field(default_factory=dict[str, Restatement])
    replaced: dict[str, Superseder] = field(default_factory=dict[str, Superseder])
    said_by: dict[str, str] = field(default_factory=dict[str, str])
    used: list[str] = field(default_factory=list[str])
    merged: int = 0


def new_facts(
    shown: TranscriptSlice, group_id: str, author: str, facts: Sequence[Fact], now: datetime
) -> list[NewFact]:
    """Return facts by time, each wording once, with the rows that they would become."""
    cleaned = [replace(fact, content=redact(fact.content)) for fact in facts]
    distinct = _each_once(sorted(cleaned, key=lambda fact: fact.said_at))
    ids = new_ids("mem", now, len(distinct))
    rows = indexed(
        _row(shown, group_id, author, memory_id, fact, now) for memory_id, (fact, _) in zip(ids, distinct, strict=True)
    )
    messages = {message.seq: message for message in shown.messages}
    cited = [[messages[seq] for seq in fact.source_seqs] for fact, _ in distinct]
    return [
        NewFact(fact, row, mark, _voice(fact, heard), any(map(_asserts, heard)))
        for (fact, mark), row, heard in zip(distinct, rows, cited, strict=True)
    ]


def _each_once(facts: Sequence[Fact]) -> list[tuple[Fact, Fingerprint]]:
    """Return facts by time, each wording once; a fact that was taken back between two mentions is two facts."""
    distinct: list[tuple[Fact, Fingerprint]] = []
    for fact in facts:
        mark = fingerprint(fact.content)
        place = next((place for place, (_, other) in enumerate(distinct) if same_fact(mark, other)), None)
        if place is None or _taken_back(distinct, place):
            distinct.append((fact, mark))
        else:
            together = _together(distinct[place][0], fact)
            distinct[place] = (together, fingerprint(together.content))
    return distinct


def _taken_back(facts: Sequence[tuple[Fact, Fingerprint]], place: int) -> bool:
    """Whether a later fact says that it replaces the one at index `place`."""
    mark = facts[place][1]
    named = (words for fact, _ in facts[place + 1 :] for words in named_by(fact).splitlines())
    return any(same_subject(fingerprint(words), mark) >= SAME_SUBJECT for words in named)


def _voice(fact: Fact, cited: Sequence[StoredMessage]) -> Trust:
    """Return the trust of the one who vouches for a fact.

    A person's yes makes a proposal of the assistant their own, but not the words of a tool or a page.
    """
    trusts: list[Trust] = [message.trust for message in cited]
    return highest_trust(trusts) if at_least_as_trusted(lowest_trust(trusts), "assistant") else fact.trust


def _asserts(message: StoredMessage) -> bool:
    """Whether a message contains a sentence that is not a question."""
    said = _SENTENCE_END.split(spoken(message.content) or message.text)
    return any(sentence.strip() and not sentence.rstrip(" \t\"'”’)]").endswith(("?", "？")) for sentence in said)


def _together(one: Fact, again: Fact) -> Fact:
    """Return one fact for two mentions of it in one slice."""
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


def planned(
    facts: Sequence[NewFact],
    alike: Sequence[Sequence[Memory]],
    meant: Sequence[Sequence[Memory]],
    offered: Mapping[str, Memory],
) -> ReconciliationPlan:
    """Decide fact by fact, by time, so that a later one can replace the row of an earlier one.

    `alike` are, for each fact, the live rows that share its terms; `meant` those that share the terms of what it says
    it replaces; `offered` those that the observer was shown.
    """
    plan = ReconciliationPlan()
    said: dict[str, AnyRow] = {}
    for fact, like, sharing in zip(facts, alike, meant, strict=True):
        out = plan.replaced.keys()
        like = [row for row in like if row.id not in out]
        there = {row.id: row for row in (*offered.values(), *sharing, *said.values()) if row.id not in out}
        row = _same_row(fact, like)
        lesser = [*_lesser(fact, [*like, *there.values()])]
        former = [*lesser, *_replaced_rows(fact, offered, there)]
        became = row or fact.row.memory
        said[became.id] = became
        plan.said_by.update((one.id, became.id) for one in lesser if one.id != became.id)
        _add(plan, fact, row, [one for one in former if one.id != became.id])
    return plan


def discriminating_terms(terms: Iterable[str]) -> list[str]:
    """Return terms of a text of which every row that says the same shares at least one, the longest (rarest) first.

    Such a row shares at least 0.8 n of n terms, so at least one of any n - 0.8 n + 1.
    """
    distinct = sorted(set(terms), key=lambda term: (-len(term), term))
    return distinct[: len(distinct) - math.ceil(_SHARED * len(distinct)) + 1 + _SPARE_TERMS]


def named_by(fact: Fact) -> str:
    """Return the words or ids by which a fact names the rows it replaces, or nothing if it may not replace anything."""
    return fact.replaces or "" if not fact.tentative else ""


def _same_row(fact: NewFact, rows: Iterable[Memory]) -> Memory | None:
    """Return the row that says all that a fact says, with at least as much weight."""
    return next((row for row in rows if _says(row, fact.print) and not _weighs_less(row, fact)), None)


def _says(row: AnyRow, mark: Fingerprint) -> bool:
    own = fingerprint(row.content)
    return same_fact(mark, own) and mark.terms <= own.terms


def _weighs_less(row: AnyRow, fact: NewFact) -> bool:
    """Whether `row` is easier to supersede than `fact` would be: merging the fact into it would weaken the fact."""
    ruled = fact.fact.category in _RULINGS and row.category not in _RULINGS
    return not at_least_as_trusted(row.trust, fact.voice) or (ruled and fact.voice == "user")


def _lesser(fact: NewFact, rows: Iterable[AnyRow]) -> Iterator[AnyRow]:
    """Yield the rows that a fact restates with more words or more weight: it can replace them without loss."""
    for row in rows:
        mark = fingerprint(row.content)
        if not same_fact(fact.print, mark) or not _outranks(fact, row):
            continue
        if mark.terms < fact.print.terms or (mark.terms == fact.print.terms and _weighs_less(row, fact)):
            yield row


def _replaced_rows(fact: NewFact, offered: Mapping[str, Memory], there: Mapping[str, AnyRow]) -> list[AnyRow]:
    """Return the rows that a fact replaces. It names each by id or in words; words mean the one row that fits best."""
    if not fact.asserted:
        return []
    return [row for named in named_by(fact.fact).splitlines() for row in _named_rows(fact, named, offered, there)]


def _named_rows(fact: NewFact, named: str, offered: Mapping[str, Memory], there: Mapping[str, AnyRow]) -> list[AnyRow]:
    if ids := memory_ids_in(named):
        return [there[i] for i in ids if i in offered and i in there and _may_replace(fact, there[i])]
    return [row for row in _meant(fingerprint(named), there) if _may_replace(fact, row)][:1]


def _meant(named: Fingerprint, rows: Mapping[str, AnyRow]) -> list[AnyRow]:
    """Return the rows about the named subject that contain all its names and numbers, best first."""
    scores = {row.id: _about(named, fingerprint(row.content)) for row in rows.values()}
    fitting = [row for row in rows.values() if scores[row.id] >= SAME_SUBJECT]
    return sorted(fitting, key=lambda row: (-scores[row.id], -row.said_at.timestamp(), row.id))


def _about(named: Fingerprint, row: Fingerprint) -> float:
    particular = named.particular <= row.terms and set(named.exact) <= set(row.exact)
    return same_subject(named, row) if particular else 0.0


def _may_replace(fact: NewFact, row: AnyRow) -> bool:
    """Whether a fact may supersede a row that it names."""
    return _outranks(fact, row) and not same_fact(fact.print, fingerprint(row.content))


def _outranks(fact: NewFact, row: AnyRow) -> bool:
    """Whether a fact may replace a row: it was said no earlier, with at least as much trust.

    Only a person's assertion, not a question, undoes what a person ruled or wants, and no fact undoes a pinned row.
    """
    new = fact.row.memory
    if row.project != new.project and row.session_id != new.session_id:
        return False  # readers of the row would see nothing in its place
    if row.kind == "manual" or row.said_at > fact.fact.said_at or fact.fact.tentative > row.tentative:
        return False
    if row.category in _RULINGS:
        return fact.asserted and at_least_as_trusted(fact.voice, row.trust)
    return fact.voice in ("user", "assistant") or at_least_as_trusted(fact.voice, row.trust)


def _add(plan: ReconciliationPlan, fact: NewFact, row: Memory | None, former: Iterable[AnyRow]) -> None:
    if row:
        plan.merged += 1
        plan.merged_into[row.id] = _restatement(plan.merged_into.get(row.id), row, fact)
    else:
        plan.fresh.append(fact.row)
    by = Superseder(row.id if row else fact.row.memory.id, fact.fact.said_at)
    plan.replaced.update((one.id, by) for one in former)


def _restatement(before: Restatement | None, row: Memory, fact: NewFact) -> Restatement:
    """Return a fact as a restatement of a row; only equal trust raises its priority or makes it certain."""
    heard = at_least_as_trusted(fact.voice, row.trust)
    again = Restatement(
        row.id,
        fact.fact.source_seqs,
        fact.fact.said_at,
        fact.fact.priority if heard else row.priority,
        fact.fact.tentative if heard else row.tentative,
    )
    if before is None:
        return again
    return Restatement(
        row.id,
        sorted({*before.seqs, *again.seqs}),
        max(before.said_at, again.said_at),
        max(before.priority, again.priority, key=PRIORITY_WEIGHT.__getitem__),
        before.tentative and again.tentative,
    )


def _rank(row: Memory) -> tuple[bool, float, str]:
    """Return a sort key in the order of a pack: pinned rows first, then by score."""
    pinned = row.kind == "manual"
    return not pinned, 0.0 if pinned else -pack_score(row.kind, row.priority, row.last_used_at), row.id


def best_used(offered: Mapping[str, Memory], used_ids: Sequence[str]) -> list[str]:
    """Return the shown rows that an agent really used; of rows that say the same, only the best."""
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
