"""`esker jobs`: the jobs of a database, whether a server runs or not."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from esker.server.cli.database import settings_for, with_database
from esker.server.cli.output import AsJson, DataDir, WrongUsage, print_json, say, table
from esker.server.core.records import JobState
from esker.server.usecases import manage_jobs
from esker.server.usecases.manage_jobs import STATES, PoolJob

app = typer.Typer(add_completion=False)
jobs = typer.Typer(add_completion=False, no_args_is_help=True, help="Show jobs, run one again, or drop one.")
app.add_typer(jobs, name="jobs")

_LONGEST = 80
JobId = Annotated[str, typer.Argument(help="Its id, as `esker jobs list` shows it.", metavar="JOB")]
InPool = Annotated[str, typer.Option("--pool", help="The pool of the job.")]


@jobs.command("list")
def list_command(
    pool: Annotated[str | None, typer.Option(help="This pool alone.")] = None,
    state: Annotated[str | None, typer.Option(help="Those in this state: ready, running or dead.")] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """List jobs that wait, run or have failed for good (dead)."""
    states: list[JobState] = [known for known in STATES if state in (None, known)]
    if not states:
        raise WrongUsage(f"{state!r} is not a state of a job.", hint=f"The states are {', '.join(STATES)}.")
    found = with_database(settings_for(data_dir), lambda parts: manage_jobs.list_jobs(parts, pool, states))
    if as_json:
        print_json([_flat(one) for one in found])
    else:
        table(("pool", "job", "state", "due", "attempts", "last error"), map(_row, found))


@jobs.command("show")
def show_command(job: JobId, pool: InPool = "default", data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Show a job: when it is due, who holds it until when, and its last error."""
    found = with_database(settings_for(data_dir), lambda parts: manage_jobs.show_job(parts, pool, job))
    if as_json:
        print_json(_flat(found))
        return
    for name, value in _flat(found).items():
        if value not in (None, ""):
            say(f"{name.replace('_', ' ')}: {_when(value) if isinstance(value, datetime) else value}")


@jobs.command("retry")
def retry_command(job: JobId, pool: InPool = "default", data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Run a job now, as if it had never failed. `esker doctor --retry` does so for all dead jobs."""
    found = with_database(settings_for(data_dir), lambda parts: manage_jobs.retry_job(parts, pool, job))
    if as_json:
        print_json(_flat(found))
    else:
        say(f"{found.id} is due now; a running server begins it within seconds.")


@jobs.command("drop")
def drop_command(job: JobId, pool: InPool = "default", data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Delete a job and nothing else: messages stay unobserved until a new message creates another job."""
    found = with_database(settings_for(data_dir), lambda parts: manage_jobs.drop_job(parts, pool, job))
    if as_json:
        print_json(_flat(found))
        return
    running = " It was running; its result is discarded." if found.job.state == "running" else ""
    say(f"Dropped {found.id}.{running} Nothing else was deleted.")


def _flat(found: PoolJob) -> dict[str, Any]:
    return {"pool": found.pool, "id": found.id, **asdict(found.job)}


def _row(found: PoolJob) -> tuple[object, ...]:
    job = found.job
    error = job.last_error or ""
    shown = error if len(error) <= _LONGEST else f"{error[:_LONGEST]}…"
    return found.pool, found.id, job.state, _when(job.run_after), job.attempts, shown


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
