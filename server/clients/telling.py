"""What the server is told of a session, and by which names, so that it can be told twice."""

from pathlib import Path
from typing import Any

from server.clients.here import local_zone
from server.clients.hook_input import Told


def open_body(client: str, session: str | None, cwd: str | None, project: str | None) -> dict[str, Any]:
    """Return what opens a session."""
    body = {"client": client, "external_id": session, "cwd": cwd, "project": project, "timezone": local_zone()}
    return {name: value for name, value in body.items() if value is not None}


def event_body(asked: Told, kind: str, transcript: Path | None) -> dict[str, str]:
    """Return what tells of an event.

    A client may tell of it twice, so it is named after how long the transcript was by then, or else after the turn.
    """
    try:
        name = f"{kind}:{transcript.stat().st_size}" if transcript else asked.turn and f"{kind}:{asked.turn}"
    except OSError:
        name = None
    return {"kind": kind} | ({"dedupe_key": name} if name else {})
