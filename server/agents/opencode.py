"""The sessions of OpenCode: a SQLite database, or the folders of JSON files of builds before 1.2.

Both contain sessions, their messages, and the parts of these, which are written one by one while the assistant works.
So each text, call and result is an entry of its own, under the id of its part, and a text that is still being written
waits for the next reading. A child session is a session of its own, in which the assistant gives the orders.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from esker.server.agents.content import Block, as_text, call_block, image_at, result_block, result_text, text_block
from esker.server.agents.database_file import reading
from esker.server.agents.lines import JsonLine, Opener, json_document
from esker.server.agents.reader_entries import UNKNOWN_SPEAKER, TranscriptBuilder, stem
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import ParsedTranscripts
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, as_object, parse_json

CLIENT = "opencode"

# A folder in the same storage: no path, and not longer than file systems allow.
_FOLDER = re.compile(r"[\w-][\w.-]{0,199}")
_TABLES = frozenset({"session", "message", "part"})
_DONE = ("completed", "success", "error")
_STILL_WRITTEN_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class _OpenCodePart:
    name: str
    data: JsonLine
    modified: float
    """Time of the last change, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class _OpenCodeMessage:
    name: str
    data: JsonLine
    parts: list[_OpenCodePart]


def read_transcript(path: Path, opener: Opener = opened_plain, session: str | None = None) -> ParsedTranscripts:
    """Read a database, a storage folder or the file of a session; with `session` only that session.

    These are never compressed, so `opener` is not used. Raises OSError when it cannot be opened.
    """
    builder = TranscriptBuilder(CLIENT, path)
    if path.is_dir():
        for file in session_files(path):
            _read_files(builder, file, session)
    elif path.suffix == ".json":
        _read_files(builder, path, session)
    else:
        _read_database(builder, path, session)
    return builder.build()


def recognises_file(path: Path) -> bool:
    """Return whether a file is a database of OpenCode, or the file of one of its sessions."""
    if path.suffix == ".json":
        return path.parent.parent.name == "session" and os.path.isdir(path.parent.parent.parent / "message")
    try:
        with reading(path) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except (OSError, sqlite3.Error):
        return False
    return {str(table["name"]) for table in tables} >= _TABLES


def session_files(storage: Path) -> list[Path]:
    """Return the files of the sessions in a storage folder."""
    return sorted((storage / "session").glob("*/*.json"))


# The database ---------------------------------------------------------------------------------------------------------


def _read_database(builder: TranscriptBuilder, path: Path, wanted: str | None) -> None:
    try:
        with reading(path) as database:
            builder.recognised = True
            sessions = [dict(row) for row in database.execute("SELECT * FROM session ORDER BY time_created, id")]
            for session in sessions:
                name = str(session["id"])
                if wanted in (None, name):
                    child = bool(session.get("parent_id"))
                    back = _parsed_object(builder, session["revert"]) if session.get("revert") else None
                    stored = _without_copies(builder, database, session, _stored_messages(builder, database, name))
                    messages = _without_undone(builder, stored, back)
                    _add_messages(builder, name, session.get("directory"), messages, child=child)
    except sqlite3.Error as error:
        raise OSError(0, f"the database cannot be read: {error}") from error


def _stored_messages(builder: TranscriptBuilder, database: sqlite3.Connection, session: str) -> list[_OpenCodeMessage]:
    parts: dict[str, list[_OpenCodePart]] = {}
    for row in database.execute("SELECT * FROM part WHERE session_id = ? ORDER BY id", (session,)):
        data = _parsed_object(builder, row["data"])
        if data is not None:
            modified = dict(row).get("time_updated")
            parts.setdefault(str(row["message_id"]), []).append(_OpenCodePart(str(row["id"]), data, _seconds(modified)))
    messages: list[_OpenCodeMessage] = []
    for row in database.execute("SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)):
        data = _parsed_object(builder, row["data"])
        if data is not None:
            data.setdefault("time", {"created": row["time_created"]})
            messages.append(_OpenCodeMessage(str(row["id"]), data, parts.get(str(row["id"]), [])))
    return messages


def _without_copies(
    builder: TranscriptBuilder, database: sqlite3.Connection, session: dict[str, Any], messages: list[_OpenCodeMessage]
) -> list[_OpenCodeMessage]:
    """Return the messages that no other session has. A fork repeats those of another one with their times.

    A repeated message is older than its session.
    """
    begun = float(session["time_created"] or 0)
    if not any(_created(message.data) < begun for message in messages):
        return messages
    others = "SELECT time_created FROM message WHERE session_id <> ? AND time_created < ?"
    known = {float(row["time_created"]) for row in database.execute(others, (session["id"], begun))}
    own = [message for message in messages if _created(message.data) >= begun or _created(message.data) not in known]
    builder.skip("message copied from another session", len(messages) - len(own))
    return own


def _parsed_object(builder: TranscriptBuilder, data: object) -> JsonLine | None:
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    try:
        value = parse_json(raw) if isinstance(raw, bytes) else None
    except InvalidInput:
        value = None
    if isinstance(value, dict):
        return value
    builder.skip("broken row")
    return None


# The files ------------------------------------------------------------------------------------------------------------


def _read_files(builder: TranscriptBuilder, path: Path, wanted: str | None) -> None:
    described = json_document(path, builder.left_out)
    if not isinstance(described, dict):
        return
    builder.recognised = True
    storage, name = path.parent.parent.parent, _folder_of(described, path)
    if wanted not in (None, name):
        return
    messages: list[_OpenCodeMessage] = []
    for file in sorted((storage / "message" / name).glob("*.json")):
        data = _read_object(builder, file)
        message = _folder_of(data, file)
        messages.append(_OpenCodeMessage(message, data, _read_parts(builder, storage, message)))
    messages.sort(key=lambda message: (_created(message.data), message.name))
    child = as_text(described.get("parentID")) is not None
    remaining = _without_undone(builder, messages, described.get("revert"))
    _add_messages(builder, name, described.get("directory"), remaining, child=child)


def _folder_of(described: JsonLine, path: Path) -> str:
    """Return the id in a file, which names a folder of other files; the name of the file if it cannot name one."""
    name = as_text(described.get("id")) or ""
    return name if _FOLDER.fullmatch(name) else stem(path)


def _read_parts(builder: TranscriptBuilder, storage: Path, message: str) -> list[_OpenCodePart]:
    """Return the parts of a message from its own folder, or in very early builds from the folder of all parts."""
    own = sorted((storage / "part" / message).glob("*.json"))
    parts: list[_OpenCodePart] = []
    for file in own or sorted((storage / "part").glob("*.json")):
        data = _read_object(builder, file)
        if data and data.get("messageID", message if own else None) == message:
            parts.append(_OpenCodePart(as_text(data.get("id")) or f"{message}/{stem(file)}", data, _modified(file)))
    return parts


def _read_object(builder: TranscriptBuilder, path: Path) -> JsonLine:
    try:
        return as_object(json_document(path, builder.left_out))
    except OSError:
        builder.skip("unreadable file")
        return {}


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


# Entries --------------------------------------------------------------------------------------------------------------


def _without_undone(
    builder: TranscriptBuilder, messages: list[_OpenCodeMessage], revert: Json
) -> list[_OpenCodeMessage]:
    """Return the messages that were not undone; `revert` names the first undone message, or its first undone part.

    OpenCode keeps undone messages until the next prompt, so that they can be restored.
    """
    first, part = as_text(as_object(revert).get("messageID")), as_text(as_object(revert).get("partID"))
    position = next((position for position, message in enumerate(messages) if message.name == first), None)
    if position is None:
        return messages
    builder.skip("message that was undone", len(messages) - position)
    begun = messages[position]
    if part not in (names := [each.name for each in begun.parts]):
        return messages[:position]
    return [*messages[:position], replace(begun, parts=begun.parts[: names.index(part)])]


def _add_messages(
    builder: TranscriptBuilder, session: str, directory: Json, messages: list[_OpenCodeMessage], *, child: bool
) -> None:
    builder.set_directory(session, directory)
    for message in messages:
        role = message.data.get("role")
        if role not in ("user", "assistant"):
            builder.skip(UNKNOWN_SPEAKER)
        elif _is_summary(message.data):
            builder.skip("compaction summary")
        elif not message.parts:
            builder.skip("API error" if message.data.get("error") else "message without content")
        else:
            last = message is messages[-1]
            speaker = "assistant" if child and role == "user" else str(role)
            for part in message.parts:
                if last and _is_being_written(message, part):
                    builder.skip("text that is still being written")
                    builder.unfinished = True
                else:
                    _add_part(builder, session, speaker, message, part)


def _add_part(
    builder: TranscriptBuilder, session: str, speaker: str, message: _OpenCodeMessage, part: _OpenCodePart
) -> None:
    if part.data.get("synthetic") is True or part.data.get("ignored") is True:
        builder.skip("synthetic part")
        return
    at = _created(message.data) or part.modified or None
    entries = [*_entries(speaker, part)]
    if not entries:
        builder.skip(f"{part.data.get('type')} part")
    for ending, role, block in entries:
        cwd = as_object(message.data.get("path")).get("cwd")
        builder.add(session, role, [block], name=part.name + ending, at=at, cwd=cwd)


def _entries(speaker: str, part: _OpenCodePart) -> Iterator[tuple[str, str, Block]]:
    """Yield the entries of a part: a suffix for its id, the role, and the block."""
    match part.data:
        case {"type": "text", "text": str(text)}:
            yield "", speaker, text_block(text)
        case {"type": "file", "mime": str(kind), "url": url} if kind.startswith("image/"):
            if image := image_at(url):
                yield "", speaker, image
        case {"type": "tool", "state": dict(state)}:
            call = as_text(part.data.get("callID")) or part.name
            if state.get("status") != "pending":  # its arguments are still being written
                yield "", "assistant", call_block(call, part.data.get("tool"), state.get("input"))
            if state.get("status") in _DONE:
                failed = state.get("status") == "error"
                shown = state.get("error") if failed else state.get("output")
                yield "/result", "user", result_block(call, result_text(shown), failed=failed)
        case _:
            pass


def _is_summary(message: JsonLine) -> bool:
    return message.get("summary") is True or "compaction" in (message.get("mode"), message.get("agent"))


def _is_being_written(message: _OpenCodeMessage, part: _OpenCodePart) -> bool:
    """Return whether a text is likely to grow: neither it nor its message is finished, and it was written just now."""
    if part.data.get("type") != "text" or message.data.get("role") != "assistant" or message.data.get("error"):
        return False
    begun = as_object(part.data.get("time"))
    finished = "completed" in as_object(message.data.get("time")) or "end" in begun
    return bool(begun) and not finished and time.time() - part.modified < _STILL_WRITTEN_SECONDS


def _created(message: JsonLine) -> float:
    """Return the time of a message in milliseconds since 1970, 0 if it has none."""
    created = as_object(message.get("time")).get("created")
    return float(created) if isinstance(created, int | float) else 0.0


def _seconds(milliseconds: object) -> float:
    return milliseconds / 1_000 if isinstance(milliseconds, int | float) else 0.0
