"""The figures of a run: each arm over all queries, and over those of each kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from evals.retrieval.asking import ArmReply, QueryReplies
from evals.retrieval.metrics import (
    Abstention,
    abstention,
    all_found,
    found_in_turns,
    found_within,
    mean,
    ndcg,
    percentile,
    precision,
    recall,
    reciprocal_rank,
)

DEPTHS = (5, 10, 20)
NDCG_DEPTH = 10
BUDGETS = (500, 1_000, 2_000)
"""Token budgets that an agent may set for hits."""
TURNS = (10, 20)
"""Depths in distinct turns: a hit that covers several turns counts as several."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over the queries that have evidence, with equal weight; None without any.

    `abstention` is over all queries, and None for an arm that cannot abstain. `tokens` is the mean of all hits of a
    query.
    """

    queries: int
    shares: dict[str, float | None]
    abstention: Abstention | None
    tokens: float | None
    p50_ms: float | None
    p95_ms: float | None


def query_figures(asked: QueryReplies, reply: ArmReply) -> dict[str, float]:
    """Return the figures of one reply, by name; empty for a query without evidence."""
    covers, evidence = reply.covers, asked.query.evidence
    if not evidence:
        return {}
    return {
        **{f"recall@{k}": recall(covers, evidence, k) for k in DEPTHS},
        **{f"all@{k}": all_found(covers, evidence, k) for k in DEPTHS},
        f"ndcg@{NDCG_DEPTH}": ndcg(covers, evidence, NDCG_DEPTH),
        "mrr": reciprocal_rank(covers, evidence),
        **{f"turns@{n}": found_in_turns(reply.turns, evidence, n) for n in TURNS},
        **{f"within {budget}": found_within(covers, reply.tokens, evidence, budget) for budget in BUDGETS},
        "precision": precision(covers, evidence),
    }


def arm_figures(asked: Sequence[QueryReplies], arm: str, *, abstains: bool = True) -> Figures:
    """Return the figures of one arm over queries."""
    replies = [(one, one.replies[arm]) for one in asked]
    each = [found for one, reply in replies if (found := query_figures(one, reply))]
    names = dict.fromkeys(chain.from_iterable(each))
    answers = [(one.query.answerable, reply.abstained) for one, reply in replies]
    times = [reply.ms for _, reply in replies]
    return Figures(
        queries=len(each),
        shares={name: mean([found[name] for found in each]) for name in names},
        abstention=abstention(answers) if abstains else None,
        tokens=mean([sum(reply.tokens) for _, reply in replies]),
        p50_ms=percentile(times, 0.5),
        p95_ms=percentile(times, 0.95),
    )


def kinds(asked: Sequence[QueryReplies]) -> list[str]:
    """Return the kinds of the queries, in order of first occurrence."""
    return list(dict.fromkeys(one.query.kind for one in asked if one.query.kind))
