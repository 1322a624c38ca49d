"""A database as OpenCode writes it."""

import json
import sqlite3
from pathlib import Path
from typing import Any

# As OpenCode 1.2 and later make it, with the columns that matter and some that do not.
SCHEMA = """
CREATE TABLE project (id TEXT PRIMARY KEY, worktree TEXT NOT NULL);
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL,
    directory TEXT NOT NULL, title TEXT NOT NULL, version TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, time_compacting INTEGER, time_archived INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE session_message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL);
CREATE TABLE todo (session_id TEXT NOT NULL, content TEXT NOT NULL);
"""
THEN = 1_772_442_000_000
"""When everything was written: 2026-03-02 09:00 in UTC, in milliseconds."""


class OpenCodeStore:
    """A database of OpenCode, and what it writes into it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA journal_mode = wal")
        self.connection.executescript(SCHEMA)

    def session(self, name: str, parent: str | None = None, begun: int = THEN) -> None:
        """Write a session."""
        row = (name, parent, name, begun, begun)
        self.connection.execute(
            "INSERT INTO session VALUES (?, 'p', ?, ?, '/work/shop', 't', '1.2.0', ?, ?, NULL, NULL)", row
        )
        self.connection.commit()

    def message(self, session: str, name: str, role: str, *parts: Any, touched: int = THEN, **data: Any) -> None:
        """Write a message and its parts; a part that is no object is written as it is."""
        whole = {"role": role, "time": {"created": THEN}, **data}
        row = (name, session, THEN, THEN, json.dumps(whole))
        self.connection.execute("INSERT INTO message VALUES (?, ?, ?, ?, ?)", row)
        for number, part in enumerate(parts):
            raw = part if isinstance(part, str | bytes) else json.dumps(part)
            row = (f"{name}.{number}", name, session, THEN, touched, raw)
            self.connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
        self.connection.commit()

    def beside(self) -> list[str]:
        """Return the names of the files in its folder."""
        return sorted(path.name for path in self.path.parent.iterdir())
