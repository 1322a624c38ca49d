"""A log of rows as a part of a pool's file, which is how rows get into a server as an observer left them.

Each row was said in a message of its own, so that where it comes from can be looked up. Ids follow from the name of the
case and of the row: storing a log again changes nothing.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from evals.scoring.gold import Row
from server.core.pool_lines import FORMAT, TYPES, VERSION
from server.core.tokens import estimate_tokens

Json = dict[str, Any]

_CLIENT = "evals"
_SPOKEN_AS = {"user": "user", "assistant": "assistant", "tool": "tool", "external": "user"}


def an_id(kind: str, *names: str) -> str:
    """Return the id of a thing that has these names."""
    return f"{kind}_{hashlib.sha256(chr(0).join(names).encode()).hexdigest()[:26]}"


@dataclass(frozen=True, slots=True)
class Log:
    """Rows of a case, which is a project of its own."""

    case: str
    rows: Sequence[Row]
    context: int = field(default=128_000)

    def session(self, name: str) -> str:
        """Return the id of a sitting."""
        return an_id("ses", self.case, name)

    def row_ids(self) -> dict[str, str]:
        """Return the names of the rows by the ids that they have in a pool."""
        return {an_id("mem", self.case, row.id): row.id for row in self.rows}

    def file(self) -> bytes:
        """Return the pool's file."""
        lines = [line for session, rows in self._sittings() for line in self._session(session, rows)]
        lines += [self._memory(row, seq) for _, rows in self._sittings() for seq, row in enumerate(rows, start=1)]
        counts = {kind: sum(line["type"] == kind for line in lines) for kind in TYPES}
        now = max(row.at for row in self.rows).isoformat()
        header = {"type": "header", "format": FORMAT, "version": VERSION, "pool": "evals", "exported_at": now}
        ends = {"type": "end", "counts": counts}
        return "".join(json.dumps(line) + "\n" for line in (header | {"counts": counts}, *lines, ends)).encode()

    def _sittings(self) -> Iterator[tuple[str, list[Row]]]:
        rows = sorted(self.rows, key=lambda row: (row.session, row.at))
        return ((session, list(its)) for session, its in groupby(rows, key=lambda row: row.session))

    def _session(self, name: str, rows: Sequence[Row]) -> Iterator[Json]:
        session, last = self.session(name), rows[-1].at.isoformat()
        yield {
            "type": "session",
            "id": session,
            "client": _CLIENT,
            "external_id": f"{self.case}/{name}",
            "project": self.case,
            "cwd": None,
            "timezone": "UTC",
            "effective_context": self.context,
            "last_seq": len(rows),
            "observed_seq": len(rows),
            "last_received_at": last,
            "reflect_at_tokens": None,
            "pack_version": 0,
            **dict.fromkeys(("current_task", "suggested_continuation", "thread_title", "pack")),
            "created_at": rows[0].at.isoformat(),
            "events": [],
        }
        yield from (_message(session, seq, row) for seq, row in enumerate(rows, start=1))
        yield _group(session, rows)

    def _memory(self, row: Row, seq: int) -> Json:
        session, at = self.session(row.session), row.at.isoformat()
        nothing = (
            "refers_from refers_to valid_until superseded_by superseded_at outdated_at reflection_id external_id facet"
        )
        return {
            "type": "memory",
            "id": an_id("mem", self.case, row.id),
            "kind": "observation",
            "priority": row.priority,
            "category": row.category,
            "trust": row.by,
            "content": row.text,
            "author": _CLIENT,
            "session_id": session,
            "group_id": an_id("grp", session),
            "project": self.case,
            "tags": [],
            "source_seqs": [seq],
            "source_ids": [],
            "said_at": at,
            "created_at": at,
            "last_used_at": at,
            "left_alone": False,
            "tentative": False,
            "sources": [],
            **dict.fromkeys(nothing.split()),
        }


def _message(session: str, seq: int, row: Row) -> Json:
    at, tokens = row.at.isoformat(), max(1, estimate_tokens(row.text))
    return {
        "type": "message",
        "session_id": session,
        "seq": seq,
        "external_id": row.id,
        "role": _SPOKEN_AS[row.by],
        "trust": row.by,
        "sent_at": at,
        "received_at": at,
        "content": [{"type": "text", "text": row.text}],
        "content_hash": hashlib.sha256(row.text.encode()).hexdigest(),
        "calls": {},
        "text": row.text,
        "tokens": tokens,
        "shown_tokens": tokens,
        "left_out": False,
    }


def _group(session: str, rows: Sequence[Row]) -> Json:
    return {
        "type": "group",
        "id": an_id("grp", session),
        "session_id": session,
        "first_seq": 1,
        "last_seq": len(rows),
        "first_external_id": rows[0].id,
        "last_external_id": rows[-1].id,
        "kind": "observations",
        "cwd": None,
        "observer": _CLIENT,
        **dict.fromkeys(("current_task", "suggested_continuation", "thread_title")),
        **dict.fromkeys(("input_tokens", "output_tokens", "merged", "replaced"), 0),
        "refused": {},
        "created_at": rows[-1].at.isoformat(),
    }
