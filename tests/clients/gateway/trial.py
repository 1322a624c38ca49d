"""The promises of the gateway for one client in one mode, tried from outside.

A session of prompts, resumed each time, with calls of the client's own tools, an interrupted answer, a provider that
fails, a long history and a compaction. All its requests are compared, and then what Esker has kept of it.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clients.agent import COMMANDS, Agent, Run
from tests.clients.exchanges import Exchange
from tests.clients.gateway.comparison import Compared, compare, is_of_the_conversation, pack_faults
from tests.clients.gateway.homes import FULL
from tests.clients.gateway.recorder import Recorder
from tests.clients.gateway.stored import stored_faults
from tests.clients.memory import MemoryServer
from tests.clients.model.server import Failure, ModelAsked
from tests.clients.promises import Outcome

_FAILURES = (
    Failure(529),
    Failure(429, (("retry-after", "1"), ("x-ratelimit-remaining-requests", "0"))),
    Failure(500),
    Failure(200),
)
# Calls of a prompt that makes a history which `manage` cuts, and the seconds for a provider to notice a cancellation.
_CALLS = 14
_NOTICED_SECONDS = 20
# The gateway passes no WebSockets on, and says so.
_REFUSED = 426
# Clients that compact by themselves when the model reports a full context.
_COMPACT_WHEN_FULL = ("codex", "opencode", "pi")


class GatewayTrial:
    """One client in one mode."""

    def __init__(self, mode: str, agent: Agent, server: MemoryServer, model: ModelAsked, recorded: Recorder) -> None:
        self._mode = mode
        self._agent = agent
        self._server = server
        self._model = model
        self._recorded = recorded
        self._first = len(recorded.exchanges)
        self._first_upstream = len(model.exchanges)
        self._known = {each["id"] for each in server.sessions(agent.name)}
        self._prompts: list[str] = []
        self._failed: list[str] = []

    def run(self, key: str) -> Iterator[Outcome]:
        """Try everything."""
        for promise, kept, detail in self._all(key):
            yield Outcome(f"{self._mode}: {promise}", kept, detail)

    def _all(self, key: str) -> Iterator[tuple[str, bool | None, str]]:
        self._say("We chose pnpm for the shop. SAY noted the manager", begins=True)
        self._say("Build the first part. WORK 1 built the first")
        yield "interrupted", *self._interrupted()
        yield "upstream fails", *self._failing()
        self._say(f"Build all the parts. WORK {_CALLS} built all of them")
        self._observe()
        self._say("Is it built? SAY it is built")
        self._say("Then test it. WORK 1 tested all of it")
        yield "compacted", *self._compacted()
        self._say("Go on with the cart. SAY went on with it")
        yield "session", not self._failed, "; ".join(self._failed)
        yield "requests", *self._compared()
        yield "stored once", *self._stored()
        yield "no key", *self._keyless(key)

    def _say(self, prompt: str, *, begins: bool = False) -> Run:
        # Two sessions that begin with the same words would be one that goes on, if their client does not name them.
        prompt = f"Mode {self._mode}. {prompt}" if begins else prompt
        self._prompts.append(prompt)
        run = self._agent.start(prompt) if begins else self._agent.resume(prompt)
        self._expect(run, prompt)
        return run

    def _expect(self, run: Run, prompt: str) -> None:
        if run.code != 0:
            self._failed.append(f"{prompt!r}: exit code {run.code}: {' '.join(run.output.split())[-200:]}")

    def _interrupted(self) -> tuple[bool, str]:
        self._model.holds.clear()
        self._model.let_go.clear()
        prompt = "Think for long. HOLD thinking for a very long time"
        self._prompts.append(prompt)
        run = self._agent.interrupt(prompt, self._model.holds)
        passed_on = self._model.let_go.wait(_NOTICED_SECONDS)
        self._say("Never mind. SAY forgot about it")
        held = self._model.holds.is_set()
        return held and passed_on and run.code is not None, "" if passed_on else "the provider did not notice it"

    def _failing(self) -> tuple[bool, str]:
        first = len(self._recorded.exchanges)
        self._model.failures.extend(_FAILURES)
        prompt = "Do not STUMBLE here. SAY stood upright"
        self._prompts.append(prompt)
        self._agent.resume(prompt)
        for number in range(len(_FAILURES)):
            # A client that gives up is asked again.
            if not self._model.failures:
                break
            again = f"STUMBLE no more, attempt {number}. SAY stood at attempt {number}"
            self._prompts.append(again)
            self._agent.resume(again)
        self._model.failures.clear()
        run = self._say("All is well. SAY glad to hear it")
        seen = Counter(each.status for each in self._recorded.exchanges[first:])
        came = all(seen[failure.status] for failure in _FAILURES)
        return came and run.code == 0, ", ".join(f"{count} × {status}" for status, count in sorted(seen.items()))

    def _observe(self) -> None:
        """Observe the session, which `manage` needs to leave its turns out."""
        if self._mode == "off":
            return
        self._server.wait_for(self._agent.name, lambda _: self._is_stored("built all of them"))
        for each in self._ours():
            self._server.observe(each["id"])

    def _compacted(self) -> tuple[bool | None, str]:
        name, before = self._agent.name, self._longest_history()
        if COMMANDS[name].compact:
            self._expect(self._agent.compact(), "compaction")
        elif name in _COMPACT_WHEN_FULL:
            self._say(f"Read everything. SWELL {FULL} SAY read everything")
            self._say("Is there room? SAY there is room")
        else:
            return None, "neither a command nor a threshold that can be reached"
        self._say("What is left? SAY this is left")
        after = self._longest_history()
        return after < before, f"{before} items in a request before it, {after} after it"

    def _longest_history(self) -> int:
        """Return the items of the history in the latest request of the conversation."""
        told = [each for each in self._exchanges() if is_of_the_conversation(each)]
        return items_of(told[-1]) if told else 0

    def _exchanges(self) -> list[Exchange]:
        return self._recorded.exchanges[self._first :]

    def _compared(self) -> tuple[bool, str]:
        upstream = {each.trial: each for each in self._model.exchanges[self._first_upstream :]}
        told: list[Compared] = []
        faults: list[str] = []
        for number, before in enumerate(self._exchanges()):
            after = upstream.get(before.trial)
            if after is None and before.status == _REFUSED and before.header("upgrade"):
                continue
            if after is None:
                faults.append(f"request {number} {before.method} {before.path} never went on ({before.status})")
                continue
            compared = compare(self._mode, before, after)
            faults += [f"request {number}: {fault}" for fault in compared.faults]
            told += [compared] if is_of_the_conversation(before) else []
        faults += pack_faults(told) if self._mode in ("pack", "manage") else ()
        left_out = max((each.left_out for each in told), default=0)
        if self._mode == "manage" and not left_out:
            faults.append("nothing was left out of the long history")
        figures = f"{len(told)} of the conversation, {len(self._exchanges()) - len(told)} others"
        figures += f", up to {left_out} items left out" if left_out else ""
        return not faults, "; ".join([figures, *faults])

    def _ours(self) -> list[dict[str, Any]]:
        return [each for each in self._server.sessions(self._agent.name) if each["id"] not in self._known]

    def _is_stored(self, words: str) -> bool:
        return any(words in message["text"] for each in self._ours() for message in each["said"])

    def _stored(self) -> tuple[bool, str]:
        """Return whether each prompt, answer, call and result is there once, in one session, and nothing else is."""
        if self._mode == "off":
            return not self._ours(), f"{len(self._ours())} sessions"
        self._server.wait_for(self._agent.name, lambda _: self._is_stored("went on with it"))
        sessions = self._ours()
        said = [message for each in sessions for message in each["said"]]
        faults = [] if len(sessions) == 1 else [f"{len(sessions)} sessions"]
        faults += stored_faults(said, self._prompts)
        return not faults, "; ".join([f"{len(said)} messages", *faults])

    def _keyless(self, key: str) -> tuple[bool, str]:
        """Return whether the user's key is in no file of the server and in nothing that it tells."""
        found = [str(path) for path in self._server.folder.rglob("*") if _has(path, key.encode())]
        found += [each["id"] for each in self._ours() if key in str(each)]
        return not found, ", ".join(found)


def items_of(exchange: Exchange) -> int:
    """Return how many items the history of a request has."""
    body = json.loads(exchange.body)
    return len(next(body[name] for name in ("messages", "input", "contents") if name in body))


def _has(path: Path, words: bytes) -> bool:
    try:
        return path.is_file() and words in path.read_bytes()
    except OSError:
        return False
