"""Jobs: at most one per kind and subject, run under a lease.

The subject of a job is a session id. A job for the pool is the daily one, with an empty subject, or a requested one,
whose subject is a hash of the request.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg.rows import class_row, dict_row
from psycopg.types.json import Jsonb

from esker.server.core.errors import EskerError, LeaseLost
from esker.server.core.json_input import Json
from esker.server.core.records import Job, JobKind, JobState, Lease, ListedJob
from esker.server.core.redaction import error_text
from esker.server.core.reports import Measure
from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/jobs.sql")
WORK = Statements(Path(__file__).parent / "sql/work.sql")


POOL = ""
"""The subject of the daily job for the pool."""
_REQUESTED = "asked:"


def requested_subject(options: Mapping[str, Json]) -> str:
    """Return the subject of a requested job for the pool: the same options give the same job."""
    return _REQUESTED + hashlib.sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()[:16]


def job_name(kind: str, subject: str) -> str:
    """Return the name of a job for logs and reports."""
    about_pool = subject == POOL or subject.startswith(_REQUESTED)
    return f"{kind} of {'the pool' if about_pool else subject}"


async def request(
    connection: Connection,
    kind: JobKind,
    subject: str,
    now: datetime,
    *,
    up_to_seq: int = 0,
    options: Mapping[str, Json] | None = None,
) -> None:
    """Request a job now; it covers messages up to `up_to_seq` even below the trigger.

    `options` are those of a job for the pool.
    """
    values = {"kind": kind, "subject": subject, "now": now, "up_to_seq": up_to_seq, "options": Jsonb(options or {})}
    await connection.execute(SQL["request"], values)
    await connection.execute(SQL["notify"])


async def schedule_first(
    connection: Connection, kind: JobKind, subject: str, run_after: datetime, now: datetime
) -> None:
    """Schedule a job for `run_after`, unless one exists that is not dead."""
    values = {"kind": kind, "subject": subject, "run_after": run_after, "now": now}
    await connection.execute(SQL["schedule_first"], values)


async def schedule(connection: Connection, kind: JobKind, subject: str, run_after: datetime, now: datetime) -> None:
    """Schedule a job for `run_after`, unless it runs, was requested, or waits after a failure."""
    values = {"kind": kind, "subject": subject, "run_after": run_after, "now": now}
    await connection.execute(SQL["schedule"], values)
    if run_after <= now:
        await connection.execute(SQL["notify"])


async def schedule_unobserved(connection: Connection, tokens: int, idle: datetime, now: datetime) -> None:
    """Schedule a job for sessions with an unobserved tail and no job: from `tokens` on now, otherwise at `idle`."""
    await connection.execute(SQL["schedule_unobserved"], {"tokens": tokens, "idle": idle, "now": now})
    await connection.execute(SQL["notify"])


async def bury(connection: Connection, most: int, now: datetime) -> None:
    """Mark jobs dead whose worker has died `most` times."""
    await connection.execute(SQL["bury"], {"most": most, "now": now})


async def claim(
    connection: Connection, kinds: Sequence[JobKind], token: UUID, now: datetime, until: datetime
) -> Lease | None:
    """Claim one job that is due, with a lease until `until` that `token` proves; None if no job is due."""
    values = {"kinds": list(kinds), "token": token, "now": now, "until": until}
    async with connection.cursor(row_factory=class_row(Lease)) as cursor:
        await cursor.execute(SQL["claim"], values)
        return await cursor.fetchone()


async def hold(connection: Connection, lease: Lease, until: datetime) -> int:
    """Renew a lease; return the seq up to which the job was requested. Raises LeaseLost."""
    row = await (await connection.execute(SQL["hold"], {**_key(lease), "until": until})).fetchone()
    if row is None:
        raise LeaseLost
    return int(row[0])


async def renew(connection: Connection, lease: Lease, since: datetime, until: datetime) -> bool:
    """Renew the lease of a job that made progress since `since`; return whether it did. Raises LeaseLost."""
    row = await (await connection.execute(SQL["renew"], {**_key(lease), "since": since, "until": until})).fetchone()
    if row is None:
        raise LeaseLost
    return bool(row[0])


async def attempts(connection: Connection, lease: Lease) -> int:
    """Return how often the job was started since it last made progress; 0 if the lease was lost."""
    row = await (await connection.execute(SQL["attempts"], _key(lease))).fetchone()
    return int(row[0]) if row else 0


async def progress(connection: Connection, lease: Lease, now: datetime) -> None:
    """Record progress of the job: earlier failures no longer count."""
    await connection.execute(SQL["progress"], {**_key(lease), "now": now})


async def done(connection: Connection, lease: Lease, now: datetime) -> None:
    """End a job; if it was requested again while it ran, it runs once more. Raises LeaseLost."""
    if await (await connection.execute(SQL["done"], _key(lease))).fetchone() is None:
        await rest(connection, lease, now)
        await connection.execute(SQL["notify"])


async def rest(connection: Connection, lease: Lease, run_after: datetime, *, if_asked: datetime | None = None) -> None:
    """End a run of a job; the next is due at `run_after`, or at `if_asked` if it was requested meanwhile.

    Raises LeaseLost.
    """
    values = {**_key(lease), "run_after": run_after, "if_asked": if_asked}
    if await (await connection.execute(SQL["rest"], values)).fetchone() is None:
        raise LeaseLost


async def fail(connection: Connection, lease: Lease, error: EskerError, run_after: datetime, *, dead: bool) -> None:
    """Record a failure. Does nothing if the lease was lost: the job then belongs to another worker."""
    await connection.execute(SQL["fail"], {**_failure(lease, error, run_after), "dead": dead})


async def put_off(connection: Connection, lease: Lease, error: EskerError, run_after: datetime) -> None:
    """Record a failure that is not the job's fault: it never counts as an attempt."""
    await connection.execute(SQL["put_off"], _failure(lease, error, run_after))


async def release(connection: Connection, lease: Lease) -> None:
    """Release a job without counting an attempt."""
    await connection.execute(SQL["release"], _key(lease))


async def take_back(connection: Connection, kind: JobKind, subject: str) -> None:
    """Take a running job from its worker, so that it starts again: its input has changed."""
    values = {"kind": kind, "subject": subject}
    if (await connection.execute(SQL["take_back"], values)).rowcount:
        await connection.execute(SQL["notify"])


async def runs(connection: Connection, kind: JobKind, subject: str) -> bool:
    """Whether such a job runs now."""
    return any(job.kind == kind and job.state == "running" for job in await about(connection, subject))


async def about(connection: Connection, subject: str) -> list[Job]:
    """Return the jobs of one subject."""
    async with connection.cursor(row_factory=class_row(Job)) as cursor:
        await cursor.execute(SQL["about"], {"subject": subject})
        return await cursor.fetchall()


async def listed(connection: Connection, states: Sequence[JobState]) -> list[ListedJob]:
    """Return the jobs in some states, the longest waiting first."""
    async with connection.cursor(row_factory=class_row(ListedJob)) as cursor:
        await cursor.execute(SQL["listed"], {"states": list(states)})
        return await cursor.fetchall()


async def retry(connection: Connection, kind: JobKind, subject: str, now: datetime) -> bool:
    """Have a job run now, as if it had never failed; return False if it runs."""
    values = {"kind": kind, "subject": subject, "now": now}
    if not (await connection.execute(SQL["retry"], values)).rowcount:
        return False
    await connection.execute(SQL["notify"])
    return True


async def drop(connection: Connection, kind: JobKind, subject: str) -> None:
    """Delete a job; a worker that has it loses its lease."""
    await connection.execute(SQL["drop"], {"kind": kind, "subject": subject})


async def revive(connection: Connection, now: datetime) -> int:
    """Make dead jobs ready again; return how many."""
    revived = (await connection.execute(SQL["revive"], {"now": now})).rowcount
    if revived:
        await connection.execute(SQL["notify"])
    return revived


async def forget_errors(connection: Connection, session_ids: Collection[str]) -> None:
    """Delete the errors of jobs for these sessions: an error may quote text that is being forgotten."""
    await connection.execute(SQL["forget_errors"], {"sessions": list(session_ids)})


async def resume_paused(connection: Connection, now: datetime) -> None:
    """Let jobs run now that waited because the daily cap was reached."""
    if (await connection.execute(SQL["resume_paused"], {"now": now})).rowcount:
        await connection.execute(SQL["notify"])


async def bring_forward(connection: Connection, now: datetime) -> int:
    """Schedule anew the jobs that were created later than now; return how many."""
    count = (await connection.execute(SQL["bring_forward"], {"now": now})).rowcount
    if count:
        await connection.execute(SQL["notify"])
    return count


async def pools_with_work(database: Database, kinds: Sequence[JobKind], now: datetime) -> list[str]:
    """Return the pools with a job of these kinds that can run, the longest waiting first."""
    rows = await database.ask(WORK["pools_with_jobs"], {"kinds": list(kinds), "now": now})
    return [str(row["pool_id"]) for row in rows]


async def backlog(database: Database, now: datetime) -> dict[str, float]:
    """Return metrics of all pools together by name: waiting work, and the coverage of transcripts."""
    [waiting], [covered] = await database.ask(WORK["backlog"], {"now": now}), await database.ask(WORK["coverage"])
    return {name: float(value) for name, value in {**waiting, **covered}.items()}


async def operations(database: Database, now: datetime) -> list[Measure]:
    """Return what an operator watches in all pools together: jobs, leases, the age of due work, and spending."""
    return [Measure(**row) for row in await database.ask(WORK["operations"], {"now": now})]


async def pool_backlog(connection: Connection, now: datetime) -> dict[str, float]:
    """Return the metrics of this pool by name: waiting work, coverage, and how well indexes agree."""
    async with connection.cursor(row_factory=dict_row) as cursor:
        await cursor.execute(SQL["pool_backlog"], {"now": now})
        [found] = await cursor.fetchall()
    return {name: float(value) for name, value in found.items()}


def _failure(lease: Lease, error: EskerError, run_after: datetime) -> dict[str, Any]:
    return {**_key(lease), "error": error_text(error), "error_kind": type(error).__name__, "run_after": run_after}


def _key(lease: Lease) -> dict[str, Any]:
    return {"kind": lease.kind, "subject": lease.subject, "token": lease.token}
