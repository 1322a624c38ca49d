"""What the figures of an evaluation mean: each in words, whether it is good, and what to do where it is not.

The limits are rules of thumb, made by looking at pools: what is below them deserves a look and need not be a fault.
`wrong` is only what should never be.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from server.core.agreement import LEAST
from server.core.counts import counted
from server.core.pool_evaluation import DEPTHS, FreshPack, PoolEvaluation, Ranks

Status = Literal["ok", "warning", "wrong", "unknown"]

GOOD_RECALL = 0.9
POOR_RECALL = 0.5
MOST_FALSE_ANSWERS = 0.1
GOOD_COVERAGE = 0.8
MOST_STALE = 0.2
MOST_REPEATED = 0.05

_WAYS = {
    "full recall": "How often the text that a question was made of is among the first hits that users get.",
    "keyword": "The same by words alone.",
    "meaning, exact": "The same by meaning alone, every vector looked at.",
    "meaning, by index": "The same by meaning alone, by the index of vectors.",
}
_POOR = "`esker doctor` and the figures below say what keeps texts from being found; the questions are in --json."


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure: its name, what it is, what it means, and what to do about it, if anything."""

    figure: str
    shown: str
    status: Status
    meaning: str
    advice: str | None = None


def verdicts(found: PoolEvaluation) -> list[Verdict]:
    """Return what there is to say about a pool, what concerns answers first."""
    return [*_answers(found), *_vectors(found), *_rows(found), *(_pack(pack) for pack in found.packs)]


# Answers -----------------------------------------------------------------------------------------------------------


def _answers(found: PoolEvaluation) -> Iterator[Verdict]:
    ways = found.ranks_by_way()
    for way, meaning in _WAYS.items():
        if way in ways:
            yield _recall(way, ways[way], meaning)
    if not found.asked:
        yield Verdict("full recall", "not measured", "unknown", "No text was long and telling enough to ask about.")
    elif reason := found.without_meaning:
        hint = "Vectors count for nothing in the figures of the questions that this concerns."
        yield Verdict("search by meaning", "left out", "warning", f"Why: {reason}.", hint)
    false = found.false_answers
    yield Verdict(
        "false answers",
        f"{_share(false)} of {counted(len(found.made_up), 'question')}",
        "ok" if false <= MOST_FALSE_ANSWERS else "warning",
        "How often a question of made-up words, which nothing answers, was answered all the same.",
        None if false <= MOST_FALSE_ANSWERS else "Agents should read scores: the report shows those of both kinds.",
    )


def _recall(way: str, ranks: Ranks, meaning: str) -> Verdict:
    best = ranks.recall[max(DEPTHS)]
    shown = " / ".join(_share(ranks.recall[depth]) for depth in DEPTHS)
    # What users get is what counts; one way alone may be weak.
    status: Status = "ok"
    if way == "full recall" and best < GOOD_RECALL:
        status = "warning" if best >= POOR_RECALL else "wrong"
    return Verdict(
        way,
        f"{shown} in the first {'/'.join(map(str, DEPTHS))}; MRR {ranks.mrr:.2f}; {counted(ranks.asked, 'question')}",
        status,
        meaning,
        None if status == "ok" else _POOR,
    )


# Vectors -----------------------------------------------------------------------------------------------------------


def _vectors(found: PoolEvaluation) -> Iterator[Verdict]:
    for index in found.store.indexes:
        good = index.agreement >= LEAST
        yield Verdict(
            f"index of {index.tier} vectors",
            f"{_share(index.agreement)} of the nearest",
            "ok" if good else "wrong",
            "How much of what the exact search finds is found by the index that recall uses.",
            None if good else "Drop it as `esker doctor` says: recall is exact until the worker has made it anew.",
        )
    yield _waiting(found)
    tables = found.store.vectors
    orphaned, outdated = sum(each.orphaned for each in tables), sum(each.outdated for each in tables)
    yield _none(
        "orphaned vectors",
        orphaned + outdated,
        "Vectors of texts that are gone, or of words that have changed: found by nobody, they only take room.",
        "The worker's upkeep deletes them: does one run?",
    )
    yield _none(
        "vectors of another model",
        sum(each.vectors for each in tables if each.state != "active"),
        "What a model made that recall does not use, or not yet.",
        "`esker reembed --status` says why they are there, `esker reembed --drop-retired` lets them go.",
    )


def _waiting(found: PoolEvaluation) -> Verdict:
    name, missing = "texts without a vector", found.store.missing
    if missing is None:
        hint = "`esker serve` starts an embedding worker, unless ESKER_EMBEDDER is none."
        return Verdict(name, "all", "warning", "No model has embedded this pool: recall is by keyword alone.", hint)
    advice = "Does a worker run? `esker serve` starts one, `esker worker` is one."
    if missing.failed:
        advice = "`esker doctor` says why, `esker doctor --retry` tries them again."
    detail = f"{missing.missing:,} of {missing.texts:,} ({missing.waiting:,} wait, {missing.failed:,} failed)"
    meaning = "Rows and passages that cannot be found by meaning yet."
    return Verdict(name, detail, "warning" if missing.missing else "ok", meaning, advice if missing.missing else None)


# Rows --------------------------------------------------------------------------------------------------------------


def _rows(found: PoolEvaluation) -> Iterator[Verdict]:
    rows, repeated = found.store.rows, found.store.repeated
    yield _coverage(found)
    yield _few(
        "stale rows",
        rows.stale,
        rows.live,
        MOST_STALE,
        f"Live rows of low priority that nobody has used for {counted(found.stale_days, 'day')}.",
        "`esker reflect` condenses what is old; `esker forget ID` deletes a row.",
    )
    yield _none(
        "expired rows",
        rows.unmarked,
        f"Rows past the time they are valid that no upkeep has marked; {rows.expired:,} have expired in all. "
        "None of them is shown.",
        "A server that runs marks them: does one run?",
    )
    yield _none(
        "orphaned rows",
        len(found.store.orphaned_rows),
        "Live rows of which no message and no row is left that they came from, so that nothing proves them.",
        "`esker expand ID` shows one (ids are in --json), `esker forget ID` deletes it.",
    )
    yield _few(
        "repeated rows",
        len(repeated.ids),
        repeated.compared,
        MOST_REPEATED,
        "Live rows that say what another live row says. An answer shows them once, but they cost tokens in packs.",
        "`esker reflect` condenses them; `esker forget ID` deletes a row and all that says the same.",
    )
    yield Verdict(
        "superseded rows",
        _of(rows.superseded, rows.rows),
        "ok",
        "Kept, hidden unless asked for: what was replaced by something newer, or condensed.",
    )


def _coverage(found: PoolEvaluation) -> Verdict:
    messages = found.store.messages
    share = messages.covered / messages.messages if messages.messages else 1.0
    meaning = "How many messages stand in an observation group, so that their facts are rows."
    shown = f"{_of(messages.covered, messages.messages)}; {messages.waiting:,} wait, {messages.lost:,} lost"
    if messages.lost:
        advice = "Messages were marked as observed that no group covers: send the transcripts again (`esker ingest`)."
        return Verdict("coverage", shown, "wrong", meaning, advice)
    if share < GOOD_COVERAGE:
        return Verdict("coverage", shown, "warning", meaning, "`esker observe` has what waits observed.")
    return Verdict("coverage", shown, "ok", meaning)


def _pack(pack: FreshPack) -> Verdict:
    shown = (
        f"{_share(pack.precision)} of {counted(pack.rows, 'row')} right;"
        f" {pack.tokens:,} of {counted(pack.budget, 'token')}"
    )
    meaning = "A new session's pack: rows that are live, of its project, not expired, and said once."
    faults = sorted(set(pack.faults.values()))
    repeats_alone = all("before it" in fault for fault in faults)
    status: Status = "ok" if not faults else "warning" if repeats_alone else "wrong"
    advice = f"In it: a row that {'; a row that '.join(faults)}. Which rows those are is in --json." if faults else None
    if pack.pins_left:
        status = "warning" if status == "ok" else status
        advice = f"{advice or ''} {counted(pack.pins_left, 'pinned row')} did not fit: pin fewer.".strip()
    return Verdict(f"pack of {pack.project or 'no project'}", shown, status, meaning, advice)


# Words -------------------------------------------------------------------------------------------------------------


def _none(figure: str, count: int, meaning: str, advice: str) -> Verdict:
    """Say of what there should be none how much there is."""
    return Verdict(figure, f"{count:,}", "warning" if count else "ok", meaning, advice if count else None)


def _few(figure: str, count: int, of: int, most: float, meaning: str, advice: str) -> Verdict:
    """Say of what there should be little which share it is."""
    good = not of or count / of <= most
    return Verdict(figure, _of(count, of), "ok" if good else "warning", meaning, None if good else advice)


def _of(count: int, of: int) -> str:
    return f"{count:,} of {of:,} ({_share(count / of if of else 0.0)})"


def _share(value: float) -> str:
    return f"{value:.0%}" if value in (0.0, 1.0) else f"{value:.1%}"


def headline(said: Sequence[Verdict]) -> str:
    """Return in one sentence how it stands."""
    wrong, warnings = (sum(verdict.status == status for verdict in said) for status in ("wrong", "warning"))
    if not wrong and not warnings:
        return "All is as it should be."
    parts = [*([f"{counted(wrong, 'figure')} wrong"] if wrong else [])]
    parts += [f"{counted(warnings, 'figure')} to look at"] if warnings else []
    return f"{' and '.join(parts)}."
