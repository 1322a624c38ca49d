"""The Python client: one object for one pool of a server.

Written from `server/client/esker.py` by `.ci/write-sync-client`; do not edit.
"""

import os
from collections.abc import Generator, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx2
from pydantic import TypeAdapter

from esker.server.client.message import StoredPassage
from esker.server.client.sync.connection import SyncHttpConnection
from esker.server.client.sync.pool import SyncPool
from esker.server.client.sync.session import SyncSession
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.local_token import token_for
from esker.server.core.facts.forgetting import Receipt
from esker.server.core.recall.answer import Recalled
from esker.server.core.recall.expansion import Expansion
from esker.server.core.records import AskedTier, Category, Kind, Priority, Scope, SourcedMemory

_RECALLED = TypeAdapter(Recalled)
_EXPANSION = TypeAdapter(Expansion)
_MEMORY = TypeAdapter(SourcedMemory)
_MEMORIES = TypeAdapter(list[SourcedMemory])
_RECEIPT = TypeAdapter(Receipt)
_FOUND = TypeAdapter(SourcedMemory | StoredPassage)


class SyncEsker(SyncPool):
    """A pool of a server. `url` and `key` default to ESKER_URL and ESKER_KEY; the owner of a local server needs no key.

    Every method raises an EskerError that says what happened and, in its `hint`, what to do: Unavailable if the server
    does not answer, Unauthorized, NotFound, InvalidInput, Conflict.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        http: httpx2.Client | None = None,
    ) -> None:
        """`timeout` is in seconds; a request to a busy server is repeated up to `retries` times.

        `http` is an HTTP client to use instead of a new one, and stays open.
        """
        settings = ClientSettings.from_environment(os.environ)
        url = url or settings.url
        key = key or settings.key or token_for(url, os.environ)
        self._connection = SyncHttpConnection(url, key, timeout, retries, http)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def session(
        self,
        client: str,
        external_id: str,
        *,
        project: str | None = None,
        cwd: str | None = None,
        timezone: str | None = None,
        effective_context: int | None = None,
    ) -> SyncSession:
        """Find or create a session: the same client and external id always give the same one."""
        body = {"client": client, "external_id": external_id, "project": project, "cwd": cwd, "timezone": timezone}
        more = {"effective_context": effective_context}
        return SyncSession(self._connection, self._connection.post("/v1/sessions", _without_none(body | more)))

    def recall(
        self,
        query: str,
        *,
        limit: int = 8,
        scope: Scope | None = None,
        project: str | None = None,
        session_id: str | None = None,
        kinds: Sequence[Kind] | None = None,
        tags: Sequence[str] | None = None,
        min_priority: Priority = "low",
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        include_superseded: bool = False,
        tier: AskedTier = "both",
        max_tokens: int | None = None,
        timezone: str | None = None,
        without: Sequence[str] = (),
    ) -> Recalled:
        """Ask memory a question. If the answer has `abstained`, nothing in memory is about it.

        `without` are ids that the caller has already: neither they nor duplicates of them are among the hits.
        """
        body: dict[str, Any] = {"query": query, "limit": limit, "scope": scope, "project": project, "tier": tier}
        body |= {"session_id": session_id, "kinds": kinds, "tags": tags, "min_priority": min_priority}
        body |= {"since": since, "until": until, "as_of": as_of, "include_superseded": include_superseded}
        body |= {"max_tokens": max_tokens, "timezone": timezone, "without": list(without)}
        return _RECALLED.validate_python(self._connection.post("/v1/recall", _without_none(body)))

    def remember(
        self,
        content: str,
        *,
        project: str | None = None,
        priority: Priority = "medium",
        category: Category = "fact",
        tags: Sequence[str] = (),
        pinned: bool = False,
        session_id: str | None = None,
        external_id: str | None = None,
        said_at: datetime | None = None,
    ) -> SourcedMemory:
        """Write a memory; the same external id, or the same words in the same project, give the same memory."""
        row: dict[str, Any] = {"content": content, "project": project, "priority": priority, "category": category}
        row |= {"tags": list(tags), "kind": "manual" if pinned else "note", "external_id": external_id}
        row |= {"session_id": session_id}
        return _MEMORY.validate_python(self._connection.post("/v1/memories", _without_none(row | {"said_at": said_at})))

    def remember_all(self, contents: Sequence[str], *, project: str | None = None, pinned: bool = False) -> list[str]:
        """Write up to 1,000 memories, all or none, and return their ids in order."""
        row = _without_none({"project": project, "kind": "manual" if pinned else "note"})
        rows = [{"content": content, **row} for content in contents]
        return (self._connection.post("/v1/memories/batch", {"memories": rows}))["ids"]

    def get(self, memory_id: str) -> SourcedMemory | StoredPassage:
        """Return a memory, superseded or not, or a passage that recall has found. Raises NotFound."""
        return _FOUND.validate_python(self._connection.get(_path(memory_id)))

    def correct(
        self,
        memory_id: str,
        content: str | None = None,
        *,
        priority: Priority | None = None,
        category: Category | None = None,
        tags: Sequence[str] | None = None,
        external_id: str | None = None,
        pinned: bool | None = None,
    ) -> SourcedMemory:
        """Replace a memory with a corrected one, which has a new id. Raises Conflict if it is already superseded."""
        correction = {"content": content, "priority": priority, "category": category, "tags": tags}
        correction |= {"external_id": external_id, "pinned": pinned}
        return _MEMORY.validate_python(self._connection.patch(_path(memory_id), _without_none(correction)))

    def forget(self, memory_id: str, *, messages: bool = False, echoes: bool = True) -> Receipt:
        """Delete a memory and its duplicates; with `messages` also the words of its source messages.

        `echoes` includes memories and messages that only repeat it.
        """
        answer = self._connection.delete(_path(memory_id), messages=messages, echoes=echoes)
        return _RECEIPT.validate_python(answer)

    def expand(self, memory_id: str, *, around: int = 2, max_tokens: int = 10_000) -> Expansion:
        """Return the sources of a memory or a passage, and the messages around them."""
        found = self._connection.get(f"{_path(memory_id)}/sources", around=around, max_tokens=max_tokens)
        return _EXPANSION.validate_python(found)

    def memories(
        self,
        *,
        project: str | None = None,
        session_id: str | None = None,
        kinds: Sequence[Kind] | None = None,
        tags: Sequence[str] | None = None,
        min_priority: Priority = "low",
        since: datetime | None = None,
        until: datetime | None = None,
        as_of: datetime | None = None,
        include_superseded: bool = False,
    ) -> Generator[SourcedMemory]:
        """Yield memories, newest first; pages are fetched as needed."""
        body: dict[str, Any] = {"project": project, "session_id": session_id, "kind": kinds, "tag": tags}
        body |= {"min_priority": min_priority, "include_superseded": include_superseded}
        body |= _without_none({"since": since, "until": until, "as_of": as_of})
        before: str | None = None
        while True:
            page = self._connection.get("/v1/memories", **body, before=before, limit=500)
            for memory in _MEMORIES.validate_python(page["memories"]):
                yield memory
            before = page["next"]
            if before is None:
                return


def _path(memory_id: str) -> str:
    return f"/v1/memories/{quote(memory_id, safe='')}"


def _without_none(body: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None, as JSON values."""
    return {name: _plain(value) for name, value in body.items() if value is not None}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
