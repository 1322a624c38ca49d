"""A log of rows as a pool's file, which imports rows into a server as if an observer had written them.

Each row has a message of its own as its source. Ids are derived from the names of the case and the row: importing a log
again changes nothing.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from esker.server.core.json_input import JsonObject
from esker.server.core.pool.lines import FORMAT, TYPES, VERSION
from esker.server.core.records import Trust
from esker.server.core.text.tokens import estimate_tokens
from evals.scoring.gold import LogRow

SaidLine = tuple[str, str, Trust, str]
"""A message: its name, text, speaker and time."""

_CLIENT = "evals"
_SPOKEN_AS = {"user": "user", "assistant": "assistant", "tool": "tool", "external": "user"}


def an_id(kind: str, *names: str) -> str:
    """Return the id derived from these names."""
    return f"{kind}_{hashlib.sha256(chr(0).join(names).encode()).hexdigest()[:26]}"


@dataclass(frozen=True, slots=True)
class Log:
    """Rows of a case, whose name is their project."""

    case: str
    rows: Sequence[LogRow]

    def session(self, name: str) -> str:
        """Return the id of a sitting."""
        return an_id("ses", self.case, name)

    def row_ids(self) -> dict[str, str]:
        """Return the names of the rows by the ids that they have in a pool."""
        return {an_id("mem", self.case, row.id): row.id for row in self.rows}

    def file(self) -> bytes:
        """Return the pool's file."""
        sittings = [*self._sittings()]
        lines = [line for name, rows in sittings for line in self._session(name, rows)]
        lines += [self._memory(row, seq) for _, rows in sittings for seq, row in enumerate(rows, start=1)]
        return pool_file(lines, max(row.at for row in self.rows).isoformat())

    def _sittings(self) -> Iterator[tuple[str, list[LogRow]]]:
        rows = sorted(self.rows, key=lambda row: (row.session, row.at))
        return ((session, list(its)) for session, its in groupby(rows, key=lambda row: row.session))

    def _session(self, name: str, rows: Sequence[LogRow]) -> list[JsonObject]:
        said: list[SaidLine] = [(row.id, row.text, row.by, row.at.isoformat()) for row in rows]
        return session_lines(self.session(name), f"{self.case}/{name}", self.case, said)

    def _memory(self, row: LogRow, seq: int) -> JsonObject:
        session, at = self.session(row.session), row.at.isoformat()
        return memory_line(
            an_id("mem", self.case, row.id),
            row.text,
            at,
            priority=row.priority,
            category=row.category,
            trust=row.by,
            session_id=session,
            group_id=an_id("grp", session),
            project=self.case,
            source_seqs=[seq],
        )


def memory_line(row_id: str, text: str, at: str, **more: Any) -> JsonObject:
    """Return the line of a row, by default an observation. `at` is when it was said, written and used."""
    line: JsonObject = {"type": "memory", "id": row_id, "kind": "observation", "priority": "medium", "category": "fact"}
    line |= {"trust": "user", "content": text, "author": _CLIENT, "session_id": None, "group_id": None, "project": None}
    line |= {"tags": [], "source_seqs": [], "source_ids": [], "sources": [], "left_alone": False, "tentative": False}
    line |= {"said_at": at, "created_at": at, "last_used_at": at}
    line |= dict.fromkeys(("refers_from", "refers_to", "valid_until", "superseded_by", "superseded_at", "outdated_at"))
    return line | dict.fromkeys(("reflection_id", "external_id", "facet")) | more


def pool_file(lines: Sequence[JsonObject], now: str) -> bytes:
    """Return a pool's file of these lines, written at `now`."""
    counts = {kind: sum(line["type"] == kind for line in lines) for kind in TYPES}
    header = {"type": "header", "format": FORMAT, "version": VERSION, "pool": "evals", "exported_at": now}
    ends = {"type": "end", "counts": counts}
    return "".join(json.dumps(line) + "\n" for line in (header | {"counts": counts}, *lines, ends)).encode()


def session_lines(session: str, external_id: str, project: str | None, said: Sequence[SaidLine]) -> list[JsonObject]:
    """Return the lines of an observed session with these messages."""
    first, last = said[0][3], said[-1][3]
    opened: JsonObject = {
        "type": "session",
        "id": session,
        "client": _CLIENT,
        "external_id": external_id,
        "project": project,
    }
    opened |= {"cwd": None, "timezone": "UTC", "effective_context": 128_000, "events": [], "pack_version": 0}
    opened |= {"last_seq": len(said), "observed_seq": len(said), "last_received_at": last, "created_at": first}
    opened |= dict.fromkeys(("reflect_at_tokens", "current_task", "suggested_continuation", "thread_title", "pack"))
    messages = [_message(session, seq, *each) for seq, each in enumerate(said, start=1)]
    return [opened, *messages, _group(session, said)]


def _message(session: str, seq: int, name: str, text: str, by: Trust, at: str) -> JsonObject:
    tokens = max(1, estimate_tokens(text))
    line: JsonObject = {
        "type": "message",
        "session_id": session,
        "seq": seq,
        "external_id": name,
        "role": _SPOKEN_AS[by],
    }
    line |= {"trust": by, "sent_at": at, "received_at": at, "content": [{"type": "text", "text": text}], "text": text}
    line |= {"content_hash": hashlib.sha256(text.encode()).hexdigest(), "calls": {}, "left_out": False}
    return line | {"tokens": tokens, "shown_tokens": tokens}


def _group(session: str, said: Sequence[SaidLine]) -> JsonObject:
    line: JsonObject = {"type": "group", "id": an_id("grp", session), "session_id": session, "kind": "observations"}
    line |= {"first_seq": 1, "last_seq": len(said), "first_external_id": said[0][0], "last_external_id": said[-1][0]}
    line |= dict.fromkeys(("cwd", "current_task", "suggested_continuation", "thread_title"))
    line |= dict.fromkeys(("input_tokens", "output_tokens", "merged", "replaced"), 0)
    return line | {"observer": _CLIENT, "refused": {}, "created_at": said[-1][3]}
