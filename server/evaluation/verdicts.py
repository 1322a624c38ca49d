"""Verdicts on a pool: the value of each figure of its evaluation, whether it is good, and what to do if not.

A `warning` deserves a look and need not be a fault. `wrong` is left for states that must never occur.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from esker.server.core.counts import counted
from esker.server.core.pool.evaluation import (
    BY_INDEX,
    BY_MEANING,
    DEPTHS,
    FULL,
    FreshPack,
    IndexProbe,
    MessageCounts,
    Missing,
    PackFault,
    PoolEvaluation,
    PoolRowCounts,
    Ranks,
    Repeated,
)
from esker.server.core.pool.index_agreement import LEAST
from esker.server.core.pool.row_worth import Worthless
from esker.server.evaluation.figures import (
    FIGURES,
    GOOD_COVERAGE,
    GOOD_RECALL,
    GOOD_WORTH,
    MOST_FALSE_ANSWERS,
    MOST_REPEATED,
    MOST_STALE,
    POOR_RECALL,
    Subject,
)

VerdictStatus = Literal["ok", "warning", "wrong", "unknown"]

# From this share of texts without a vector on, they are the likeliest cause of poor answers.
_MANY_MISSING = 0.1

_PACK_FAULTS: Mapping[PackFault, str] = {
    "gone": "is gone",
    "superseded": "is superseded",
    "expired": "has expired",
    "elsewhere": "belongs to another project",
    "repeat": "repeats an earlier row",
}
_WORTHLESS: Mapping[Worthless, tuple[str, str]] = {
    "no subject": ("row without a subject", "rows without a subject"),
    "order": ("order", "orders"),
    "repeat": ("repeat", "repeats"),
}
"""The words for rows that are not worth their tokens, in singular and plural."""
_BY_URGENCY: Sequence[VerdictStatus] = ("wrong", "warning", "unknown", "ok")


@dataclass(frozen=True, slots=True)
class PoolVerdict:
    """One figure: its subject, name, value, status and meaning, a good value, and advice unless it is ok."""

    about: Subject
    figure: str
    shown: str
    status: VerdictStatus
    meaning: str
    good: str
    advice: str | None = None


def verdicts(evaluation: PoolEvaluation) -> list[PoolVerdict]:
    """Return the verdicts on a pool, those on answers first."""
    store = evaluation.store
    tables = store.vectors
    return [
        *_answers(evaluation),
        *map(_index, store.indexes),
        _without_vector(store.missing, is_empty(evaluation)),
        _none("orphaned vectors", sum(each.orphaned + each.outdated for each in tables)),
        _none("vectors of another model", sum(each.vectors for each in tables if each.state != "active")),
        _coverage(store.messages),
        _stale(store.rows, evaluation.stale_days),
        _expired(store.rows),
        _none("orphaned rows", len(store.orphaned_rows)),
        _repeated(store.repeated),
        _verdict("superseded rows", _of(store.rows.superseded, store.rows.rows), "ok"),
        *(verdict for pack in evaluation.packs for verdict in (_pack(pack), *_worth(pack))),
    ]


def of_subject(found: Sequence[PoolVerdict], subject: Subject) -> list[PoolVerdict]:
    """Return the verdicts on one subject."""
    return [verdict for verdict in found if verdict.about == subject]


def to_do(found: Sequence[PoolVerdict]) -> list[PoolVerdict]:
    """Return the verdicts that have advice, the most urgent first."""
    return sorted((verdict for verdict in found if verdict.advice), key=lambda one: _BY_URGENCY.index(one.status))


def headline(found: Sequence[PoolVerdict]) -> str:
    """Return one sentence about the pool."""
    of = Counter(verdict.status for verdict in found)
    parts = [f"{counted(of['wrong'], 'figure')} wrong"] if of["wrong"] else []
    parts += [f"{counted(of['warning'], 'figure')} to look at"] if of["warning"] else []
    parts += [f"{counted(of['unknown'], 'figure')} not measured"] if of["unknown"] else []
    return f"{' and '.join(parts)}." if parts else "Every figure is good."


def is_empty(evaluation: PoolEvaluation) -> bool:
    """Return whether a pool has neither rows nor messages."""
    return not evaluation.store.rows.rows and not evaluation.store.messages.messages


def _answers(evaluation: PoolEvaluation) -> Iterator[PoolVerdict]:
    unready = _unready(evaluation.store.missing)
    for way, ranks in evaluation.ranks_by_way().items():
        yield _recall(way, ranks, unready)
    if not evaluation.asked:
        yield _nothing_asked(is_empty(evaluation))
    elif reason := evaluation.without_meaning:
        verdict = _verdict("search by meaning", "left out", "warning")
        yield replace(verdict, meaning=verdict.meaning.format(reason=reason))
    share = evaluation.false_answers
    shown = f"{_share(share)} of {counted(len(evaluation.made_up), 'question')}"
    yield _verdict("false answers", shown, "ok" if share <= MOST_FALSE_ANSWERS else "warning", unready)


def _nothing_asked(empty: bool) -> PoolVerdict:
    advice = "Questions are made from texts of a sentence or more: try again when the pool has some."
    if empty:
        advice = (
            "This pool is empty: `esker ingest --all` sends existing transcripts, `esker install` sends future ones."
        )
    return _verdict(FULL, "not measured", "unknown", advice)


def _recall(way: str, ranks: Ranks, unready: str | None) -> PoolVerdict:
    deepest = max(DEPTHS)
    best = ranks.recall[deepest]
    # Agents get full recall; one of its parts may be weak.
    status: VerdictStatus = "ok"
    if way == FULL and best < GOOD_RECALL:
        status = "warning" if best >= POOR_RECALL else "wrong"
    elif unready and way in (BY_MEANING, BY_INDEX) and best < GOOD_RECALL:
        status = "unknown"
    shown = f"{_share(best)} in the first {deepest}, {_share(ranks.recall[1])} at the top"
    return _verdict(way, f"{shown} ({counted(ranks.asked, 'question')})", status, unready)


def _unready(missing: Missing | None) -> str | None:
    """Return the first advice for a pool of which many texts have no vector yet, else None."""
    if missing is None or not missing.missing or missing.missing < _MANY_MISSING * missing.texts:
        return None
    lacking = f"{missing.missing:,} of {counted(missing.texts, 'text')} have no vector yet"
    return f"Most likely because {lacking}: try again when they have one."


def _index(index: IndexProbe) -> PoolVerdict:
    status: VerdictStatus = "ok" if index.agreement >= LEAST else "wrong"
    return _verdict("index", f"{_share(index.agreement)} of the nearest", status, name=f"index of {index.tier} vectors")


def _without_vector(missing: Missing | None, empty: bool) -> PoolVerdict:
    figure = "texts without a vector"
    if empty:
        return _verdict(figure, "no texts yet", "ok")
    if missing is None:
        advice = "No model has embedded this pool: `esker serve` starts a worker, unless ESKER_EMBEDDER=none."
        return _verdict(figure, "all", "warning", advice)
    shown = f"{missing.missing:,} of {missing.texts:,}"
    if not missing.missing:
        return _verdict(figure, shown, "ok")
    advice = "`esker doctor` says why, `esker doctor --retry` tries them again." if missing.failed else None
    shown += f" ({missing.waiting:,} queued, {missing.failed:,} failed)"
    return _verdict(figure, shown, "warning", advice)


def _coverage(messages: MessageCounts) -> PoolVerdict:
    shown = _of(messages.covered, messages.messages)
    if not messages.messages:
        return _verdict("coverage", shown, "ok")
    shown += f"; {messages.waiting:,} waiting, {messages.lost:,} lost"
    if messages.lost:
        advice = "Messages are marked as observed that no group covers: send the transcripts again (`esker ingest`)."
        return _verdict("coverage", shown, "wrong", advice)
    return _verdict("coverage", shown, "ok" if messages.covered / messages.messages >= GOOD_COVERAGE else "warning")


def _stale(rows: PoolRowCounts, days: int) -> PoolVerdict:
    verdict = _few("stale rows", rows.stale, rows.live, MOST_STALE)
    return replace(verdict, meaning=verdict.meaning.format(days=counted(days, "day")))


def _expired(rows: PoolRowCounts) -> PoolVerdict:
    shown = f"{rows.expired:,}, {rows.unmarked:,} not marked" if rows.expired else "0"
    return _verdict("expired rows", shown, "warning" if rows.unmarked else "ok")


def _repeated(repeated: Repeated) -> PoolVerdict:
    verdict = _few("repeated rows", len(repeated.ids), repeated.compared, MOST_REPEATED)
    if not repeated.crowded:
        return verdict
    more = " There may be more: some rows share words with too many others to be compared with each."
    shown = f"{verdict.shown}; {repeated.crowded:,} not compared with all"
    return replace(verdict, shown=shown, meaning=verdict.meaning + more)


def _pack(pack: FreshPack) -> PoolVerdict:
    faults = set(pack.faults.values())
    status: VerdictStatus = "ok" if not faults else "warning" if faults == {"repeat"} else "wrong"
    named = "; ".join(f"a row that {words}" for fault, words in _PACK_FAULTS.items() if fault in faults)
    advice = [f"It contains {named}. --json has the ids."] if faults else []
    if pack.pins_left:
        status = "warning" if status == "ok" else status
        advice.append(f"{counted(pack.pins_left, 'pinned row')} did not fit: pin fewer.")
    right = f"{_share(pack.precision)} of {counted(pack.rows, 'row')} right"
    shown = f"{right}; {pack.tokens:,} of {counted(pack.budget, 'token')}"
    return _verdict("pack", shown, status, " ".join(advice), name=f"pack of {pack.project or 'no project'}")


def _worth(pack: FreshPack) -> Iterator[PoolVerdict]:
    worth = pack.worth
    if not worth.tokens:
        return
    counts = Counter(worth.worthless.values())
    named = [
        f"{counted(counts[reason], *words)} ({_share(worth.wasted[reason] / worth.tokens)})"
        for reason, words in _WORTHLESS.items()
        if counts[reason]
    ]
    shown = "; ".join([f"{_share(worth.useful)} of {counted(worth.tokens, 'token')} of rows", *named])
    status: VerdictStatus = "ok" if worth.useful >= GOOD_WORTH else "warning"
    figure = "worth of the pack"
    yield _verdict(figure, shown, status, name=f"{figure} of {pack.project or 'no project'}")


def _verdict(
    figure: str, shown: str, status: VerdictStatus, advice: str | None = None, name: str | None = None
) -> PoolVerdict:
    """Return a verdict; `advice` replaces that of its figure, and `name` its name."""
    of = FIGURES[figure]
    given = None if status == "ok" else advice or of.advice
    return PoolVerdict(of.about, name or figure, shown, status, of.meaning, of.good, given)


def _none(figure: str, count: int) -> PoolVerdict:
    """Return the verdict on a count that should be 0."""
    return _verdict(figure, f"{count:,}", "warning" if count else "ok")


def _few(figure: str, count: int, of: int, most: float) -> PoolVerdict:
    """Return the verdict on a share of rows that should be at most `most`."""
    return _verdict(figure, _of(count, of), "ok" if not of or count / of <= most else "warning")


def _of(count: int, of: int) -> str:
    return f"{count:,} of {of:,} ({_share(count / of)})" if of else "none yet"


def _share(value: float) -> str:
    return f"{value:.1%}".replace(".0%", "%")
