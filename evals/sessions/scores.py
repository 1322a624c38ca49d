"""The figures of a labelled session, with a reason for each fact and row."""

from collections.abc import Iterable, Iterator, Sequence

from evals.reports import CaseResult
from evals.scoring.figures import ScoreFigure, figure
from evals.scoring.matching import KeptRow
from evals.sessions.judging import FactVerdict, RowVerdict, judge_facts, judge_rows
from evals.sessions.running import SessionRun
from evals.sessions.transcripts import LabelledSession

KEPT = "kept"
IN_PACK = "in pack"
USEFUL = "useful"
NO_JUNK = "no junk"
NOT_WRONG = "not wrong"
ALONE = "alone"
NO_MEDIUM_JUNK = "no medium junk"
MEDIUM_USEFUL = "medium useful"
PACK_USEFUL = "pack useful"
ONLY_ASKED, UNMATCHED, UNLABELLED, TOKENS = "only asked", "unmatched", "unlabelled", "tokens"


def scored_session(session: LabelledSession, run: SessionRun) -> CaseResult:
    """Return the scores of the rows of a session."""
    facts, rows = judge_facts(session.labels, run.rows), judge_rows(session.labels, run.rows)
    figures = {each.name: each for each in _figures(facts, rows)}
    amounts = {
        ONLY_ASKED: float(sum(verdict.fate == "only asked" for verdict in facts)),
        UNMATCHED: float(sum(verdict.worth == "unmatched" for verdict in rows)),
        UNLABELLED: float(sum(verdict.worth == "unlabelled" for verdict in rows)),
        TOKENS: float(sum(row.tokens for row in run.rows)),
        "seconds": run.seconds,
    }
    lines = [f"nothing was reflected: {run.rejected}"] if run.rejected else []
    lines += [*map(_fact_line, facts), *(line for verdict in rows for line in _row_lines(verdict))]
    left = [KeptRow(row.id, row.text, tuple(f"message {each}" for each in row.messages)) for row in run.rows]
    return CaseResult(session.labels, (session.transcript.client,), figures, amounts, lines, left)


def _figures(facts: Sequence[FactVerdict], rows: Sequence[RowVerdict]) -> Iterator[ScoreFigure]:
    yield figure(KEPT, (None if verdict.fate == "kept" else verdict.fact.fact for verdict in facts))
    yield figure(IN_PACK, (None if _is_in_pack(verdict) else verdict.fact.fact for verdict in facts))
    yield figure(USEFUL, (None if verdict.is_useful else verdict.row.text for verdict in rows))
    yield figure(NO_JUNK, (verdict.junk for verdict in rows))
    yield figure(NOT_WRONG, (verdict.wrong for verdict in rows))
    yield figure(ALONE, (verdict.not_alone for verdict in rows if verdict.row.priority != "low"))
    medium = [verdict for verdict in rows if verdict.row.priority == "medium"]
    yield figure(NO_MEDIUM_JUNK, (verdict.junk for verdict in medium))
    yield figure(MEDIUM_USEFUL, (None if verdict.is_useful else verdict.row.text for verdict in medium))
    shown = [verdict for verdict in rows if verdict.row.in_pack]
    yield ScoreFigure(PACK_USEFUL, _tokens(verdict for verdict in shown if verdict.is_useful), _tokens(shown))


def _is_in_pack(verdict: FactVerdict) -> bool:
    return verdict.fate == "kept" and any(row.in_pack for row in verdict.rows)


def _tokens(verdicts: Iterable[RowVerdict]) -> int:
    return sum(verdict.row.tokens for verdict in verdicts)


def _fact_line(verdict: FactVerdict) -> str:
    where = f" in {', '.join(row.id for row in verdict.rows)}" if verdict.rows else ""
    said_in = ", ".join(map(str, verdict.fact.messages))
    return f"{verdict.fate}{where}: {verdict.fact.fact} (said in {said_in})"


def _row_lines(verdict: RowVerdict) -> Iterator[str]:
    row = verdict.row
    place = f"{row.id} ({row.priority}{', in pack' if row.in_pack else ''})"
    if verdict.wrong:
        yield f"wrong: {place}: {row.text} ({verdict.wrong})"
    if verdict.junk:
        yield f"junk: {place}: {row.text} ({verdict.junk})"
    if verdict.not_alone:
        yield f"not alone: {place}: {row.text} ({verdict.not_alone})"
    if verdict.worth in ("unmatched", "unlabelled"):
        yield f"{verdict.worth}: {place}: {row.text}"
