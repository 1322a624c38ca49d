"""A session replayed turn by turn through the gateway, as an agent CLI would send it."""

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx2

from esker.server.core.config.gateway_rules import GatewayMode
from evals.gateway.histories import History, Message
from evals.gateway.provider import Account, Provider
from evals.serving import Server, until_done

_RULES = "You are a coding agent. Work in small steps, test what you change, and say what you did. " * 200
"""A system prompt of some 4,000 tokens."""
_OBSERVE_TOKENS = 8_000
_MARK = {"cache_control": {"type": "ephemeral"}}
_TOOLS = [{"name": "Bash", "description": "Run a command", "input_schema": {"type": "object"}}]
_OWN = ("You are an agent.", _RULES)
_POLL_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Replayed:
    """The counts of the provider in one mode, the last request that it got, and the client's summary in that."""

    mode: str
    account: Account
    last: dict[str, Any]
    summary: str = ""

    @property
    def pack(self) -> str:
        """The pack in the last request."""
        return "\n".join(block["text"] for block in self.last["system"] if block["text"] not in _OWN)


def replay(server: Server, provider: Provider, mode: GatewayMode, history: History) -> Replayed:
    """Send every request of a session in one mode; the server observes it as it grows. Raises InvalidInput."""
    provider.account = Account()
    session = None
    headers = {"x-esker-mode": mode, "x-esker-client": "replay", "x-esker-session": mode}
    with httpx2.Client(base_url=server.url, headers=headers, timeout=600) as http:
        for number, place in enumerate(history.requests(), 1):
            provider.answer, provider.now = history.messages[place]["content"], history.times[place - 1]
            asked = request_of(history.messages[:place])
            http.post("/gateway/scripted/v1/messages", json=asked).raise_for_status()
            if mode == "manage":
                session = session or _session(server, mode)
                _wait_until_kept(server, session, number)
                if server.get(f"/v1/sessions/{session}")["unobserved_tokens"] >= _OBSERVE_TOKENS:
                    until_done(server, f"/v1/sessions/{session}/observe?wait=true")
    return Replayed(mode, provider.account, provider.last)


def _session(server: Server, external_id: str) -> str:
    while not (found := server.get("/v1/sessions", external_id=external_id)["sessions"]):
        time.sleep(_POLL_SECONDS)
    return found[0]["id"]


def _wait_until_kept(server: Server, session: str, requests: int) -> None:
    """Wait until the gateway has kept so many exchanges: it does that behind the requests."""
    while (server.get(f"/v1/sessions/{session}/memory")["usage"] or {"calls": 0})["calls"] < requests:
        time.sleep(_POLL_SECONDS)


def request_of(history: Sequence[Message]) -> dict[str, Any]:
    """Return a request with the breakpoints that clients set: behind the system prompt and at the last message."""
    marked = copy.deepcopy([*history])
    marked[-1]["content"][-1] |= _MARK
    rules = [{"type": "text", "text": _OWN[0]}, {"type": "text", "text": _RULES} | _MARK]
    return {"model": "claude-sonnet-5", "max_tokens": 1_000, "system": rules, "tools": _TOOLS, "messages": marked}
