"""Tombstones of a pool and the key of their hashes."""

import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from psycopg.rows import args_row

from esker.server.core.conversation.records import Block
from esker.server.core.facts.tombstones import Digests, Tombstone
from esker.server.db.database import Connection
from esker.server.db.pipeline import Query, fetch
from esker.server.db.statements import Statements

SQL = Statements(Path(__file__).parent / "sql/tombstones.sql")


@dataclass(frozen=True, slots=True)
class HashedMessage:
    """A message with the hash of its content."""

    content_hash: bytes
    external_id: str
    text: str
    content: list[Block]


def of_pool() -> Query[Digests | None]:
    """Return the hashes of the pool; None if nothing was ever forgotten in it."""
    return Query(SQL["key"], {}, lambda rows: Digests.stored(*rows[0]) if rows else None)


@dataclass(frozen=True, slots=True)
class StoredText:
    """A memory by its id, or a note by that of its session, with the time when it was said."""

    id: str
    text: str
    said_at: datetime
    project: str | None


@dataclass(frozen=True, slots=True)
class StoredWords:
    """A message that still has its words."""

    session_id: str
    seq: int
    content_hash: bytes
    external_id: str
    sent_at: datetime
    text: str
    content: list[Block]
    left_out: bool


async def digests(connection: Connection) -> Digests | None:
    """Return the hashes of the pool; None if nothing was ever forgotten in it."""
    return await fetch(connection, of_pool())


async def ensure_digests(connection: Connection, words: Collection[str]) -> Digests:
    """Return the hashes of the pool, which now also find these words in texts."""
    row = await (await connection.execute(SQL["ensure_key"], {"key": secrets.token_bytes(32)})).fetchone()
    assert row is not None  # it was inserted or updated
    starts = Digests.stored(*row).starts_of(words)
    row = await (await connection.execute(SQL["add_starts"], {"starts": list(starts)})).fetchone()
    assert row is not None  # it is locked
    return Digests.stored(*row)


async def add(
    connection: Connection, receipt_id: str, new: Mapping[bytes, bool], *, blanks: bool, now: datetime
) -> None:
    """Add the tombstones of a receipt: hash → whether it holds only for what was said up to now."""
    values = {"receipt": receipt_id, "digests": list(new), "bounded": list(new.values()), "blanks": blanks, "now": now}
    await connection.execute(SQL["add"], values)


def among(asked: Collection[bytes]) -> Query[dict[bytes, Tombstone]]:
    """Return those of some hashes that are tombstones."""
    return Query(
        SQL["known"],
        {"digests": list(asked)},
        lambda rows: {bytes(digest): Tombstone(until, blanks) for digest, until, blanks in rows},
    )


async def known(connection: Connection, asked: Collection[bytes]) -> dict[bytes, Tombstone]:
    """Return those of some hashes that are tombstones."""
    return await fetch(connection, among(asked))


async def of_receipt(connection: Connection, receipt_id: str) -> set[bytes]:
    """Return the hashes of a receipt."""
    cursor = await connection.execute(SQL["of_receipt"], {"receipt": receipt_id})
    return {bytes(row[0]) for row in await cursor.fetchall()}


async def lift(connection: Connection, receipt_id: str) -> int:
    """Delete the tombstones of a receipt; return how many there were."""
    return (await connection.execute(SQL["lift"], {"receipt": receipt_id})).rowcount


async def hashed_messages(connection: Connection, said_in: Mapping[str, Collection[int]]) -> list[HashedMessage]:
    """Return messages (session id → seqs) that are not forgotten yet."""
    pairs = [(session_id, seq) for session_id, seqs in said_in.items() for seq in seqs]
    values = {"sessions": [session_id for session_id, _ in pairs], "seqs": [seq for _, seq in pairs]}
    async with connection.cursor(row_factory=args_row(HashedMessage)) as cursor:
        await cursor.execute(SQL["hashed_messages"], values)
        return await cursor.fetchall()


async def projects(connection: Connection) -> list[str]:
    """Return the projects of the pool's memories."""
    return [str(row[0]) for row in await (await connection.execute(SQL["projects"])).fetchall()]


async def all_message_hashes(connection: Connection) -> list[bytes]:
    """Return the hashes of the content of all messages."""
    return [bytes(row[0]) for row in await (await connection.execute(SQL["all_message_hashes"])).fetchall()]


async def stored_rows(connection: Connection, after: str, limit: int) -> list[StoredText]:
    """Return the next memories behind an id."""
    async with connection.cursor(row_factory=args_row(StoredText)) as cursor:
        await cursor.execute(SQL["stored_rows"], {"after": after, "limit": limit})
        return await cursor.fetchall()


async def stored_notes(connection: Connection) -> list[StoredText]:
    """Return the tasks, continuations and titles of all sessions and groups."""
    async with connection.cursor(row_factory=args_row(StoredText)) as cursor:
        await cursor.execute(SQL["stored_notes"])
        return await cursor.fetchall()


async def stored_messages(connection: Connection, after: tuple[str, int], limit: int) -> list[StoredWords]:
    """Return the next messages behind a session and a seq, without those that were forgotten."""
    async with connection.cursor(row_factory=args_row(StoredWords)) as cursor:
        values = {"after_session": after[0], "after_seq": after[1], "limit": limit}
        await cursor.execute(SQL["stored_messages"], values)
        return await cursor.fetchall()
