"""The request bodies that open a session and report an event, with ids that make a repetition harmless."""

from typing import Any

from esker.server.agents.hook_input import HookEvent
from esker.server.agents.local_zone import local_zone


def open_body(client: str, session: str | None, cwd: str | None, project: str | None) -> dict[str, Any]:
    """Return the body that opens a session."""
    body = {"client": client, "external_id": session, "cwd": cwd, "project": project, "timezone": local_zone()}
    return {name: value for name, value in body.items() if value is not None}


def event_body(kind: str, mark: str | None) -> dict[str, str]:
    """Return the body of an event; `mark` is how far the session was, so that a repeated event has the same key."""
    return {"kind": kind} | ({"dedupe_key": f"{kind}:{mark}"} if mark else {})


def length_of(event: HookEvent) -> str | None:
    """Return the present length of the transcript in bytes, or if there is none the id of the turn."""
    try:
        return f"{event.transcript.stat().st_size}" if event.transcript else event.turn
    except OSError:
        return event.turn
