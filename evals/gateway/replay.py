"""A session replayed turn by turn through the gateway, as an agent CLI would send it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import httpx2

from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.config.gateway_rules import GatewayMode
from esker.server.core.conversation.valid_blocks import as_blocks
from evals.gateway.provider import Account, Provider
from evals.serving import Server, until_done

_RULES = "You are a coding agent. Work in small steps, test what you change, and say what you did. " * 200
"""A system prompt of some 4,000 tokens."""
_OBSERVE_TOKENS = 8_000
_MARK = {"cache_control": {"type": "ephemeral"}}
_TOOLS = [{"name": "Bash", "description": "Run a command", "input_schema": {"type": "object"}}]

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Replayed:
    """The counts of the provider in one mode, and the last request that it got."""

    mode: GatewayMode
    account: Account
    last: dict[str, Any]


def messages_of(entries: Sequence[TranscriptEntry], most: int) -> list[Message]:
    """Return the first messages of a transcript: alternating roles, and calls that have their results."""
    found: list[Message] = []
    for entry in entries[:most]:
        blocks = cast("list[Message]", as_blocks(entry.content))
        role = "assistant" if entry.role == "assistant" else "user"
        kept = [block for block in blocks if block["type"] in ("text", "tool_use", "tool_result")]
        if not kept or (not found and role == "assistant"):
            continue
        if found and found[-1]["role"] == role:
            found[-1]["content"] += kept
        else:
            found.append({"role": role, "content": kept})
    return found


def replay(server: Server, provider: Provider, mode: GatewayMode, name: str, messages: Sequence[Message]) -> Replayed:
    """Send every request of a session in one mode; the server observes it as it grows. Raises InvalidInput."""
    provider.account = Account()
    session = None
    headers = {"x-esker-mode": mode, "x-esker-client": "replay", "x-esker-session": f"{name} {mode}"}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=600) as http:
        for place, message in enumerate(messages):
            if message["role"] != "assistant" or place == 0:
                continue
            provider.answer = message["content"]
            http.post("/gateway/scripted/v1/messages", json=_request(messages[:place])).raise_for_status()
            if mode == "manage":
                session = session or _session(server, f"{name} {mode}")
                if session and server.get(f"/v1/sessions/{session}")["unobserved_tokens"] >= _OBSERVE_TOKENS:
                    until_done(server, f"/v1/sessions/{session}/observe?wait=true")
    return Replayed(mode, provider.account, provider.last)


def _session(server: Server, external_id: str) -> str | None:
    found = server.get("/v1/sessions", external_id=external_id)["sessions"]
    return found[0]["id"] if found else None


def _request(history: Sequence[Message]) -> dict[str, Any]:
    """Return a request with the breakpoints that clients set: behind the system prompt and at the last message."""
    marked = copy.deepcopy([*history])
    marked[-1]["content"][-1] |= _MARK
    rules = [{"type": "text", "text": "You are an agent."}, {"type": "text", "text": _RULES} | _MARK]
    return {"model": "claude-sonnet-5", "max_tokens": 1_000, "system": rules, "tools": _TOOLS, "messages": marked}
