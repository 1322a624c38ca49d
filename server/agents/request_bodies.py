"""What the server is told of a session, and by which names, so that it can be told twice."""

from typing import Any

from esker.server.agents.hook_input import HookEvent
from esker.server.agents.local_zone import local_zone


def open_body(client: str, session: str | None, cwd: str | None, project: str | None) -> dict[str, Any]:
    """Return what opens a session."""
    body = {"client": client, "external_id": session, "cwd": cwd, "project": project, "timezone": local_zone()}
    return {name: value for name, value in body.items() if value is not None}


def event_body(kind: str, mark: str | None) -> dict[str, str]:
    """Return what tells of an event. A client may tell of it twice, so it is named after how far the session was."""
    return {"kind": kind} | ({"dedupe_key": f"{kind}:{mark}"} if mark else {})


def length_of(asked: HookEvent) -> str | None:
    """Return how long the transcript is by now, in bytes, or else the name of the turn."""
    try:
        return f"{asked.transcript.stat().st_size}" if asked.transcript else asked.turn
    except OSError:
        return asked.turn
