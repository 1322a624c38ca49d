"""Records for tests of pure code."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from esker.server.core.conversation.blocks import content_tokens, tool_names
from esker.server.core.conversation.observer_text import observer_text, shown_tokens
from esker.server.core.conversation.records import Group, Role, StoredMessage, StoredSession
from esker.server.core.conversation.trust import message_trust
from esker.server.core.conversation.valid_blocks import as_blocks
from esker.server.core.facts.records import TranscriptSlice
from esker.server.core.json_input import Json
from esker.server.core.pack.records import PackRow
from esker.server.core.recall.answer import Hit
from esker.server.core.records import Memory
from esker.server.core.text.tokens import estimate_tokens

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
_numbers = count(1)


def memory(content: str = "A fact.", **changes: Any) -> Memory:
    """Return a live note, changed as told."""
    values: dict[str, Any] = {
        "id": f"mem_{next(_numbers):06d}",
        "kind": "note",
        "priority": "medium",
        "category": "fact",
        "trust": "user",
        "content": content,
        "author": "test",
        "session_id": None,
        "group_id": None,
        "project": None,
        "tags": [],
        "source_seqs": [],
        "source_ids": [],
        "tokens": estimate_tokens(content),
        "said_at": NOON,
        "refers_from": None,
        "refers_to": None,
        "valid_until": None,
        "last_used_at": NOON,
        "superseded_by": None,
        "superseded_at": None,
        "reflection_id": None,
        "external_id": None,
        "tentative": False,
        "facet": None,
        "created_at": NOON,
    }
    return Memory(**(values | changes))


def pack_row(content: str = "A fact.", **changes: Any) -> PackRow:
    """Return a live note as a pack reads it, with the given fields changed."""
    values: dict[str, Any] = {
        "id": f"mem_{next(_numbers):06d}",
        "kind": "note",
        "priority": "medium",
        "category": "fact",
        "content": content,
        "group_id": None,
        "project": None,
        "tokens": estimate_tokens(content),
        "said_at": NOON,
        "last_used_at": NOON,
        "tentative": False,
        "trust": "user",
    }
    return PackRow(**(values | changes))


def own_row(content: str, minute: int, **changes: Any) -> PackRow:
    """Return an observation of the pack's own session, as a pack reads it, made some minutes after noon."""
    values: dict[str, Any] = {"kind": "observation", "group_id": "grp_1", "said_at": NOON + timedelta(minutes=minute)}
    return pack_row(content, **(values | changes))


def observation(content: str, seq: int = 1, **changes: Any) -> Memory:
    """Return an observation of message `seq`, said `seq` minutes after noon."""
    values: dict[str, Any] = {"kind": "observation", "group_id": "grp_1", "session_id": "ses_1", "source_seqs": [seq]}
    return memory(content, **(values | {"said_at": NOON + timedelta(minutes=seq)} | changes))


def session(**changes: Any) -> StoredSession:
    """Return a session, changed as told."""
    values: dict[str, Any] = {
        "id": "ses_1",
        "client": "api",
        "external_id": "s1",
        "project": None,
        "cwd": None,
        "timezone": "UTC",
        "effective_context": 200_000,
        "last_seq": 0,
        "observed_seq": 0,
        "total_tokens": 0,
        "unobserved_tokens": 0,
        "last_received_at": None,
        "reflect_at_tokens": None,
        "pack_version": 0,
        "current_task": None,
        "suggested_continuation": None,
        "thread_title": None,
        "created_at": NOON,
        "begun_at": NOON,
        "last_sent_at": None,
        "kept_by": "client",
    }
    return StoredSession(**(values | changes))


def group(group_id: str = "grp_1", **changes: Any) -> Group:
    """Return a group, changed as told."""
    values: dict[str, Any] = {
        "id": group_id,
        "first_seq": 1,
        "last_seq": 9,
        "first_external_id": "m1",
        "last_external_id": "m9",
        "kind": "observations",
        "cwd": None,
        "observer": "extractive",
        "created_at": NOON,
    }
    return Group(**(values | changes))


def message(seq: int, role: Role, content: Json, names: dict[str, str] | None = None) -> StoredMessage:
    """Return a message as it is stored, sent `seq` minutes after noon."""
    blocks = as_blocks(content)
    known = {**(names or {}), **tool_names(blocks)}
    text = observer_text(role, blocks, known)
    return StoredMessage(
        seq=seq,
        external_id=f"m{seq}",
        role=role,
        trust=message_trust(role, blocks, known),
        sent_at=NOON + timedelta(minutes=seq),
        content=blocks,
        text=text,
        tokens=content_tokens(blocks),
        shown_tokens=shown_tokens(text, blocks),
    )


def conversation(*turns: tuple[Role, Any], previous: tuple[str, ...] = ()) -> TranscriptSlice:
    """Return a slice of messages in this order."""
    names: dict[str, str] = {}
    messages: list[StoredMessage] = []
    for seq, (role, content) in enumerate(turns, start=1):
        names |= tool_names(as_blocks(content))
        messages.append(message(seq, role, content, names))
    return TranscriptSlice(session(), tuple(messages), tuple(observation(text) for text in previous))


def call(name: str, call_id: str = "t1", **arguments: Json) -> Json:
    """Return a tool_use block."""
    return [{"type": "tool_use", "id": call_id, "name": name, "input": dict(arguments)}]


def result(text: str, call_id: str = "t1", *, error: bool = False) -> Json:
    """Return a tool_result block."""
    return [{"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error}]


def hit(**changes: Any) -> Hit:
    """Return a note that recall found; `changes` replaces some of its fields."""
    values: dict[str, Any] = {
        "id": "mem_1",
        "tier": "memory",
        "content": "The port is 8080.",
        "kind": "note",
        "priority": "medium",
        "category": "fact",
        "trust": "user",
        "score": 0.9,
        "said_at": NOON,
        "age": "3 days ago",
        "valid_until": None,
        "project": None,
        "session_id": None,
        "tags": [],
        "tentative": False,
        "sources": [],
        "same": [],
        "passages": [],
        "superseded_by": None,
        "truncated": False,
        "parts": None,
    }
    return Hit(**values | changes)
