"""Open and read sessions. The same client and external id always give the same session."""

from dataclasses import dataclass
from datetime import datetime

from esker.server.core.clock import zone
from esker.server.core.conversation.records import KeptBy, StoredMessage, StoredSession
from esker.server.core.ids import new_id
from esker.server.core.page_cursor import PageCursor
from esker.server.core.records import Job
from esker.server.core.redaction import redact, redact_name
from esker.server.db.database import Connection
from esker.server.store import groups, jobs, messages, sessions
from esker.server.store.text_columns import kept_clients
from esker.server.usecases.find_projects import renamed_projects
from esker.server.usecases.forgotten_places import new_names
from esker.server.usecases.name_project import as_named, stored_name
from esker.server.usecases.parts import Parts


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A session as its client describes it; None keeps the stored value.

    `kept_by` says who sends its messages: the client, or the gateway that its requests pass through. The first request
    that opens a session decides.
    """

    client: str
    external_id: str
    project: str | None = None
    cwd: str | None = None
    timezone: str | None = None
    effective_context: int | None = None
    kept_by: KeptBy = "client"


async def open_session(parts: Parts, pool_id: str, asked: SessionRequest) -> StoredSession:
    """Find or create a session. Raises InvalidInput for an unknown time zone."""
    if asked.timezone is not None:
        zone(asked.timezone)
    async with parts.database.tenant(pool_id) as connection:
        return await open_in(connection, asked, parts.clock())


async def open_in(connection: Connection, asked: SessionRequest, now: datetime) -> StoredSession:
    """Find or create a session in a transaction. The time zone must be known."""
    named, project = as_named(asked.project), stored_name(asked.project)
    cwd = redact(asked.cwd) if asked.cwd else None
    external_id, client = redact_name(asked.external_id), redact_name(asked.client)
    # Clients may still send a name that was forgotten, perhaps in an older spelling.
    names = (named, project, cwd, external_id, client)
    renamed = await new_names(connection, dict.fromkeys(filter(None, names)))
    if client in renamed and client not in await kept_clients(connection):
        client = renamed[client]
    present = await renamed_projects(connection, filter(None, (named, project)), renamed)
    return await sessions.upsert(
        connection,
        session_id=new_id("ses", now),
        client=client,
        external_id=renamed.get(external_id, external_id),
        project=present.get(named) or present.get(project or "", project),
        cwd=renamed.get(cwd, cwd) if cwd else None,
        timezone=asked.timezone,
        effective_context=asked.effective_context,
        kept_by=asked.kept_by,
        now=now,
    )


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A session with the counts of its groups and observations, superseded ones included, and its jobs.

    `coverage` is the share (0 to 1) of its messages that are in a group. `lost` counts messages that are neither in a
    group nor waiting for one; it is always 0.
    """

    session: StoredSession
    groups: int
    observations: int
    coverage: float
    lost: int
    jobs: list[Job]


async def get_session(parts: Parts, pool_id: str, session_id: str) -> SessionReport:
    """Return a session with its counts and jobs. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        session = await sessions.get(connection, session_id)
        counted = await groups.count(connection, session_id)
        return SessionReport(
            session=session,
            groups=counted.groups,
            observations=counted.observations,
            coverage=counted.covered / session.last_seq if session.last_seq else 1.0,
            lost=session.observed_seq - counted.covered,
            jobs=await jobs.about(connection, session_id),
        )


async def list_sessions(
    parts: Parts,
    pool_id: str,
    *,
    external_id: str | None,
    project: str | None = None,
    unobserved: bool,
    unreflected: bool,
    before: PageCursor | None,
    limit: int,
) -> list[StoredSession]:
    """Return sessions, all or those of a project, the latest begun first, after the cursor `before`."""
    named = redact_name(external_id) if external_id else None
    async with parts.database.tenant(pool_id) as connection:
        renamed = await new_names(connection, {named: None}) if named else {}
        return await sessions.listed(
            connection,
            external_id=renamed.get(named, named) if named else None,
            project=(await renamed_projects(connection, [project])).get(project, project) if project else None,
            unobserved=unobserved,
            unreflected=unreflected,
            before=before,
            limit=limit,
        )


async def list_messages(parts: Parts, pool_id: str, session_id: str, *, after: int, limit: int) -> list[StoredMessage]:
    """Return messages of a session that follow seq `after`, in order. Raises NotFound."""
    async with parts.database.tenant(pool_id) as connection:
        await sessions.get(connection, session_id)
        return await messages.listed(connection, session_id, after, limit)
