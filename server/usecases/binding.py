"""Bound keys: what one of a client or of a project may ask for; Postgres keeps the rows of other projects from it."""

from collections.abc import Iterable
from dataclasses import replace

from esker.server.core.conversation.records import StoredSession
from esker.server.core.errors import Forbidden
from esker.server.core.records import Principal
from esker.server.core.redaction import redact_name
from esker.server.store import sessions
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall_request import RecallRequest


def parts_for(parts: Parts, who: Principal | None) -> Parts:
    """Return the parts with which a caller's request is answered: for a key of a project, with a view of it alone."""
    if who is None or who.project is None:
        return parts
    return replace(parts, database=parts.database.of_project(who.project))


def bound_project(who: Principal, asked: str | None) -> str | None:
    """Return the project of a request: the one that is asked for, or that of the key.

    Raises Forbidden for a project other than that of the key.
    """
    if who.project is None:
        return asked
    if stored_name(asked) not in (None, who.project):
        raise Forbidden(
            f"This key is bound to the project {who.project!r}, and the request is about another one.",
            hint="Leave the project out, or use a key that is not bound to a project.",
        )
    return who.project


def check_client(who: Principal, client: str) -> None:
    """Raise Forbidden if a key is bound to another client."""
    if who.client is not None and redact_name(client) != who.client:
        raise Forbidden(
            f"This key is bound to the client {who.client!r}, and this session belongs to another one.",
            hint="Send it with a key of its client, or with one that is not bound to a client.",
        )


def check_sessions(who: Principal, found: Iterable[StoredSession]) -> None:
    """Raise Forbidden if a key may not write one of these sessions, which it can see."""
    for session in found:
        check_client(who, session.client)
        check_row(who, session.project)


def check_row(who: Principal, project: str | None) -> None:
    """Raise Forbidden if a key may not write a row of this project, which it can see."""
    if who.project is not None and project != who.project:
        raise Forbidden(
            f"This key is bound to the project {who.project!r}, so it can read what belongs to no project but not"
            " change it.",
            hint="Use a key that is not bound to a project.",
        )


async def check_session(parts: Parts, who: Principal, session_id: str) -> None:
    """Raise Forbidden if a bound key may not write a session, and NotFound if it does not see it."""
    if who.client is None and who.project is None:
        return
    async with parts.database.tenant(who.pool_id) as connection:
        check_sessions(who, [await sessions.get(connection, session_id)])


async def check_pack(parts: Parts, who: Principal, session_id: str) -> None:
    """Raise as `check_session` does, for a key of a project: a pack of a session without one shows all projects."""
    await check_session(parts, replace(who, client=None), session_id)


def bound_recall(who: Principal, asked: RecallRequest) -> RecallRequest:
    """Return a question with the project of the key, to which its widest scope is narrowed. Raises Forbidden."""
    if who.project is None:
        return asked
    scope = "session" if asked.scope == "session" else "project"
    return replace(asked, project=bound_project(who, asked.project), scope=scope)
