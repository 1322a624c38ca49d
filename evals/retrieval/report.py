"""The report of a run: a table for people and a document for machines."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evals.output import percent, table
from evals.provenance import hardware, versions
from evals.retrieval.asking import QueryReplies
from evals.retrieval.dataset import DataSet
from evals.retrieval.figures import BUDGETS, NDCG_DEPTH, Figures, arm_figures, kinds, query_figures
from evals.retrieval.floors import BM25, DENSE, RRF

_SHARES = (
    *("recall@5", "recall@10", f"ndcg@{NDCG_DEPTH}", "mrr", "turns@10"),
    *(f"within {budget}" for budget in BUDGETS),
    "precision",
)
_NEVER_ABSTAIN = (DENSE, BM25, RRF)


def document(data: DataSet, asked: Sequence[QueryReplies], run: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything about a run; `run` contains its settings."""
    arms = list(asked[0].replies)
    return {
        "suite": "retrieval",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": versions(),
        "data": _about(data),
        "run": run,
        "arms": {arm: _figures(asked, arm) for arm in arms},
        "kinds": {
            kind: {arm: _figures([one for one in asked if one.query.kind == kind], arm) for arm in arms}
            for kind in kinds(asked)
        },
        "queries": [_about_query(one) for one in asked],
    }


def _figures(asked: Sequence[QueryReplies], arm: str) -> Figures:
    return arm_figures(asked, arm, abstains=arm not in _NEVER_ABSTAIN)


def _about(data: DataSet) -> dict[str, Any]:
    queries = [query for conversation in data.conversations for query in conversation.queries]
    return {
        "name": data.name,
        "sha256": data.sha256(),
        "conversations": len(data.conversations),
        "turns": data.turns,
        "queries": len(queries),
        "with_evidence": sum(bool(query.evidence) for query in queries),
        "unanswerable": sum(not query.answerable for query in queries),
        "remarks": data.remarks,
    }


def _about_query(one: QueryReplies) -> dict[str, Any]:
    evidence = set(one.query.evidence)
    return {
        "id": one.id,
        "text": one.query.text,
        "kind": one.query.kind,
        "answerable": one.query.answerable,
        "evidence": one.query.evidence,
        "cold_ms": one.cold_ms,
        "arms": {
            arm: {
                "figures": query_figures(one, reply) | _judged(one, arm),
                "hits": [
                    {"id": hit, "evidence": covers & evidence, "turns": covers}
                    for hit, covers in zip(reply.hits, reply.covers, strict=True)
                ],
                "abstained": reply.abstained,
                "tokens": sum(reply.tokens),
                "ms": reply.ms,
            }
            for arm, reply in one.replies.items()
        },
    }


def _judged(one: QueryReplies, arm: str) -> dict[str, float]:
    """Return, for an arm that can abstain, whether it did so exactly if there is no answer."""
    if arm in _NEVER_ABSTAIN:
        return {}
    return {"rightly": float(one.replies[arm].abstained != one.query.answerable)}


def show(written: Mapping[str, Any]) -> None:
    """Print the arms of a run as a table."""
    about, run = written["data"], written["run"]
    title = (
        f"{about['name']} as {run['as']}: {about['conversations']} conversations, {about['turns']:,} turns, "
        f"{about['with_evidence']} queries with evidence, {about['unanswerable']} without an answer"
    )
    columns = ["", *_SHARES, "abst. prec.", "abst. rec.", "abst. wrongly", "tokens", "p50 ms", "p95 ms"]
    table(title, columns, [[arm, *_row(figures)] for arm, figures in written["arms"].items()])


def _row(figures: Figures) -> Iterator[str]:
    for share in _SHARES:
        yield percent(figures.shares.get(share))
    abstention = figures.abstention
    yield from (
        ("", "", "")
        if abstention is None
        else map(percent, (abstention.precision, abstention.recall, abstention.wrongly))
    )
    yield "–" if figures.tokens is None else f"{figures.tokens:,.0f}"
    for ms in (figures.p50_ms, figures.p95_ms):
        yield "–" if ms is None else f"{ms:.1f}"
