"""The Python client: a pool as a whole."""

import json
from collections.abc import AsyncGenerator, Mapping
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from esker.server.client.connection import HttpConnection
from esker.server.client.session_report import SessionState
from esker.server.core.facts.forgetting import ForgetPlan, Receipt
from esker.server.core.reports import PoolStatus, ProjectSummary

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]

_PLAN = TypeAdapter(ForgetPlan)
_PROJECTS = TypeAdapter(list[ProjectSummary])
_RECEIPT = TypeAdapter(Receipt)
_SESSIONS = TypeAdapter(list[SessionState])
_STATUS = TypeAdapter(PoolStatus)


class Pool:
    """The methods of `Esker` that are about a pool as a whole."""

    _connection: HttpConnection

    async def briefing(self, *, project: str | None = None, tokens: int | None = None) -> str:
        """Return the most important memories of a project, or of the pool, as text."""
        return (await self._connection.get("/v1/briefing", project=project, tokens=tokens))["text"]

    async def status(self) -> PoolStatus:
        """Return what the pool contains, and how much of it is not searchable yet."""
        return _STATUS.validate_python(await self._connection.get("/v1/status"))

    async def projects(self) -> list[ProjectSummary]:
        """Return the projects that have memories (at most 1,000), the most memories first."""
        answer = await self._connection.get("/v1/projects", limit=1_000)
        return _PROJECTS.validate_python(answer["projects"])

    async def sessions(
        self, *, external_id: str | None = None, project: str | None = None, unobserved: bool = False
    ) -> AsyncGenerator[SessionState]:
        """Yield sessions, the most recently begun first; pages are fetched as needed.

        `project` names the only project whose sessions are listed.
        """
        asked = {"external_id": external_id, "project": project, "unobserved": unobserved}
        before: str | None = None
        while True:
            page = await self._connection.get("/v1/sessions", **asked, before=before, limit=500)
            for session in _SESSIONS.validate_python(page["sessions"]):
                yield session
            before = page["next"]
            if before is None:
                return

    async def forget_matching(
        self,
        *words: str,
        session_id: str | None = None,
        project: str | None = None,
        client: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        messages: bool = True,
    ) -> Receipt:
        """Delete all that says one of some words within the limits; without words, everything within the limits.

        `messages` includes the words of messages; `source` is a trust, or the author of memories. `plan_forgetting`
        shows what would go.
        """
        limits = _limits(session_id, project, client, source, since, until)
        body = {"words": list(words), "messages": messages, **limits}
        return _RECEIPT.validate_python(await self._connection.post("/v1/forget", body))

    async def plan_forgetting(
        self,
        *words: str,
        session_id: str | None = None,
        project: str | None = None,
        client: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        messages: bool = True,
    ) -> ForgetPlan:
        """Return what `forget_matching` would delete; nothing is changed."""
        limits = _limits(session_id, project, client, source, since, until)
        body = {"words": list(words), "messages": messages, "dry_run": True, **limits}
        return _PLAN.validate_python(await self._connection.post("/v1/forget", body))

    async def export(self) -> AsyncGenerator[dict[str, Any]]:
        """Yield the lines of the pool's file; the last one has the `type` `end`, or else the file was cut off."""
        async for line in self._connection.lines("/v1/export"):
            yield json.loads(line)

    async def request(
        self, method: Method, path: str, *, query: Mapping[str, Any] | None = None, body: object = None
    ) -> Any:
        """Call any route, such as `/v1/spend`, and return its JSON, with the same retries and errors as methods."""
        return await self._connection.request(method, path, query or {}, body)


def _limits(
    session_id: str | None,
    project: str | None,
    client: str | None,
    source: str | None,
    since: datetime | None,
    until: datetime | None,
) -> dict[str, str]:
    """Return the limits that are given, as JSON values."""
    given = {"session_id": session_id, "project": project, "client": client, "source": source}
    times = {"since": since, "until": until}
    limits = {name: value for name, value in given.items() if value is not None}
    return limits | {name: value.isoformat() for name, value in times.items() if value is not None}
