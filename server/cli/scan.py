"""`esker scan`."""

from typing import Annotated

import typer
from rich.progress import Progress, TaskID

from esker.server.cli.database import settings_for, with_database
from esker.server.cli.output import AsJson, DataDir, note, print_json, progress, say, table
from esker.server.core.counts import counted
from esker.server.core.errors import NotFound
from esker.server.core.records import Principal
from esker.server.store import pools
from esker.server.usecases.authenticate import SCOPES
from esker.server.usecases.parts import Parts
from esker.server.usecases.scan import Finding, ScanReport
from esker.server.usecases.scan import scan as look_through

app = typer.Typer(add_completion=False)


@app.command()
def scan(
    mask: Annotated[bool, typer.Option("--mask", help="Mask what is found; without it, nothing changes.")] = False,
    pool: Annotated[str | None, typer.Option(help="One pool; by default all.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Look through everything that is stored for secrets, and mask them. The exit code is 1 if some are left."""
    settings = settings_for(data_dir)
    with progress(shown=not as_json) as shown:
        reports = with_database(settings, lambda parts: _scan_all(parts, pool, shown, mask=mask))
    if as_json:
        print_json(reports)
    else:
        _show(reports, mask=mask)
    if any(report.left for report in reports):
        raise typer.Exit(1)


async def _scan_all(parts: Parts, name: str | None, shown: Progress, *, mask: bool) -> list[ScanReport]:
    found = [pool for pool in await pools.listed(parts.database) if name in (None, pool.name)]
    if name is not None and not found:
        raise NotFound(f"There is no pool {name!r}.", hint="`esker pool list` lists them.")
    reports: list[ScanReport] = []
    for pool in found:
        task = shown.add_task(f"Pool {pool.name}", total=None)
        operator = Principal(pool.id, pool.name, "operator", frozenset(SCOPES))
        reports.append(await look_through(parts, operator, Counting(shown, task), mask=mask))
    return reports


class Counting:
    """Counts the texts that were looked at on the progress display."""

    def __init__(self, shown: Progress, task: TaskID) -> None:
        self._shown, self._task = shown, task

    def __call__(self, more: int) -> None:
        self._shown.advance(self._task, more)


def _show(reports: list[ScanReport], *, mask: bool) -> None:
    for report in reports:
        found = f"{counted(len(report.findings), 'text')} with secrets{_outcome(report, mask=mask)}"
        say(f"Pool {report.pool}: {counted(report.texts, 'text')}, {found}.")
        if report.findings:
            table(("column", "row", "secrets"), (_row(finding) for finding in report.findings))
    if not mask and any(report.findings for report in reports):
        note("Nothing was changed. `esker scan --mask` masks them.")


def _outcome(report: ScanReport, *, mask: bool) -> str:
    if not mask or not report.findings:
        return ""
    return f"; masked, {counted(len(report.left), 'text has', 'texts have')} some left" if report.left else "; masked"


def _row(finding: Finding) -> tuple[str, str, str]:
    kinds = ", ".join(f"{kind} ×{count}" if count > 1 else kind for kind, count in sorted(finding.kinds.items()))
    return f"{finding.table}.{finding.column}", " ".join(finding.row), kinds
