"""Sending transcripts to the server in batches, with a report of the result."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from esker.server.agents.api import Api
from esker.server.agents.project import is_excluded
from esker.server.agents.request_bodies import open_body
from esker.server.agents.spool import Deliver, Parcel
from esker.server.agents.transcript import Transcript, TranscriptEntry
from esker.server.core.http_answers import ServerRefused
from esker.server.core.json_input import Json, text_characters
from esker.server.core.text.batching import by_size

_BATCH_MESSAGES = 500
_BATCH_BYTES = 8 * 1024 * 1024
# The server accepts bodies of 32 MiB. A message above this size, in bytes, is sent without its images.
_MESSAGE_BYTES = 16 * 1024 * 1024
# The server accepts ten million characters of text in a message. Long strings of a message above this are cut.
_MESSAGE_CHARACTERS = 8_000_000
# Statuses that mean that the messages themselves are refused.
_MESSAGE_STATUSES = (413, 422)
# Length to which a string of a message that is too large is cut.
_KEPT_CHARACTERS = 1_000_000


@dataclass(slots=True)
class SendReport:
    """The result of sending transcripts. `forgotten` of the accepted messages were stored without their words.

    `sessions`: number of observations before sending, by session id; `refused`: the server's reason by message id.
    """

    sessions: dict[str, int] = field(default_factory=dict[str, int])
    accepted: int = 0
    duplicates: int = 0
    conflicts: int = 0
    forgotten: int = 0
    refused: dict[str, str] = field(default_factory=dict[str, str])


def send(api: Api, transcript: Transcript, sent: SendReport, advance: Callable[[int], None]) -> None:
    """Send one session; add the result to `sent` and call `advance` with the size of each batch."""
    opened = open_body(transcript.client, transcript.external_id, transcript.cwd, transcript.project)
    session = api.post("/v1/sessions", opened)["id"]
    if session not in sent.sessions:
        sent.sessions[session] = api.get(f"/v1/sessions/{session}")["observations"]
    for batch in as_batches(transcript.entries):
        _send_batch(api, session, batch, sent)
        advance(len(batch))


def deliver(api: Api, parcel: Parcel) -> dict[str, str]:
    """Send a parcel; return the messages that the server refuses, with its reasons.

    A refused message does not prevent the others from being sent. Raises Unavailable, ServerRefused.
    """
    session = api.post("/v1/sessions", parcel["session"])["id"]
    sent = SendReport()
    if messages := parcel.get("messages"):
        _send_batch(api, session, messages, sent)
    if event := parcel.get("event"):
        api.post(f"/v1/sessions/{session}/events", event)
    return sent.refused


def deliver_allowed(exclude: Sequence[str]) -> Deliver:
    """Return a function that delivers parcels, and nothing of what was excluded after it was spooled."""

    def delivered(api: Api, parcel: Parcel) -> dict[str, str]:
        session = parcel["session"]
        if is_excluded(session.get("cwd"), session.get("project"), exclude):
            return {}
        return deliver(api, parcel)

    return delivered


def _send_batch(api: Api, session: str, batch: list[dict[str, Any]], sent: SendReport) -> None:
    try:
        report = api.post(f"/v1/sessions/{session}/messages", {"messages": batch})
    except ServerRefused as error:
        if error.status not in _MESSAGE_STATUSES:
            raise
        # Send the messages one by one, so that a refused one does not block the others.
        if len(batch) == 1:
            sent.refused[batch[0]["external_id"]] = str(error)
            return
        for message in batch:
            _send_batch(api, session, [message], sent)
        return
    sent.accepted += report["accepted"]
    sent.duplicates += report["duplicates"]
    sent.conflicts += len(report["conflicts"])
    sent.forgotten += report["forgotten"]


def as_batches(entries: Iterable[TranscriptEntry]) -> Iterator[list[dict[str, Any]]]:
    """Yield messages as the server accepts them, in batches of at most 500 messages and about 8 MiB."""
    return by_size(map(_message_body, entries), _BATCH_MESSAGES, _BATCH_BYTES)


def _message_body(entry: TranscriptEntry) -> tuple[dict[str, Any], int]:
    """Return a message for the server and its size in bytes."""
    message = {"external_id": entry.external_id, "role": entry.role, "content": entry.content}
    message |= {"sent_at": entry.sent_at.isoformat()} if entry.sent_at else {}
    message |= {"id_scope": "client"} if entry.unique else {}
    size = len(json.dumps(message))
    if size > _MESSAGE_BYTES or text_characters(entry.content) > _MESSAGE_CHARACTERS:
        message["content"] = _shortened(entry.content, with_images=size <= _MESSAGE_BYTES)
        size = len(json.dumps(message))
    return message, size


def _shortened(value: Json, *, with_images: bool) -> Json:
    """Return content that fits into a request: long strings are cut, with a note of what is missing."""
    match value:
        case {"type": "image"} if with_images:
            return value
        case str() if len(value) > _KEPT_CHARACTERS:
            return f"{value[:_KEPT_CHARACTERS]} … [{len(value) - _KEPT_CHARACTERS:,} more characters]"
        case list():
            return [_shortened(item, with_images=with_images) for item in value]
        case {"type": "image"}:
            return {"type": "text", "text": "[an image that was too large to send]"}
        case dict():
            return {key: _shortened(item, with_images=with_images) for key, item in value.items()}
        case _:
            return value
