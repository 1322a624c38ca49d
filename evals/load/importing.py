"""A large import beside the agents: a pool's file of made-up sessions, and the command that imports it."""

import asyncio
import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from esker.server.core.child_command import child_command
from esker.server.core.errors import Unavailable
from evals.load.texts import message

_MEGABYTE = 2**20
_MESSAGES = 200
"""Messages of a session; half of them are followed by a fact about them."""
_BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)


def write_pool_file(path: Path, megabytes: int, seed: int) -> Path:
    """Write a pool's file of about `megabytes` megabytes: observed sessions and notes. The path is returned."""
    chance = random.Random(f"{seed} import")  # noqa: S311 - the same file each time
    counts: Counter[str] = Counter()
    lines: list[str] = []
    size = 0
    for number in range(10_000_000):
        for line in _session(chance, seed, number):
            counts[line["type"]] += 1
            lines.append(_text(line))
            size += len(lines[-1])
        if size > megabytes * _MEGABYTE:
            break
    at = _BEGAN.isoformat()
    header = {"type": "header", "format": "esker-pool", "version": 1, "pool": "load", "exported_at": at}
    order = ("session", "message", "group", "memory", "reflection")
    numbers = {name: counts[name] for name in order}
    # Memories come after all sessions.
    lines.sort(key=lambda line: line.startswith('{"type":"memory"'))
    with path.open("w", encoding="utf-8") as file:
        file.write(_text({**header, "counts": numbers}))
        file.writelines(lines)
        file.write(_text({"type": "end", "counts": numbers}))
    return path


async def import_file(path: Path, url: str) -> None:
    """Import the file as a user does, by `esker import jsonl`. Raises Unavailable with its words if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ESKER_")}
    command = child_command("esker", "import", "jsonl", str(path))
    importing = await asyncio.create_subprocess_exec(
        *command, env={**environment, "ESKER_URL": url}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, said = await importing.communicate()
    if importing.returncode:
        raise Unavailable(f"The import failed: {said.decode(errors='replace')[-500:]}")


def _session(chance: random.Random, seed: int, number: int) -> Iterator[dict[str, Any]]:
    session, began = f"ses_load{seed}x{number}", _BEGAN + timedelta(minutes=number)
    at = began.isoformat()
    yield {
        "type": "session", "id": session, "client": "api", "external_id": session, "project": f"load/{number % 7}",
        "cwd": None, "timezone": "UTC", "effective_context": 200_000, "last_seq": _MESSAGES, "observed_seq": _MESSAGES,
        "last_received_at": at, "reflect_at_tokens": None, "pack_version": 0, "current_task": None,
        "suggested_continuation": None, "thread_title": None, "created_at": at, "events": [], "pack": None,
    }  # fmt: skip
    texts = [message(chance) for _ in range(_MESSAGES)]
    for seq, text in enumerate(texts, start=1):
        role, trust = ("user", "user") if seq % 2 else ("assistant", "assistant")
        tokens = max(1, len(text) // 4)
        yield {
            "type": "message", "session_id": session, "seq": seq, "external_id": f"m{seq}", "role": role,
            "trust": trust, "sent_at": at, "received_at": at, "content": [{"type": "text", "text": text}],
            "content_hash": hashlib.sha256(text.encode()).hexdigest(), "calls": {}, "text": text, "tokens": tokens,
            "shown_tokens": tokens, "left_out": False,
        }  # fmt: skip
    group = f"grp_load{seed}x{number}"
    yield {
        "type": "group", "id": group, "session_id": session, "first_seq": 1, "last_seq": _MESSAGES,
        "first_external_id": "m1", "last_external_id": f"m{_MESSAGES}", "kind": "observations", "cwd": None,
        "observer": "extractive", "current_task": None, "suggested_continuation": None, "thread_title": None,
        "input_tokens": 0, "output_tokens": 0, "merged": 0, "replaced": 0, "refused": {}, "created_at": at,
    }  # fmt: skip
    for seq in range(1, _MESSAGES + 1, 2):
        yield {
            "type": "memory", "id": f"mem_load{seed}x{number}x{seq}", "kind": "observation", "priority": "medium",
            "category": "fact", "trust": "user", "content": f"{texts[seq - 1][:200]} ({number}-{seq})",
            "author": "extractive", "session_id": session, "group_id": group, "project": f"load/{number % 7}",
            "tags": [], "source_seqs": [seq], "source_ids": [], "said_at": at, "refers_from": None, "refers_to": None,
            "valid_until": None, "last_used_at": at, "superseded_by": None, "superseded_at": None, "outdated_at": None,
            "reflection_id": None, "external_id": None, "left_alone": False, "tentative": False, "facet": None,
            "created_at": at, "sources": [],
        }  # fmt: skip


def _text(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"
