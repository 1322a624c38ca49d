"""The sender of a request, from its headers and body: each client names itself in its own way."""

import json
import re
from collections.abc import Mapping, Sequence

from esker.server.agents.project import repository_path
from esker.server.core.json_input import JsonObject, as_object, clean_text
from esker.server.gateway.records import Caller

# How the name of a program (User-Agent) begins, and the client that it is.
_PROGRAMS = (
    ("claude-cli/", "claude-code"),
    ("codex", "codex"),
    ("opencode/", "opencode"),
    ("pi/", "pi"),
    ("geminicli", "gemini-cli"),
    ("copilot", "copilot"),
)
_ALWAYS_WITH_TOOLS = frozenset(client for _, client in _PROGRAMS)
_SESSION_HEADERS = ("x-esker-session", "x-claude-code-session-id", "session-id", "session_id", "x-session-id")
# The longest names that the REST API accepts, in characters.
_MOST_OF_CLIENT = 64
_MOST_OF_NAME = 512
_MOST_OF_DIRECTORY = 4_096
_OLD_USER_ID = re.compile(r"_session_([0-9a-f-]{36})$")
_DIRECTORY = re.compile(
    r"(?:^|\n)\s*(?:- |# )?(?:Primary working directory|Working directory|Current working directory|cwd):\s*(/[^\n]+)"
    r"|<cwd>\s*(/[^<\n]+?)\s*</cwd>"
    r"|Workspace Directories:\*\*\n\s*- (/[^\n]+)",
    re.IGNORECASE,
)
# Each match has one of these words.
_DIRECTORY_WORDS = ("working directory:", "cwd", "workspace directories:")


def caller_of(headers: Mapping[str, str], document: JsonObject, instructions: Sequence[str]) -> Caller:
    """Return who sent a request. Headers `x-esker-…` say more than what the client says by itself."""
    program = headers.get("user-agent", "").lower()
    client = next((client for start, client in _PROGRAMS if program.startswith(start)), "api")
    turn = _codex_turn(headers)
    return Caller(
        client=headers.get("x-esker-client") or client,
        session=_session(headers, document),
        cwd=headers.get("x-esker-cwd") or _directory(instructions),
        project=headers.get("x-esker-project") or _remote_of(turn),
        agent=_agent(headers, turn),
    )


def check_names(caller: Caller) -> None:
    """Raise ValueError if a name of a sender is blank, longer than the REST API accepts, or cannot be stored."""
    for name, most in (
        (caller.client, _MOST_OF_CLIENT),
        (caller.session_name, _MOST_OF_NAME),
        (caller.project, _MOST_OF_NAME),
        (caller.cwd, _MOST_OF_DIRECTORY),
    ):
        if name is not None and (not name.strip() or len(name) > most or clean_text(name) != name):
            raise ValueError(f"{name[:40]!r} is blank, too long, or has characters that cannot be stored.")


def is_aside(caller: Caller, offers_tools: bool) -> bool:
    """Return whether a request is no part of the conversation: a title, a summary, a routing question.

    The agent CLIs offer tools in every turn of a conversation.
    """
    return not offers_tools and caller.client in _ALWAYS_WITH_TOOLS


def _session(headers: Mapping[str, str], document: JsonObject) -> str | None:
    named = next((value for name in _SESSION_HEADERS if (value := headers.get(name))), None)
    if named:
        return named
    user = as_object(document.get("metadata")).get("user_id")
    if isinstance(user, str):
        if old := _OLD_USER_ID.search(user):
            return old.group(1)
        try:
            session = as_object(json.loads(user)).get("session_id")
        except (ValueError, RecursionError):
            session = None
        if isinstance(session, str) and session:
            return session
    key = document.get("prompt_cache_key")
    return key if isinstance(key, str) and key and headers.get("user-agent", "").startswith("codex") else None


def _directory(instructions: Sequence[str]) -> str | None:
    for text in instructions:
        start = _directory_line(text)
        if start is not None and (found := _DIRECTORY.search(text, start)):
            return next(filter(None, found.groups())).strip()
    return None


def _directory_line(text: str) -> int | None:
    """Return where the line begins from which on a directory may be named; None if there is none.

    The pattern alone takes a millisecond for the instructions of an agent.
    """
    lowered = text.lower()
    places = [place for word in _DIRECTORY_WORDS if (place := lowered.find(word)) >= 0]
    if not places:
        return None
    return max(0, text.rfind("\n", 0, min(places))) if len(lowered) == len(text) else 0


def _codex_turn(headers: Mapping[str, str]) -> JsonObject:
    try:
        return as_object(json.loads(headers.get("x-codex-turn-metadata", "{}")))
    except (ValueError, RecursionError):
        return {}


def _remote_of(turn: JsonObject) -> str | None:
    """Return owner/name of the git remote of Codex's directory."""
    for workspace in map(as_object, as_object(turn.get("workspaces")).values()):
        remotes = as_object(workspace.get("associated_remote_urls"))
        if isinstance(url := remotes.get("origin"), str):
            return repository_path(url)
    return None


def _agent(headers: Mapping[str, str], turn: JsonObject) -> str | None:
    """Return the name of the sub-agent that sent a request, or None if it is the agent itself."""
    named = headers.get("x-claude-code-agent-id")
    if named:
        return named
    name = turn.get("agent_name")
    return name if isinstance(name, str) and name not in ("", "/root") else None
