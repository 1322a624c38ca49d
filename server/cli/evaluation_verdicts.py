"""What the figures of an evaluation mean: each in words, whether it is good, and what to do where it is not.

The limits are rules of thumb, made by looking at pools: what is below them deserves a look and need not be a fault.
`wrong` is only what should never be.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from esker.server.core.counts import counted
from esker.server.core.pool.evaluation import (
    BY_INDEX,
    BY_MEANING,
    BY_WORDS,
    DEPTHS,
    FULL,
    FreshPack,
    IndexProbe,
    PackFault,
    PoolEvaluation,
    PoolRowCounts,
    Ranks,
    Repeated,
)
from esker.server.core.pool.index_agreement import LEAST

VerdictStatus = Literal["ok", "warning", "wrong", "unknown"]

GOOD_RECALL = 0.9
POOR_RECALL = 0.5
MOST_FALSE_ANSWERS = 0.1
GOOD_COVERAGE = 0.8
MOST_STALE = 0.2
MOST_REPEATED = 0.05
_MANY_MISSING = 0.1

_WAYS: Mapping[str, tuple[str, str]] = {
    FULL: (
        "How often the text that a question was made of is among the hits that an agent gets.",
        f"at least {GOOD_RECALL:.0%} among the first {max(DEPTHS)}",
    ),
    BY_WORDS: (
        "The same where only words are compared, as recall does where there are no vectors.",
        "whatever makes full recall good",
    ),
    BY_MEANING: (
        "The same where only meanings are compared, with every vector; rare words and codes have little meaning.",
        "whatever makes full recall good",
    ),
    BY_INDEX: (
        "The same through the index of vectors, which makes the search by meaning fast where there are many.",
        "about as much as by meaning alone",
    ),
}

Subject = Literal["answers", "vectors", "rows", "packs"]
HEADINGS: Mapping[Subject, str] = {
    "answers": "Can it be found?",
    "vectors": "The search by meaning",
    "rows": "What is stored",
    "packs": "What a new session would be shown",
}
_BY_URGENCY: Sequence[VerdictStatus] = ("wrong", "warning", "unknown", "ok")


@dataclass(frozen=True, slots=True)
class PoolVerdict:
    """One figure: what it is about, its name, what it is, what it means, what would be good, and what to do, if
    anything."""

    about: Subject
    figure: str
    shown: str
    status: VerdictStatus
    meaning: str
    good: str
    advice: str | None = None


def verdicts(found: PoolEvaluation) -> list[PoolVerdict]:
    """Return what there is to say about a pool, what concerns answers first."""
    return [*_answers(found), *_vectors(found), *_rows(found), *(_pack(pack) for pack in found.packs)]


def of_subject(said: Sequence[PoolVerdict], subject: Subject) -> list[PoolVerdict]:
    """Return what is said about one subject."""
    return [verdict for verdict in said if verdict.about == subject]


def to_do(said: Sequence[PoolVerdict]) -> list[PoolVerdict]:
    """Return the figures about which something can be done, the worst first."""
    return sorted((verdict for verdict in said if verdict.advice), key=lambda one: _BY_URGENCY.index(one.status))


# Answers -----------------------------------------------------------------------------------------------------------


def _answers(found: PoolEvaluation) -> Iterator[PoolVerdict]:
    ways = found.ranks_by_way()
    for way, (meaning, good) in _WAYS.items():
        if way in ways:
            yield _recall(found, way, ways[way], meaning, good)
    if not found.asked:
        yield _nothing_asked(found)
    elif reason := found.without_meaning:
        yield PoolVerdict(
            "answers",
            "search by meaning",
            "left out",
            "warning",
            f"Why: {reason}. Full recall was asked without vectors, too.",
            "it takes part",
            "`esker serve` runs a worker that embeds pools, `esker doctor` says what an embedder lacks; `--no-meaning`"
            " leaves it out on purpose.",
        )
    false = found.false_answers
    good = false <= MOST_FALSE_ANSWERS
    yield PoolVerdict(
        "answers",
        "false answers",
        f"{_share(false)} of {counted(len(found.made_up), 'question')}",
        "ok" if good else "warning",
        "How often a question of made-up words, which nothing in memory answers, got an answer all the same.",
        f"at most {MOST_FALSE_ANSWERS:.0%}",
        None if good else _why_false(found),
    )


def _nothing_asked(found: PoolEvaluation) -> PoolVerdict:
    meaning, good = _WAYS[FULL]
    advice = "Questions are made of texts of a sentence or more: look again when there are some."
    if is_empty(found):
        advice = "This pool is empty: `esker ingest --all` sends it what there is, `esker install` what comes."
    return PoolVerdict("answers", FULL, "not measured", "unknown", meaning, good, advice)


def _recall(found: PoolEvaluation, way: str, ranks: Ranks, meaning: str, good: str) -> PoolVerdict:
    best = ranks.recall[max(DEPTHS)]
    # What users get is what counts; one way alone may be weak.
    status: VerdictStatus = "ok"
    if way == FULL and best < GOOD_RECALL:
        status = "warning" if best >= POOR_RECALL else "wrong"
    shown = (
        f"{_share(best)} in the first {max(DEPTHS)}, {_share(ranks.recall[1])} at the top"
        f" ({counted(ranks.asked, 'question')})"
    )
    return PoolVerdict("answers", way, shown, status, meaning, good, None if status == "ok" else _why_poor(found))


def _why_poor(found: PoolEvaluation) -> str:
    return _unready(found) or (
        "--report shows the questions that were not answered, --json has them all; `esker recall QUESTION --explain`"
        " says why a hit stands where it stands."
    )


def _why_false(found: PoolEvaluation) -> str:
    return _unready(found) or (
        "Agents should give little weight to hits of such scores: the page that --report writes shows them beside those"
        " of right answers."
    )


def _unready(found: PoolEvaluation) -> str | None:
    """Return what to do first where many texts have no vector, so that recall knows little but their words."""
    missing = found.store.missing
    if missing is None or missing.missing < _MANY_MISSING * missing.texts or not missing.missing:
        return None
    lacking = f"{missing.missing:,} of {counted(missing.texts, 'text')} have no vector yet"
    return f"Most likely because {lacking}: look again when they have."


# Vectors -----------------------------------------------------------------------------------------------------------


def _vectors(found: PoolEvaluation) -> Iterator[PoolVerdict]:
    yield from map(_index, found.store.indexes)
    yield _waiting(found)
    tables = found.store.vectors
    orphaned, outdated = sum(each.orphaned for each in tables), sum(each.outdated for each in tables)
    yield _none(
        "vectors",
        "orphaned vectors",
        orphaned + outdated,
        "Vectors of texts that are gone, or of words that have changed: they are never shown and only take room.",
        "The worker's upkeep deletes them: does one run? `esker serve` starts one.",
    )
    yield _none(
        "vectors",
        "vectors of another model",
        sum(each.vectors for each in tables if each.state != "active"),
        "What another embedding model made: recall does not use it, or not yet.",
        "`esker reembed --status` says why they are there, `esker reembed --drop-retired` lets them go.",
    )


def _index(index: IndexProbe) -> PoolVerdict:
    good = index.agreement >= LEAST
    return PoolVerdict(
        "vectors",
        f"index of {index.tier} vectors",
        f"{_share(index.agreement)} of the nearest",
        "ok" if good else "wrong",
        "How much of what a search of every vector finds is found by the index that recall uses.",
        f"at least {LEAST:.0%}",
        None if good else "Drop it as `esker doctor` says: recall is exact until the worker has made it anew.",
    )


def _waiting(found: PoolEvaluation) -> PoolVerdict:
    name, missing = "texts without a vector", found.store.missing
    meaning = "Rows and passages that recall finds by their words, and by their meaning not yet."
    if is_empty(found):
        return PoolVerdict("vectors", name, "none there yet", "ok", meaning, "none")
    if missing is None:
        advice = "No model has embedded this pool: `esker serve` starts a worker, unless ESKER_EMBEDDER is none."
        return PoolVerdict("vectors", name, "all", "warning", meaning, "none", advice)
    advice = "The worker of `esker serve` embeds them, one after another; where no server runs, `esker worker` does."
    if missing.failed:
        advice = "`esker doctor` says why, `esker doctor --retry` tries them again."
    shown = f"{missing.missing:,} of {missing.texts:,}"
    if missing.missing:
        shown += f" ({missing.waiting:,} wait, {missing.failed:,} failed)"
    status: VerdictStatus = "warning" if missing.missing else "ok"
    return PoolVerdict("vectors", name, shown, status, meaning, "none", advice if missing.missing else None)


# Rows --------------------------------------------------------------------------------------------------------------


def _rows(found: PoolEvaluation) -> Iterator[PoolVerdict]:
    rows = found.store.rows
    yield _coverage(found)
    yield _stale(rows, found.stale_days)
    yield _expired(rows)
    yield _none(
        "rows",
        "orphaned rows",
        len(found.store.orphaned_rows),
        "Live rows that came from messages or rows of which none is left, so that nothing proves them.",
        "--json has their ids: `esker expand ID` shows one, `esker forget ID` deletes it.",
    )
    yield _repeated(found.store.repeated)
    yield PoolVerdict(
        "rows",
        "superseded rows",
        _of(rows.superseded, rows.rows),
        "ok",
        "Rows that something newer or shorter has replaced. They are kept, and hidden unless asked for.",
        "any number",
    )


def _stale(rows: PoolRowCounts, days: int) -> PoolVerdict:
    return _few(
        "stale rows",
        rows.stale,
        rows.live,
        MOST_STALE,
        f"Live rows of low priority that have been in memory for {counted(days, 'day')} and that nobody has used since."
        " They do no harm: packs show others before them.",
        "`esker reflect` condenses those that can be, `esker forget ID` deletes one; or leave them.",
    )


def _expired(rows: PoolRowCounts) -> PoolVerdict:
    return PoolVerdict(
        "rows",
        "expired rows",
        f"{rows.expired:,}, {rows.unmarked:,} not marked" if rows.expired else "0",
        "warning" if rows.unmarked else "ok",
        "Rows past the time for which they hold, such as an offer that has ended. None of them is shown.",
        "any number, all marked",
        "A server that runs marks them, which keeps packs fast: does one run?" if rows.unmarked else None,
    )


def _repeated(repeated: Repeated) -> PoolVerdict:
    meaning = "Live rows that say what another live row says. An answer shows them once, but they cost tokens in packs."
    advice = "`esker reflect` condenses them; `esker forget ID` deletes a row and all that says the same."
    verdict = _few("repeated rows", len(repeated.ids), repeated.compared, MOST_REPEATED, meaning, advice)
    if not repeated.crowded:
        return verdict
    more = " There may be more: some rows have words in common with too many others to be compared with each."
    shown = f"{verdict.shown}; {repeated.crowded:,} not compared with all"
    return replace(verdict, shown=shown, meaning=meaning + more)


def _coverage(found: PoolEvaluation) -> PoolVerdict:
    messages = found.store.messages
    share = messages.covered / messages.messages if messages.messages else 1.0
    meaning = "How many messages an observer has read, so that their facts are rows. The others are found as passages."
    good = f"at least {GOOD_COVERAGE:.0%}, and none lost"
    status: VerdictStatus = "ok"
    advice = None
    shown = _of(messages.covered, messages.messages)
    if messages.messages:
        shown += f"; {messages.waiting:,} wait, {messages.lost:,} lost"
    if messages.lost:
        status = "wrong"
        advice = "Messages are marked as observed that no group covers: send the transcripts again (`esker ingest`)."
    elif share < GOOD_COVERAGE:
        status, advice = "warning", "`esker observe` has what waits observed."
    return PoolVerdict("rows", "coverage", shown, status, meaning, good, advice)


# Packs -------------------------------------------------------------------------------------------------------------


_FAULTS: Mapping[PackFault, str] = {
    "gone": "is gone",
    "superseded": "is superseded",
    "expired": "has expired",
    "elsewhere": "belongs to another project",
    "repeat": "says what a row before it says",
}


def _pack(pack: FreshPack) -> PoolVerdict:
    shown = (
        f"{_share(pack.precision)} of {counted(pack.rows, 'row')} right;"
        f" {pack.tokens:,} of {counted(pack.budget, 'token')}"
    )
    meaning = "What a new session would be shown: rows that are live, of its project, not expired, and said once."
    faults = set(pack.faults.values())
    status: VerdictStatus = "ok" if not faults else "warning" if faults == {"repeat"} else "wrong"
    named = "; ".join(f"a row that {words}" for fault, words in _FAULTS.items() if fault in faults)
    advice = f"In it: {named}. Which rows those are is in --json." if faults else None
    if pack.pins_left:
        status = "warning" if status == "ok" else status
        advice = f"{advice or ''} {counted(pack.pins_left, 'pinned row')} did not fit: pin fewer.".strip()
    name = f"pack of {pack.project or 'no project'}"
    return PoolVerdict("packs", name, shown, status, meaning, "all rows right, within its tokens", advice)


# Words -------------------------------------------------------------------------------------------------------------


def is_empty(found: PoolEvaluation) -> bool:
    """Tell whether a pool holds nothing at all."""
    return not found.store.rows.rows and not found.store.messages.messages


def _none(about: Subject, figure: str, count: int, meaning: str, advice: str) -> PoolVerdict:
    """Say of what there should be none how much there is."""
    status: VerdictStatus = "warning" if count else "ok"
    return PoolVerdict(about, figure, f"{count:,}", status, meaning, "none", advice if count else None)


def _few(figure: str, count: int, of: int, most: float, meaning: str, advice: str) -> PoolVerdict:
    """Say of which rows there should be few which share they are."""
    good = not of or count / of <= most
    status: VerdictStatus = "ok" if good else "warning"
    return PoolVerdict("rows", figure, _of(count, of), status, meaning, f"at most {most:.0%}", None if good else advice)


def _of(count: int, of: int) -> str:
    return f"{count:,} of {of:,} ({_share(count / of)})" if of else "none there yet"


def _share(value: float) -> str:
    return f"{value:.1%}".replace(".0%", "%")


def headline(said: Sequence[PoolVerdict]) -> str:
    """Return in one sentence how it stands."""
    of = Counter(verdict.status for verdict in said)
    parts = [f"{counted(of['wrong'], 'figure')} wrong"] if of["wrong"] else []
    parts += [f"{counted(of['warning'], 'figure')} to look at"] if of["warning"] else []
    parts += [f"{counted(of['unknown'], 'figure')} not measured"] if of["unknown"] else []
    return f"{' and '.join(parts)}." if parts else "All is as it should be."
