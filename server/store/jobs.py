"""Jobs: at most one of a kind for a subject, run under a lease.

The subject of a job is a session. A job about the pool is the daily one, whose subject is empty, or one that somebody
asked for, whose subject tells one wish from another.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from esker.server.core.errors import EskerError, LeaseLost
from esker.server.core.json_input import Json
from esker.server.core.records import Job, JobKind, Lease
from esker.server.core.redaction import error_text
from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/jobs.sql")
WORK = Statements(Path(__file__).parent / "sql/work.sql")


POOL = ""
"""The subject of what is done about the pool every day."""
_ASKED = "asked:"


def asked_subject(wish: Mapping[str, Json]) -> str:
    """Return the subject of what somebody asked for about the pool: the same wish is the same job."""
    return _ASKED + hashlib.sha256(json.dumps(wish, sort_keys=True).encode()).hexdigest()[:16]


def job_name(kind: str, subject: str) -> str:
    """Return what a job is called in a log and a report."""
    about_pool = subject == POOL or subject.startswith(_ASKED)
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
    """Ask for a job now; messages up to `up_to_seq` are to be covered whatever the trigger says.

    `options` say how a job about the pool is to be done.
    """
    values = {"kind": kind, "subject": subject, "now": now, "up_to_seq": up_to_seq, "options": Jsonb(options or {})}
    await connection.execute(SQL["request"], values)
    await connection.execute(SQL["notify"])


async def schedule_first(
    connection: Connection, kind: JobKind, subject: str, run_after: datetime, now: datetime
) -> None:
    """Have a job run at `run_after`, unless there is one already that is not dead."""
    values = {"kind": kind, "subject": subject, "run_after": run_after, "now": now}
    await connection.execute(SQL["schedule_first"], values)


async def schedule(connection: Connection, kind: JobKind, subject: str, run_after: datetime, now: datetime) -> None:
    """Have a job run at `run_after`, unless it has a reason for its own time."""
    values = {"kind": kind, "subject": subject, "run_after": run_after, "now": now}
    await connection.execute(SQL["schedule"], values)
    if run_after <= now:
        await connection.execute(SQL["notify"])


async def schedule_unobserved(connection: Connection, tokens: int, idle: datetime, now: datetime) -> None:
    """Have sessions observed that have an unobserved tail and no job: with so many `tokens` now, else at `idle`."""
    await connection.execute(SQL["schedule_unobserved"], {"tokens": tokens, "idle": idle, "now": now})
    await connection.execute(SQL["notify"])


async def bury(connection: Connection, most: int, now: datetime) -> None:
    """Let those jobs be dead whose worker died for the `most`-th time."""
    await connection.execute(SQL["bury"], {"most": most, "now": now})


async def claim(connection: Connection, kinds: Sequence[JobKind], now: datetime, until: datetime) -> Lease | None:
    """Take one job that is due and hold it until `until`; None when there is none."""
    values = {"kinds": list(kinds), "now": now, "until": until}
    async with connection.cursor(row_factory=class_row(Lease)) as cursor:
        await cursor.execute(SQL["claim"], values)
        return await cursor.fetchone()


async def hold(connection: Connection, lease: Lease, until: datetime) -> int:
    """Prove a lease and lengthen it; return the seq up to which the job was asked for. Raises LeaseLost."""
    row = await (await connection.execute(SQL["hold"], {**_key(lease), "until": until})).fetchone()
    if row is None:
        raise LeaseLost
    return int(row[0])


async def attempts(connection: Connection, lease: Lease) -> int:
    """Return how often the job was begun since it last got on; 0 when the lease was lost."""
    row = await (await connection.execute(SQL["attempts"], _key(lease))).fetchone()
    return int(row[0]) if row else 0


async def progress(connection: Connection, lease: Lease) -> None:
    """Count a part of the job as done: failures before it count no more."""
    await connection.execute(SQL["progress"], _key(lease))


async def done(connection: Connection, lease: Lease, now: datetime) -> None:
    """End a job; one that was asked for while it ran runs once more. Raises LeaseLost."""
    if not (await connection.execute(SQL["done"], _key(lease))).rowcount:
        await rest(connection, lease, now)
        await connection.execute(SQL["notify"])


async def rest(connection: Connection, lease: Lease, run_after: datetime, *, if_asked: datetime | None = None) -> None:
    """End a job for now; what came meanwhile is due at `run_after`, or at `if_asked` where somebody asked for it.

    Raises LeaseLost.
    """
    values = {**_key(lease), "run_after": run_after, "if_asked": if_asked}
    if not (await connection.execute(SQL["rest"], values)).rowcount:
        raise LeaseLost


async def fail(connection: Connection, lease: Lease, error: EskerError, run_after: datetime, *, dead: bool) -> None:
    """Record a failure. Nothing happens when the lease was lost: the next holder has its own fortune."""
    await connection.execute(SQL["fail"], {**_failure(lease, error, run_after), "dead": dead})


async def put_off(connection: Connection, lease: Lease, error: EskerError, run_after: datetime) -> None:
    """Record a failure that says nothing about the job: it is no attempt, however often it comes."""
    await connection.execute(SQL["put_off"], _failure(lease, error, run_after))


async def release(connection: Connection, lease: Lease) -> None:
    """Give a job back untried."""
    await connection.execute(SQL["release"], _key(lease))


async def take_back(connection: Connection, kind: JobKind, subject: str) -> None:
    """Take a job from whoever runs it, so that it is done anew: what it has read holds no more."""
    values = {"kind": kind, "subject": subject}
    if (await connection.execute(SQL["take_back"], values)).rowcount:
        await connection.execute(SQL["notify"])


async def runs(connection: Connection, kind: JobKind, subject: str) -> bool:
    """Tell whether such a job runs now."""
    return any(job.kind == kind and job.state == "running" for job in await about(connection, subject))


async def about(connection: Connection, subject: str) -> list[Job]:
    """Return the jobs of one subject."""
    async with connection.cursor(row_factory=class_row(Job)) as cursor:
        await cursor.execute(SQL["about"], {"subject": subject})
        return await cursor.fetchall()


async def revive(connection: Connection, now: datetime) -> int:
    """Give dead jobs a new life; return how many."""
    revived = (await connection.execute(SQL["revive"], {"now": now})).rowcount
    if revived:
        await connection.execute(SQL["notify"])
    return revived


async def forget_errors(connection: Connection, session_ids: Collection[str]) -> None:
    """Take out what jobs about sessions failed with: an error may quote what is being forgotten."""
    await connection.execute(SQL["forget_errors"], {"sessions": list(session_ids)})


async def resume_paused(connection: Connection, now: datetime) -> None:
    """Let the jobs run that waited because the day's money was spent."""
    if (await connection.execute(SQL["resume_paused"], {"now": now})).rowcount:
        await connection.execute(SQL["notify"])


async def pools_with_work(database: Database, kinds: Sequence[JobKind], now: datetime) -> list[str]:
    """Return the pools that have a job of these kinds that can run, those that have waited longest first."""
    rows = await database.ask(WORK["pools_with_jobs"], {"kinds": list(kinds), "now": now})
    return [str(row["pool_id"]) for row in rows]


async def backlog(database: Database, now: datetime) -> dict[str, float]:
    """Return how much waits in all pools together and how well their transcripts are covered, by name."""
    [waiting], [covered] = await database.ask(WORK["backlog"], {"now": now}), await database.ask(WORK["coverage"])
    return {name: float(value) for name, value in {**waiting, **covered}.items()}


def _failure(lease: Lease, error: EskerError, run_after: datetime) -> dict[str, Any]:
    return {**_key(lease), "error": error_text(error), "error_kind": type(error).__name__, "run_after": run_after}


def _key(lease: Lease) -> dict[str, Any]:
    return {"kind": lease.kind, "subject": lease.subject, "token": lease.token}
