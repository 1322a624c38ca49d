"""Ingest messages: stored exactly once, in order of arrival, without waiting for a model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from esker.server.core.clock import in_zone
from esker.server.core.config.settings import Settings
from esker.server.core.conversation.blocks import content_hash, content_tokens, result_ids, tool_names
from esker.server.core.conversation.observer_text import message_text, observer_text, shown_tokens
from esker.server.core.conversation.records import Block, IdScope, IngestReport, NewMessage, Role
from esker.server.core.conversation.trust import message_trust
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.errors import InvalidInput, TooLarge
from esker.server.core.ids import GATEWAY_IDS, is_turn_id, is_uuid
from esker.server.core.json_input import Json, characters, text_characters
from esker.server.core.redaction import redact_content, redact_name
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, fetch, send
from esker.server.db.pipeline import known as answered
from esker.server.store import audit, jobs, messages, sessions, tombstones
from esker.server.store.messages import MessageToStore
from esker.server.usecases.cut_passages import cut_if_possible, send_uncut
from esker.server.usecases.kept_messages import is_kept, kept_contents
from esker.server.usecases.parts import Parts
from esker.server.usecases.tombstones import hash_messages, send_tombstones, without_forgotten


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message as a client sends it. A `sent_at` without an offset is local to the session; None means now.

    If its id is unique in all sessions of the client, a message that another session has is a copy and is not stored.
    """

    external_id: str
    role: Role
    content: Json
    sent_at: datetime | None = None
    id_scope: IdScope = "session"


@dataclass(frozen=True, slots=True)
class _PreparedMessage:
    """A valid and redacted message. `digest` differs from that of another message with the same external id."""

    incoming: IncomingMessage
    blocks: list[Block]
    digest: bytes


async def ingest(
    parts: Parts, pool_id: str, session_id: str, batch: Sequence[IncomingMessage], *, actor: str = "server"
) -> IngestReport:
    """Store the new messages of a batch, make them searchable, and schedule their observation.

    The batch is stored whole or not at all. A message whose external id is known is a duplicate and changes nothing; so
    is a copy in a fork (`id_scope`), and one that the gateway has kept.
    Raises NotFound for an unknown session, InvalidInput for content or a date that is not valid, and TooLarge for a
    message with too much text.
    """
    _refuse_long(batch, parts.settings.max_message_characters)
    now = parts.clock()
    long = sum(characters(message.content) for message in batch)
    prepared = await parts.processes.run(long, _prepare, batch)
    # The slow work is done before the session is locked, with its state so far.
    async with parts.database.moment_pipeline(pool_id) as connection:
        asked_session = await send(connection, sessions.by_id(session_id))
        stored_before = await _send_known(connection, session_id, prepared)
        earlier_calls = await _send_earlier_calls(connection, session_id, prepared)
        asked_digests = await send(connection, tombstones.of_pool())
    session = await asked_session
    fresh, conflicts = _sort_out(prepared, await stored_before.digests())
    if session.kept_by == "gateway":
        fresh = await _not_kept(parts, pool_id, session_id, fresh)
    if not fresh:
        # A batch may be sent again because the server crashed before its passages were written.
        await cut_if_possible(parts, pool_id, session_id)
        return IngestReport(0, len(batch), session.unobserved_tokens, conflicts)
    tools = _calls(prepared) | await earlier_calls
    stored = await parts.processes.run(long, _stored, fresh, tools, session.timezone, now)
    hashed = await hash_messages(parts, await asked_digests, session_id, stored)
    async with parts.database.tenant_pipeline(pool_id) as connection:
        if any(message.incoming.id_scope == "client" for message in prepared):
            # Another fork of the same conversation may be sending the same messages now.
            await messages.lock_copies(connection, session.client)
        locked = await send(connection, sessions.locked(session_id))
        stored_meanwhile = await _send_known(connection, session_id, prepared)
        buried = await send_tombstones(connection, hashed)
        session, known = await locked, await stored_meanwhile.digests()
        new = [message for message in stored if message.message.external_id not in known]
        new = await _without_known(
            connection, session_id, new, await without_forgotten(parts, connection, session_id, new, buried)
        )
        unobserved = session.unobserved_tokens + sum(message.tokens for message in new)
        if new:
            await messages.append(connection, session.id, session.last_seq, new, now)
            await sessions.extend(connection, session.id, new, now)
            due = observe_due(parts.settings, unobserved, now, now)
            await jobs.schedule(connection, "observe", session_id, due, now)
            await audit.insert(connection, actor, "session.write", session_id, {"messages": len(new)}, now)
        uncut = await send_uncut(connection, session_id)
    # The messages are stored, so the client must not send them again if they cannot be cut now.
    await cut_if_possible(parts, pool_id, session_id, uncut)
    _, conflicts = _sort_out(prepared, known)
    forgotten = sum(not message.content_hash for message in new)
    return IngestReport(len(new), len(batch) - len(new), unobserved, conflicts, forgotten)


async def _not_kept(
    parts: Parts, pool_id: str, session_id: str, fresh: Sequence[_PreparedMessage]
) -> list[_PreparedMessage]:
    """Return the messages of the gateway, and those of a transcript that the gateway has not kept."""
    if all(message.incoming.external_id.startswith(GATEWAY_IDS) for message in fresh):
        return [*fresh]
    kept = await kept_contents(parts, pool_id, session_id)
    return [
        message
        for message in fresh
        if message.incoming.external_id.startswith(GATEWAY_IDS) or not is_kept(message.blocks, kept)
    ]


async def _without_known(
    connection: Connection, session_id: str, before: Sequence[MessageToStore], buried: Sequence[MessageToStore]
) -> list[MessageToStore]:
    """Return the messages that are not stored under the other name of a forgotten id."""
    sent = {message.message.external_id for message in before}
    renamed = {name for message in buried if (name := message.message.external_id) not in sent}
    known = await fetch(connection, messages.hashes(session_id, renamed)) if renamed else {}
    return [message for message in buried if message.message.external_id not in known]


def _refuse_long(batch: Sequence[IncomingMessage], most: int) -> None:
    """Refuse a message with more text than any reader of it could use. Raises TooLarge."""
    for index, message in enumerate(batch):
        if (long := text_characters(message.content)) > most:
            raise TooLarge(
                f"messages[{index}] has {long:,} characters of text; the most is {most:,}. Nothing was stored.",
                hint="Shorten it, or raise ESKER_MAX_MESSAGE_CHARACTERS of the server.",
            )


def observe_due(settings: Settings, unobserved_tokens: int, last_received_at: datetime, now: datetime) -> datetime:
    """Return when to observe a session: now if it has enough unobserved tokens, else after it has been idle."""
    if unobserved_tokens >= settings.observe_tokens:
        return now
    return last_received_at + timedelta(seconds=settings.observe_idle_seconds)


def _prepare(batch: Sequence[IncomingMessage]) -> list[_PreparedMessage]:
    return [_prepare_one(index, incoming) for index, incoming in enumerate(batch)]


def _prepare_one(index: int, incoming: IncomingMessage) -> _PreparedMessage:
    try:
        blocks = as_blocks(redact_content(incoming.content))
    except InvalidInput as error:
        raise InvalidInput(f"messages[{index}]: {error}") from error
    if not is_turn_id(incoming.external_id):
        incoming = replace(incoming, external_id=redact_name(incoming.external_id))
    return _PreparedMessage(incoming, blocks, content_hash(incoming.role, blocks))


def _sort_out(
    prepared: Sequence[_PreparedMessage], known: Mapping[str, bytes]
) -> tuple[list[_PreparedMessage], list[str]]:
    """Return the new messages, and the external ids that were sent again with different content.

    A message whose words are forgotten has no content that another one could differ from.
    """
    seen = dict(known)
    fresh: list[_PreparedMessage] = []
    conflicts: dict[str, None] = {}
    for message in prepared:
        name = message.incoming.external_id
        if name not in seen:
            fresh.append(message)
        elif seen[name] not in (message.digest, messages.FORGOTTEN):
            conflicts[name] = None
        seen.setdefault(name, message.digest)
    return fresh, list(conflicts)


@dataclass(frozen=True, slots=True)
class _KnownMessages:
    """Queries under way for the messages of a batch that are stored, in the session or (`copies`) in others.

    `unique`: the digests of those whose id is unique in all sessions of the client, by external id.
    """

    own: Answer[dict[str, bytes]]
    copies: Answer[list[tuple[str, bytes]]]
    unique: Mapping[str, bytes]

    async def digests(self) -> dict[str, bytes]:
        """Return the digests of stored messages by external id.

        The id of a copy that is no UUID counts only with the same content, or if the content was forgotten there. A
        UUID with other content is a conflict, so that no message is left out in silence for another one.
        """
        copied = {
            name: self.unique[name] if digest == messages.FORGOTTEN else digest
            for name, digest in await self.copies
            if digest in (self.unique[name], messages.FORGOTTEN) or is_uuid(name)
        }
        return copied | await self.own


async def _send_known(connection: Connection, session_id: str, prepared: Sequence[_PreparedMessage]) -> _KnownMessages:
    names = {message.incoming.external_id for message in prepared}
    unique = {m.incoming.external_id: m.digest for m in prepared if m.incoming.id_scope == "client"}
    return _KnownMessages(
        await send(connection, messages.hashes(session_id, names)),
        await send(connection, messages.elsewhere(session_id, unique)) if unique else answered([]),
        unique,
    )


async def _send_earlier_calls(
    connection: Connection, session_id: str, batch: Sequence[_PreparedMessage]
) -> Answer[dict[str, str]]:
    """Ask for the tool names of the calls of earlier batches whose results are in this one, by call id."""
    earlier = {call for message in batch for call in result_ids(message.blocks)} - _calls(batch).keys()
    return await send(connection, messages.tool_names(session_id, earlier)) if earlier else answered({})


def _calls(batch: Sequence[_PreparedMessage]) -> dict[str, str]:
    """Return the tool name of each call in a batch, by call id."""
    return {call: name for message in batch for call, name in tool_names(message.blocks).items()}


def _stored(
    fresh: Sequence[_PreparedMessage], names: Mapping[str, str], timezone: str, now: datetime
) -> list[MessageToStore]:
    return [_message_to_store(message, names, timezone, now) for message in fresh]


def _message_to_store(
    message: _PreparedMessage, names: Mapping[str, str], timezone: str, now: datetime
) -> MessageToStore:
    incoming, blocks = message.incoming, message.blocks
    return MessageToStore(
        message=NewMessage(incoming.external_id, incoming.role, blocks, in_zone(incoming.sent_at or now, timezone)),
        content_hash=message.digest,
        calls=tool_names(blocks),
        trust=message_trust(incoming.role, blocks, names),
        text=message_text(incoming.role, blocks, names),
        tokens=content_tokens(blocks),
        shown_tokens=shown_tokens(observer_text(incoming.role, blocks, names), blocks),
    )
