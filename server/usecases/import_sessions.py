"""Import of sessions: the sessions of a pool's file, their messages in order, and the groups that cover those."""

from collections.abc import Mapping, Sequence

from esker.server.core.conversation.blocks import tool_names
from esker.server.core.conversation.records import NewMessage, StoredSession
from esker.server.core.conversation.trust import lowest_trust, message_trust
from esker.server.core.errors import Conflict, EskerError, InvalidInput
from esker.server.core.pool.lines import GroupLine, ImportBatch, MessageLine, SessionLine
from esker.server.db.database import Connection
from esker.server.store import messages, pool_import, sessions
from esker.server.store.messages import MessageToStore
from esker.server.store.pool_import import KnownMessage
from esker.server.usecases.cut_passages import restore_passages
from esker.server.usecases.parts import Parts
from esker.server.usecases.tombstones import SaidText, are_forgotten, send_tombstones, without_forgotten

_NO_NOTES = {"current_task": None, "suggested_continuation": None, "thread_title": None}
_SAME_SESSION_HINT = "Its client sent the same conversation to this pool. Import into a new pool."


async def import_sessions(parts: Parts, connection: Connection, batch: ImportBatch) -> tuple[int, int, int]:
    """Write the new sessions, messages and groups of a batch; return how many of each.

    Existing records stay as they are; an existing session gets the file's later messages. All these sessions are locked
    until the transaction ends. Raises Conflict, InvalidInput with the line number.
    """
    of_messages = {line.session_id for line in batch.messages.values()}
    of_groups = {line.session_id for line in batch.groups.values()}
    await sessions.lock_all(connection, {*of_messages, *of_groups, *(line.id for line in batch.sessions.values())})
    opened = await _open(parts, connection, batch.sessions)
    there = await sessions.several(connection, of_messages | of_groups)
    appended, reached = 0, {session.id: session.last_seq for session in there.values()}
    for session_id, lines in _by_session(batch.messages).items():
        session = _require(there, session_id, min(lines))
        new = await _unknown(connection, session, lines)
        await _append(parts, connection, session, new)
        appended += len(new)
        reached[session_id] += len(new)
    covered = await _cover(parts, connection, batch.groups, there, reached)
    return opened, appended, covered


def _by_session(lines: Mapping[int, MessageLine]) -> dict[str, dict[int, MessageLine]]:
    found: dict[str, dict[int, MessageLine]] = {}
    for number, line in lines.items():
        found.setdefault(line.session_id, {})[number] = line
    return found


def _require(there: Mapping[str, StoredSession], session_id: str, number: int) -> StoredSession:
    if session_id not in there:
        raise InvalidInput(f"Line {number}: the session {session_id} does not exist; its line must come first.")
    return there[session_id]


async def _open(parts: Parts, connection: Connection, lines: Mapping[int, SessionLine]) -> int:
    """Write new sessions and update existing ones; return the number of new ones."""
    if not lines:
        return 0
    known = await pool_import.known_sessions(connection, lines.values())
    by_id = {session.id: session for session in known}
    by_name = {(session.client, session.external_id): session for session in known}
    for number, line in lines.items():
        same_id, same_name = by_id.get(line.id), by_name.get((line.client, line.external_id))
        if same_name and same_name.id != line.id:
            raise Conflict(
                f"Line {number}: the session {line.external_id!r} of {line.client} is {same_name.id} in this pool"
                f" and {line.id} in the file.",
                hint=_SAME_SESSION_HINT,
            )
        if same_id and (same_id != same_name or same_id.created_at != line.created_at):
            raise Conflict(f"Line {number}: {line.id} is another session in this pool.")
    kept = await _sessions_without_forgotten(parts, connection, list(lines.values()))
    new = [line for line in kept if line.id not in by_id]
    await pool_import.insert_sessions(connection, new)
    await pool_import.catch_up(connection, [line for line in kept if line.id in by_id])
    return len(new)


async def _unknown(
    connection: Connection, session: StoredSession, lines: Mapping[int, MessageLine]
) -> list[MessageLine]:
    """Return the new messages of a session, which must continue it without a gap."""
    seqs, names = [line.seq for line in lines.values()], {line.external_id for line in lines.values()}
    known = await pool_import.known_messages(connection, session.id, min(seqs), max(seqs), names)
    by_seq = {message.seq: message for message in known}
    by_name = {message.external_id: message for message in known}
    new: list[MessageLine] = []
    for number, line in lines.items():
        if line.seq in by_seq or line.external_id in by_name:
            if not _is_same(line, by_seq.get(line.seq)):
                raise Conflict(
                    f"Line {number}: message {line.seq} ({line.external_id!r}) of {session.id} differs in this pool.",
                    hint="The session continued in this pool as well. Import into a new pool.",
                )
        elif line.seq != session.last_seq + len(new) + 1:
            raise InvalidInput(f"Line {number}: messages of {session.id} before {line.seq} are missing.")
        else:
            new.append(line)
            by_name[line.external_id] = KnownMessage(line.seq, line.external_id, b"")
    return new


def _is_same(line: MessageLine, there: KnownMessage | None) -> bool:
    """Return whether a message is the one of the file; it may have been forgotten on either side."""
    if there is None or there.external_id != line.external_id:
        return False
    return not there.content_hash or not line.content_hash or there.content_hash.hex() == line.content_hash


async def _append(parts: Parts, connection: Connection, session: StoredSession, new: list[MessageLine]) -> None:
    if new:
        received = max(line.received_at for line in new)
        found = await send_tombstones(connection, None)
        stored = await without_forgotten(parts, connection, session.id, [_to_store(line) for line in new], found)
        await messages.append(connection, session.id, session.last_seq, stored, received)
        await sessions.extend(connection, session.id, stored, received)
        marks = [(passage.first_seq, line.seq, passage.id) for line in new for passage in line.passages]
        spans = {(first_seq, last_seq): passage_id for first_seq, last_seq, passage_id in sorted(marks)}
        await restore_passages(parts, connection, session.id, spans)


def _to_store(line: MessageLine) -> MessageToStore:
    return MessageToStore(
        message=NewMessage(line.external_id, line.role, line.content, line.sent_at),
        content_hash=bytes.fromhex(line.content_hash),
        calls=tool_names(line.content),
        # A file cannot give a message more trust than its author has.
        trust=lowest_trust([line.trust, message_trust(line.role, line.content, {})]),
        text=line.text,
        tokens=line.tokens,
        shown_tokens=line.shown_tokens,
        received_at=line.received_at,
        left_out=line.left_out,
    )


async def _cover(
    parts: Parts,
    connection: Connection,
    lines: Mapping[int, GroupLine],
    there: Mapping[str, StoredSession],
    reached: Mapping[str, int],
) -> int:
    """Write new groups; return how many. Messages that they cover are not observed again."""
    known = await pool_import.known_groups(connection, [line.id for line in lines.values()])
    new: list[GroupLine] = []
    observed = {session.id: session.observed_seq for session in there.values()}
    for number, line in lines.items():
        session_id = _require(there, line.session_id, number).id
        if group := known.get(line.id):
            if (group.session_id, group.first_seq, group.last_seq) != (session_id, line.first_seq, line.last_seq):
                raise Conflict(f"Line {number}: {line.id} is another group in this pool.")
        elif line.first_seq != observed[session_id] + 1 or line.last_seq > reached[session_id]:
            raise _misplaced(line, number, observed[session_id], reached[session_id])
        else:
            new.append(line)
            observed[session_id] = line.last_seq
    if new:
        await pool_import.insert_groups(connection, await _without_forgotten_notes(parts, connection, new, there))
    return len(new)


async def _without_forgotten_notes(
    parts: Parts, connection: Connection, lines: Sequence[GroupLine], there: Mapping[str, StoredSession]
) -> list[GroupLine]:
    """Return groups without their notes where one of these was forgotten."""
    return [
        line.model_copy(update=_NO_NOTES) if is_gone else line
        for line, is_gone in zip(
            lines,
            await are_forgotten(
                parts,
                connection,
                [SaidText(_notes_of(line), line.created_at, there[line.session_id].project) for line in lines],
            ),
            strict=True,
        )
    ]


async def _sessions_without_forgotten(
    parts: Parts, connection: Connection, lines: Sequence[SessionLine]
) -> list[SessionLine]:
    """Return sessions without their notes where one of these says what was forgotten."""
    texts = [SaidText(_notes_of(line), line.created_at, line.project) for line in lines]
    gone = await are_forgotten(parts, connection, texts)
    return [line.model_copy(update=_NO_NOTES) if is_gone else line for line, is_gone in zip(lines, gone, strict=True)]


def _notes_of(line: GroupLine | SessionLine) -> str:
    return "\n".join(filter(None, (line.current_task, line.suggested_continuation, line.thread_title)))


def _misplaced(line: GroupLine, number: int, observed: int, last_seq: int) -> EskerError:
    """Return the error for a group that does not begin where the session's groups end, or ends after the session."""
    span = f"messages {line.first_seq} to {line.last_seq} of {line.session_id}"
    if line.first_seq <= observed:
        return Conflict(
            f"Line {number}: {span} are already observed in this pool, up to {observed}.",
            hint="The session continued in this pool as well. Import into a new pool.",
        )
    missing = f"{line.first_seq - 1} is not covered yet" if line.last_seq <= last_seq else "some of them are missing"
    return InvalidInput(f"Line {number}: a group covers {span}, but {missing}.")
