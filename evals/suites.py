"""The common course of a suite over cases: a server under test, results, a judge if asked for, table and document."""

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from esker.server.core.counts import counted
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import JsonObject
from evals import judging
from evals.case_files import AnyCase, SomeCase, read_cases
from evals.gold_cases import GoldCase
from evals.judging import Judgement, Submission
from evals.options import SuiteOptions
from evals.output import progress, remark, write_json
from evals.recording import recorded
from evals.reports import CaseResult, document, show
from evals.scoring.matching import Judge
from evals.scoring.meaning import THRESHOLDS, Meaning
from evals.scoring.scored import RETENTION
from evals.serving import Server, connected, refuse_used_pool

ShowRun = Callable[[JsonObject, str], None]
"""Prints the table of a run's document under a title."""

MODEL = ("record", "replay", "url", "key", "json_file")
"""The options of a suite whose server may ask a model."""


def chosen(path: Path, model: type[SomeCase], only: Sequence[str] | None) -> list[SomeCase]:
    """Return the cases of a file, or those whose names begin with one of `only`. Raises InvalidInput for none."""
    cases = read_cases(path, model)
    for begin in only or ():
        if not any(case.case.startswith(begin) for case in cases):
            names = ", ".join(case.case for case in cases[:5])
            raise InvalidInput(
                f"{path.name} has no case whose name begins with {begin!r}.", hint=f"It has {len(cases)}: {names} …"
            )
    if not cases:
        raise InvalidInput(f"{path.name} has no case.")
    return [case for case in cases if not only or case.case.startswith(tuple(only))]


@dataclass(frozen=True, slots=True)
class UnderTest:
    """A server under test, with all that a suite needs beside it; `environ` says where the model is.

    `observer` and `reflector` are what the server reports: `extractive`, the name of a model, or `off`.
    """

    server: Server
    shown: Progress
    environ: Mapping[str, str]
    observer: str
    reflector: str
    options: SuiteOptions
    meaning: Meaning

    def by(self, case: AnyCase) -> Judge:
        """Return the judge of a case's facts."""
        return Judge(case.language, self.meaning)


@contextmanager
def under_test(options: SuiteOptions) -> Generator[UnderTest]:
    """Yield a new server with the roles of `options` on a database of its own, or the running one at its URL.

    Raises InvalidInput if a model is needed and none is configured, if a running server is to have other roles or its
    pool is not empty, or if a recording lacks an answer.
    """
    _check(options)
    roles = {"ESKER_OBSERVER": options.observer or "extractive", "ESKER_REFLECTOR": options.reflector or "extractive"}
    with (
        recorded(options.record, options.replay, os.environ) as (_, endpoint),
        progress() as shown,
        connected(options.url, options.key, **roles, **endpoint) as server,
    ):
        if options.url:
            refuse_used_pool(server)
        serving = server.get("/readyz")
        environ = {**os.environ, **endpoint}
        yield UnderTest(server, shown, environ, serving["observer"], serving["reflector"], options, Meaning())


def _check(options: SuiteOptions) -> None:
    roles = {"--observer": options.observer, "--reflector": options.reflector}
    if options.url and (given := [name for name, by in roles.items() if by]):
        raise InvalidInput(
            f"{' and '.join(given)} cannot be set with --url: the server at {options.url} has its roles already.",
            hint="Leave that out, and the run reports the roles of the server; or leave out --url.",
        )
    taping = options.record or options.replay
    if taping and options.url:
        raise InvalidInput("--record and --replay cannot be used with --url.", hint="Leave out --url.")
    # A judge is recorded even if the server asks no model.
    if taping and options.judge is None and "model" not in roles.values():
        raise InvalidInput("Without a model there is nothing to record or to replay.", hint="Add --reflector model.")


def run_suite(
    name: str,
    data: Path,
    options: SuiteOptions,
    measure: Callable[[UnderTest], Sequence[CaseResult]],
    shown_by: ShowRun = show,
) -> None:
    """Measure a server, and report the results; `data` is where the cases came from, `shown_by` prints the table."""
    with under_test(options) as at:
        results = measure(at)
        judged = _judged(at, results) if options.judge else None
    run = {"observer": at.observer, "reflector": at.reflector if options.reflecting else None, "thresholds": THRESHOLDS}
    title = f"{name} (observer {run['observer']}, reflector {run['reflector'] or 'off'})"
    report(name, title, results, run, data, options.json_file, judged, shown_by)


def _judged(at: UnderTest, results: Sequence[CaseResult]) -> Judgement:
    submissions = [
        Submission(one.case.case, one.case.log(), one.left) for one in results if isinstance(one.case, GoldCase)
    ]
    return judging.judge(at.options.judge or "", at.environ, submissions, at.shown)


def report(
    suite: str,
    title: str,
    results: Sequence[CaseResult],
    run: Mapping[str, Any],
    data: Path,
    json_file: Path | None,
    judged: Judgement | None = None,
    shown_by: ShowRun = show,
) -> None:
    """Print the table of a run and write its document, with the opinion of the judge beside the figures."""
    written = document(suite, results, run, data.name)
    shown_by(written, f"{title}: {counted(len(results), 'case')}")
    if judged:
        ours = {one.case.case: one.figures[RETENTION].share for one in results if RETENTION in one.figures}
        written["judge"] = judged.document(ours)
        judging.show(written["judge"])
    remark(f"{written['hardware']}. `python -m evals show RUN CASE` says why.")
    if json_file:
        write_json(json_file, written)
