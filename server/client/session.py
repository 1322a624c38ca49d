"""A session in the Python client: one conversation and its memory."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from pydantic import TypeAdapter

from esker.server.client.connection import HttpConnection
from esker.server.client.message import Message, StoredMessage
from esker.server.client.session_report import SessionMemoryReport
from esker.server.core.context.assembly import Context, ContextTokens
from esker.server.core.conversation.records import IngestReport
from esker.server.core.reports import ObserveReport

_REPORT = TypeAdapter(IngestReport)
_OBSERVED = TypeAdapter(ObserveReport)
_MEMORY = TypeAdapter(SessionMemoryReport)
_MESSAGES = TypeAdapter(list[StoredMessage])

Event = Literal["compaction_pending", "session_end", "turn_end", "evicted"]


class Session:
    """A session that is open on the server; `Esker.session` returns it."""

    def __init__(self, connection: HttpConnection, known: Mapping[str, Any]) -> None:
        self._connection = connection
        self.id: str = known["id"]
        """Esker's id of the session (ses_…)."""
        self.project: str | None = known["project"]
        self.timezone: str = known["timezone"]

    async def add(self, *messages: Message) -> IngestReport:
        """Store new messages, in order; they are observed later. Raises InvalidInput, Unavailable."""
        batch = [message.body for message in messages]
        return _REPORT.validate_python(await self._connection.post(self._path("messages"), {"messages": batch}))

    async def messages(self) -> AsyncGenerator[StoredMessage]:
        """Yield the stored messages, oldest first; pages are fetched as needed."""
        after: int | None = 0
        while after is not None:
            page = await self._connection.get(self._path("messages"), after=after, limit=500)
            for message in _MESSAGES.validate_python(page["messages"]):
                yield message
            after = page["next"]

    async def pack(self) -> str:
        """Return the context pack, a frozen text that goes before the messages."""
        return (await self._connection.get(self._path("pack")))["text"]

    async def context(
        self,
        system: str | Sequence[Mapping[str, Any]] | None = None,
        *,
        recall: str | bool | None = None,
        keep_last_messages: int | None = None,
        message_tokens: int | None = None,
    ) -> Context:
        """Return the next request to the Messages API: `system` and `messages`, with figures about them.

        `system` is the caller's own; `recall` is a question to memory, or True for the user's last message.
        """
        fields = {"system": system, "recall": recall, "keep_last_messages": keep_last_messages}
        fields["message_tokens"] = message_tokens
        body = {name: value for name, value in fields.items() if value is not None}
        found: dict[str, Any] = await self._connection.post(self._path("context"), body)
        found["tokens"] = ContextTokens(**found["tokens"])
        return Context(**found)

    async def usage(self, usage: Mapping[str, Any], *, model: str | None = None, request_id: str | None = None) -> None:
        """Report the usage of a model call, as the API returns it; the same `request_id` counts once."""
        body = {**usage, "model": model, "request_id": request_id}
        given = {name: value for name, value in body.items() if value is not None}
        await self._connection.post(self._path("usage"), given)

    async def event(self, kind: Event, *, once: str | None = None) -> None:
        """Report an event of the client's context; repeating it with the same key `once` changes nothing."""
        await self._connection.post(self._path("events"), {"kind": kind} | ({"dedupe_key": once} if once else {}))

    async def observe(self) -> ObserveReport:
        """Observe everything that the session contains by now, wait for it, and return the report.

        If it takes longer than a request may last, it continues in the background (`queued`); call again to wait on.
        """
        return _OBSERVED.validate_python(await self._connection.post(f"{self._path('observe')}?wait=true"))

    async def memory(self) -> SessionMemoryReport:
        """Return the state of the session's memory: counters, packs, groups, jobs, usage and savings."""
        return _MEMORY.validate_python(await self._connection.get(self._path("memory")))

    def _path(self, what: str) -> str:
        return f"/v1/sessions/{quote(self.id, safe='')}/{what}"
