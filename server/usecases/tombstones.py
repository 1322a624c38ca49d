"""Keep forgotten texts from coming back: by an observer, a reflection, an import, a transcript or a spool."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from esker.server.core.conversation.records import Block
from esker.server.core.facts.forgetting import ForgetRequest
from esker.server.core.facts.tombstones import (
    EVERYWHERE,
    Digests,
    Tombstone,
    holding,
    is_one_of_its_kind,
)
from esker.server.core.json_input import Json, characters
from esker.server.core.records import Memory
from esker.server.core.text.phrases import Phrases, texts_in
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, send
from esker.server.db.pipeline import known as answered
from esker.server.store import projects, tombstones
from esker.server.store.messages import MessageToStore
from esker.server.store.tombstones import HashedMessage
from esker.server.usecases.parts import Parts
from esker.server.usecases.plan_forgetting import Doomed

FORGOTTEN: list[Block] = [{"type": "text", "text": "[forgotten]"}]
"""The content of a message that lost its words."""


@dataclass(frozen=True, slots=True)
class SaidText:
    """A row or a note with the time when it was said."""

    text: str
    said_at: datetime
    project: str | None
    record_id: str = ""


@dataclass(frozen=True, slots=True)
class HashedBatch:
    """Messages by external id with the hashes of all that they say."""

    digests: Digests
    hashes: Mapping[str, set[bytes]]


async def bury(
    parts: Parts, connection: Connection, request: ForgetRequest, doomed: Doomed, receipt_id: str, now: datetime
) -> Digests:
    """Add tombstones for what is being forgotten; return the hashes of the pool.

    Memories, words and messages such as "continue" may be said again: their tombstones hold only for texts said up to
    now. The same message of a client never comes back, nor does a message with a name that was forgotten.
    """
    named = bool(request.selection.ids or request.selection.words)
    digests = await tombstones.ensure_digests(connection, doomed.names)
    found = await tombstones.hashed_messages(connection, doomed.messages)
    ids = [*doomed.rows, *([request.selection.session_id] if request.selection.session_id and not named else [])]
    rows = list(doomed.rows.values())
    long = sum(len(row.content) for row in rows) + sum(
        len(one.text) + characters(list[Json](one.content)) for one in found
    )
    made = await parts.processes.run(
        long, _hashes_of_doomed, digests, ids, rows, named and request.echoes, request.selection.words, doomed.names
    )
    of_messages = await parts.processes.run(long, _hashes_of_messages, digests, found, doomed.phrases, named)
    blanks = request.with_messages or bool(doomed.own)
    new = dict.fromkeys(made, True) | of_messages
    await tombstones.add(connection, receipt_id, new, blanks=blanks, now=now)
    return digests


async def bury_places(
    connection: Connection, digests: Digests, places: Collection[str], receipt_id: str, now: datetime
) -> None:
    """Add tombstones for projects, directories and ids that have other names now, by which they go from now on."""
    new = {digests.of_place(place): False for place in places}
    await tombstones.add(connection, receipt_id, new, blanks=False, now=now)


def _hashes_of_doomed(
    digests: Digests,
    ids: Sequence[str],
    rows: Sequence[Memory],
    everywhere: bool,
    asked: Collection[str],
    names: Collection[str],
) -> set[bytes]:
    """Return the hashes of ids, of rows, in all projects or in their own, of words, and of the names in a fact."""
    made = {digests.of_id(record_id) for record_id in ids}
    for row in rows:
        made |= digests.of_row(row.content, EVERYWHERE if everywhere else row.project)
    made |= {digest for words in asked if (digest := digests.of_words(words))}
    return made | {digest for name in names if (digest := digests.of_words(name, "name"))}


def _hashes_of_messages(
    digests: Digests, found: Sequence[HashedMessage], phrases: Phrases, named: bool
) -> dict[bytes, bool]:
    """Return the hashes of messages: whether they hold only for what was said up to now."""
    hashes: dict[bytes, bool] = {}
    for one in found:
        telling = is_one_of_its_kind(one.text, one.content) or (
            named and (phrases.found_in(one.text) or phrases.found_in_json(list[Json](one.content)))
        )
        digest = digests.of_message(one.content_hash)
        hashes[digest] = hashes.get(digest, True) and not telling
        hashes[digests.of_sent(one.content_hash, one.external_id)] = False
    return hashes


async def are_forgotten(parts: Parts, connection: Connection, texts: Sequence[SaidText]) -> list[bool]:
    """Tell for each row or note whether it was forgotten."""
    digests = await tombstones.digests(connection)
    if digests is None or not texts:
        return [False] * len(texts)
    long = sum(len(one.text) for one in texts)
    former: dict[str, list[str]] = {}
    for name, present in (await projects.former_names(connection)).items():
        former.setdefault(present, []).append(name)
    made = await parts.processes.run(long, _hashes_of_texts, digests, texts, former)
    known = await tombstones.known(connection, {digest for each in made for digest in each})
    return [any(holding(each, known, one.said_at)) for each, one in zip(made, texts, strict=True)]


def _hashes_of_texts(
    digests: Digests, texts: Sequence[SaidText], former: Mapping[str, Sequence[str]]
) -> list[set[bytes]]:
    return [_hashes_of_text(digests, text, former) for text in texts]


def _hashes_of_text(digests: Digests, said: SaidText, former: Mapping[str, Sequence[str]]) -> set[bytes]:
    """Return the hashes by which a text may have been forgotten, also under the former names of its project."""
    project = said.project or ""
    own = digests.of_row_in(said.text, (project, EVERYWHERE, *former.get(project, ())))
    return own | {digests.of_id(said.record_id)} | digests.in_text(said.text)


async def hash_messages(
    parts: Parts, digests: Digests | None, session_id: str, batch: Sequence[MessageToStore]
) -> HashedBatch | None:
    """Return the hashes of messages, which is slow for long ones; None if nothing was ever forgotten."""
    return None if digests is None else HashedBatch(digests, await _hash(parts, digests, session_id, batch))


async def _hash(
    parts: Parts, digests: Digests, session_id: str, batch: Sequence[MessageToStore]
) -> dict[str, set[bytes]]:
    long = sum(len(one.text) + characters(list[Json](one.message.content)) for one in batch)
    return await parts.processes.run(long, _hashes_of_batch, digests, session_id, batch)


def _hashes_of_batch(digests: Digests, session_id: str, batch: Sequence[MessageToStore]) -> dict[str, set[bytes]]:
    return {message.message.external_id: _hashes_of(digests, session_id, message) for message in batch}


@dataclass(frozen=True, slots=True)
class BatchTombstones:
    """Queries under way for the tombstones of messages with these hashes, and for the hashes of the pool."""

    hashed: HashedBatch | None
    digests: Answer[Digests | None]
    known: Answer[dict[bytes, Tombstone]]


async def send_tombstones(connection: Connection, hashed: HashedBatch | None) -> BatchTombstones:
    """Ask for the tombstones of messages. Their hashes may have been made before their session was locked."""
    asked = {digest for each in hashed.hashes.values() for digest in each} if hashed else set[bytes]()
    return BatchTombstones(
        hashed,
        await send(connection, tombstones.of_pool()),
        await send(connection, tombstones.among(asked)) if asked else answered({}),
    )


async def without_forgotten(
    parts: Parts, connection: Connection, session_id: str, batch: Sequence[MessageToStore], found: BatchTombstones
) -> list[MessageToStore]:
    """Return messages as they are stored: forgotten ones without their words, or left out of passages."""
    digests, hashed = await found.digests, found.hashed
    if digests is None:
        return list(batch)
    if hashed is None or hashed.digests != digests:
        # Something was forgotten meanwhile.
        hashed = HashedBatch(digests, await _hash(parts, digests, session_id, batch))
        found = await send_tombstones(connection, hashed)
    known = await found.known
    return [
        _buried(
            _with_new_id(digests, message, known),
            _held_by(digests, message, hashed.hashes[message.message.external_id], known),
        )
        for message in batch
    ]


def _held_by(
    digests: Digests, message: MessageToStore, hashes: set[bytes], known: Mapping[bytes, Tombstone]
) -> list[Tombstone]:
    """Return the tombstones of what a message says; that of its id alone buries nothing."""
    said = hashes - {digests.of_place(message.message.external_id)}
    return list(holding(said, known, message.message.sent_at))


def _with_new_id(digests: Digests, message: MessageToStore, known: Mapping[bytes, Tombstone]) -> MessageToStore:
    """Return a message under the other name that its id has since it was forgotten."""
    given = message.message.external_id
    if digests.of_place(given) not in known:
        return message
    return replace(message, message=replace(message.message, external_id=digests.name_for(given)))


def _hashes_of(digests: Digests, session_id: str, message: MessageToStore) -> set[bytes]:
    said = message.message
    own = hashes_of_message(digests, session_id, message.content_hash, said.external_id, message.text, said.content)
    return own | {digests.of_place(said.external_id)}


def hashes_of_message(
    digests: Digests, session_id: str, content_hash: bytes, external_id: str, text: str, content: Sequence[Block]
) -> set[bytes]:
    """Return the hashes by which a message may have been forgotten: its session's, its own, and those of its words."""
    own = {digests.of_id(session_id)}
    if content_hash:
        own.add(digests.of_message(content_hash))
        own.add(digests.of_sent(content_hash, external_id))
    return own | digests.in_text("\n".join((text, *texts_in(list[Json](content)))))


def _buried(message: MessageToStore, found: Sequence[Tombstone]) -> MessageToStore:
    if not found:
        return message
    if not any(tombstone.blanks for tombstone in found):
        return replace(message, left_out=True)
    return replace(
        message,
        message=replace(message.message, content=FORGOTTEN),
        content_hash=b"",
        calls={},
        text="",
        shown_tokens=0,
        left_out=True,
    )
