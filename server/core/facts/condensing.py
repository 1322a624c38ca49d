"""What makes a reflection good enough: what it must keep, and when it is no better than what is there.

Pure rules over a candidate; who made it does not matter.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from esker.server.core.counts import counted
from esker.server.core.facts.contradiction import negates
from esker.server.core.facts.records import Draft, Reflected
from esker.server.core.facts.similarity import Fingerprint, fingerprint
from esker.server.core.records import Memory
from esker.server.core.text.loops import degenerate_rows
from esker.server.core.text.terms import terms
from esker.server.core.text.tokens import estimate_tokens

MAX_ROW_TOKENS = 600
"""How long one row of a reflection may be, unless it is a row that stays in its own words."""
# A row with fewer terms than these, or less than this share of the tokens of its sources, or of its largest source of
# high priority, is no reflection of them.
_FEWEST_TERMS = 2
_LEAST_SHARE = 0.02
_LEAST_SHARE_OF_HIGH = 0.3
# Of the terms of a row that must survive, so many must stand in the row that stands for it.
_PRESERVED = 0.7


def must_survive(row: Memory) -> bool:
    """Tell whether a row may be reworded but not left out: what a person ruled, and what is open or put off."""
    if row.priority == "high":
        return True
    if row.category == "next_step":
        return row.priority == "medium"
    return row.trust == "user" and row.category in ("decision", "preference")


def is_insight(row: Memory) -> bool:
    """Tell whether a reflection's row stands beside its sources, for the whole pool, and not in their place."""
    return row.facet is not None


def carried(row: Memory) -> Draft:
    """Return a draft that says what a row says, word for word."""
    return Draft(row.content, row.priority, row.category, (row.id,))


def completed(rows: Sequence[Memory], drafts: Sequence[Draft], *, untouched: Iterable[str] = ()) -> Reflected:
    """Return a candidate that keeps what must survive, in its own words where the drafts lost it.

    `untouched` rows stay as they are. What is neither cited nor must survive is dropped.
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
    """Tell whether a draft still says what a source of it says, where that must survive."""
    if not must_survive(row):
        return True
    open_ended = row.category == "next_step" or (row.category == "issue" and row.priority == "high")
    ended = any(rows[source].category == "outcome" for source in draft.source_ids)
    if open_ended and draft.category == "outcome" and not ended:
        return False  # nothing becomes done because it was talked about
    return preserves(fingerprint(draft.content), fingerprint(row.content))


def preserves(text: Fingerprint, said: Fingerprint) -> bool:
    """Tell whether a text still holds what was said: most of its terms, every number and name, and its negations."""
    if not set(said.exact) <= set(text.exact) or (negates(said) and not negates(text)):
        return False
    return len(said.terms & text.terms) >= _PRESERVED * len(said.terms)


@dataclass(frozen=True, slots=True)
class JudgedCandidate:
    """What a candidate costs, with what stays as it was, and why it is not good enough (None: it is)."""

    tokens: int
    problem: str | None


def judge(rows: Sequence[Memory], candidate: Reflected, target_tokens: int) -> JudgedCandidate:
    """Judge a candidate for `rows`: it must be smaller, within its target, no loop, and say what it stands for.

    The target is for what was reworded; what stays in its own words is as long as it is.
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
    return JudgedCandidate(tokens, degenerate_rows([draft.content for draft in written]) or _too_little(written, by_id))


def _too_little(written: Iterable[Draft], by_id: Mapping[str, Memory]) -> str | None:
    """Say which reworded row says next to nothing of what it stands for, above all of what matters most."""
    for draft in written:
        if draft.facet:
            continue
        sources = [by_id[source] for source in draft.source_ids]
        largest = max((row.tokens for row in sources if row.priority == "high"), default=0)
        least = max(_LEAST_SHARE * sum(row.tokens for row in sources), _LEAST_SHARE_OF_HIGH * largest)
        if len(terms(draft.content)) < _FEWEST_TERMS or estimate_tokens(draft.content) < least:
            return "a row says too little of what it stands for"
    return None
