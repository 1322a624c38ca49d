"""When a reflection is good enough: which rows must survive it, and when it does not improve on them.

Pure rules about a candidate, whichever reflector made it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from esker.server.core.counts import counted
from esker.server.core.facts.contradiction import negates
from esker.server.core.facts.records import Draft, Reflected
from esker.server.core.facts.same_fact import Fingerprint, fingerprint
from esker.server.core.records import Memory
from esker.server.core.text.loops import degenerate_rows, degeneration
from esker.server.core.text.terms import terms
from esker.server.core.text.tokens import estimate_tokens

MAX_ROW_TOKENS = 600
"""Maximum tokens of one row of a reflection, unless it repeats its source word for word."""
# Minimum terms of a row, and minimum share of the tokens of its sources, or of its largest source of high priority:
# a row below one of these is not a reflection of them.
_FEWEST_TERMS = 2
_LEAST_SHARE = 0.02
_LEAST_SHARE_OF_HIGH = 0.3
# If a row must survive, the row that replaces it contains at least this share of its terms.
_PRESERVED = 0.7


def must_survive(row: Memory) -> bool:
    """Whether a row may be reworded but not left out: a person's ruling, or something open or postponed."""
    if row.priority == "high":
        return True
    if row.category == "next_step":
        return row.priority == "medium"
    return row.trust == "user" and row.category in ("decision", "preference")


def is_insight(row: Memory) -> bool:
    """Whether a reflection's row is kept beside its sources, for the whole pool, instead of replacing them."""
    return row.facet is not None


def carried(row: Memory) -> Draft:
    """Return a draft that repeats a row word for word."""
    return Draft(row.content, row.priority, row.category, (row.id,))


def completed(rows: Sequence[Memory], drafts: Sequence[Draft], *, untouched: Iterable[str] = ()) -> Reflected:
    """Return a candidate that keeps every row that must survive, word for word where the drafts lost it.

    `untouched` rows stay as they are. Other rows that no draft cites and that need not survive are dropped.
    """
    by_id = {row.id: row for row in rows}
    kept: list[Draft] = []
    lost: dict[str, None] = {}
    for draft in drafts:
        missing = [] if draft.facet else [i for i in draft.source_ids if not _survives(by_id[i], draft, by_id)]
        lost |= dict.fromkeys(missing)
        sources = tuple(i for i in draft.source_ids if i not in missing)
        if sources:
            kept.append(replace(draft, source_ids=sources))
    settled = {*untouched, *(source for draft in kept if not draft.facet for source in draft.source_ids)}
    left = [row for row in rows if row.id not in settled]
    carry = {row.id: row for row in left if row.id in lost or must_survive(row)}
    dropped = tuple(row.id for row in left if row.id not in carry)
    return Reflected((*kept, *map(carried, carry.values())), dropped)


def _survives(row: Memory, draft: Draft, rows: Mapping[str, Memory]) -> bool:
    """Whether a draft preserves one of its sources, or need not."""
    if not must_survive(row):
        return True
    open_ended = row.category == "next_step" or (row.category == "issue" and row.priority == "high")
    ended = any(rows[source].category == "outcome" for source in draft.source_ids)
    if open_ended and draft.category == "outcome" and not ended:
        return False  # an open matter is not done because it was talked about
    return preserves(fingerprint(draft.content), fingerprint(row.content))


def preserves(text: Fingerprint, said: Fingerprint) -> bool:
    """Whether a text preserves another: most of its terms, every number and name, and its negations."""
    if not set(said.exact) <= set(text.exact) or (negates(said) and not negates(text)):
        return False
    return len(said.terms & text.terms) >= _PRESERVED * len(said.terms)


@dataclass(frozen=True, slots=True)
class JudgedCandidate:
    """A candidate's tokens, including the rows that stay, and why it is not good enough (None: it is)."""

    tokens: int
    problem: str | None


def judge(rows: Sequence[Memory], candidate: Reflected, target_tokens: int) -> JudgedCandidate:
    """Judge a candidate for `rows`: it must be smaller, within its target, not a loop, and say enough of its sources.

    The target limits reworded rows only; rows that are repeated word for word may have any length.
    """
    by_id = {row.id: row for row in rows}
    replaced = {i for draft in candidate.drafts if not draft.facet for i in draft.source_ids} | {*candidate.dropped_ids}
    stays = [row for row in rows if row.id not in replaced]
    costs = {id(draft): estimate_tokens(draft.content) for draft in candidate.drafts}
    written = [d for d in candidate.drafts if all(by_id[i].content != d.content for i in d.source_ids)]
    tokens = sum(costs.values()) + sum(row.tokens for row in stays)
    before = sum(row.tokens for row in rows)
    reworded = sum(costs[id(draft)] for draft in written)
    if tokens >= before:
        return JudgedCandidate(tokens, f"it has {counted(tokens, 'token')}, and what it would replace has {before:,}")
    if len(candidate.drafts) + len(stays) > len(rows):
        return JudgedCandidate(
            tokens, f"it has {counted(len(candidate.drafts), 'row')} in place of {len(rows) - len(stays):,}"
        )
    if reworded > target_tokens:
        return JudgedCandidate(tokens, f"it has {counted(reworded, 'token')}; the limit is {target_tokens:,}")
    return JudgedCandidate(tokens, _loops(written, by_id) or _too_little(written, by_id))


def _loops(written: Sequence[Draft], by_id: Mapping[str, Memory]) -> str | None:
    """Return a complaint if reworded rows repeat themselves more than their sources do.

    Many small edits of one file are alike in every row about them, and in a row that condenses them.
    """
    return degenerate_rows([draft.content for draft in written if not _is_repetitive(draft, by_id)])


def _is_repetitive(draft: Draft, by_id: Mapping[str, Memory]) -> bool:
    """Whether the sources of a draft, joined, repeat themselves like a looping model, and the draft adds no word."""
    said = "\n".join(by_id[source].content for source in draft.source_ids)
    return set(terms(draft.content)) <= set(terms(said)) and degeneration(said) is not None


def _too_little(written: Iterable[Draft], by_id: Mapping[str, Memory]) -> str | None:
    """Return a complaint if a reworded row says next to nothing of its sources or of its most important one."""
    for draft in written:
        if draft.facet:
            continue
        sources = [by_id[source] for source in draft.source_ids]
        largest = max((row.tokens for row in sources if row.priority == "high"), default=0)
        least = max(_LEAST_SHARE * sum(row.tokens for row in sources), _LEAST_SHARE_OF_HIGH * largest)
        if len(terms(draft.content)) < _FEWEST_TERMS or estimate_tokens(draft.content) < least:
            return "a row says too little of its sources"
    return None
