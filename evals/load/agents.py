"""Scripted agents: each has a session and, after a pause, does one of the things that an agent's client does."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from evals.load.outcomes import Outcome, Outcomes, Result
from evals.load.texts import message, question

KINDS: Mapping[str, int] = {"ingest": 40, "recall": 20, "pack": 15, "context": 5, "hook": 15, "reflect": 5}
"""How often an agent does each thing, in percent, once it has opened a session.

A hook opens the session, sends a turn, asks for the pack, and reports a compaction; `reflect` asks for an observation
and a reflection in the background.
"""
_MOST_PAUSE = 10.0


class Refused(Exception):
    """A request that was not answered with success."""

    def __init__(self, result: Result, retry_after: float | None) -> None:
        super().__init__(result)
        self.result: Result = result
        self.retry_after = retry_after


@dataclass(slots=True)
class Agent:
    """An agent and its session. `sent` messages were sent, `acknowledged` ones stored with a 2xx."""

    name: str
    client: httpx2.AsyncClient
    outcomes: Outcomes
    began: float
    pause_seconds: float
    chance: random.Random
    session: str | None = None
    sent: int = 0
    acknowledged: int = 0
    _waiting: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    async def work(self, until: asyncio.Event) -> None:
        """Work until the event is set, with pauses of `pause_seconds` on average."""
        while not until.is_set():
            pause = min(self.chance.expovariate(1 / self.pause_seconds), 3 * self.pause_seconds)
            if not await _within(until, pause):
                await self._step(until)

    async def _step(self, until: asyncio.Event) -> None:
        [kind] = self.chance.choices(list(KINDS), list(KINDS.values()))
        if self.session is None:
            kind = "open"
        steps: dict[str, Callable[[], Awaitable[None]]] = {
            "open": self._open,
            "ingest": self._ingest,
            "recall": self._recall,
            "pack": self._pack,
            "context": self._context,
            "hook": self._hook,
            "reflect": self._reflect,
        }
        phase, start = self.outcomes.phase, time.perf_counter()
        result: Result = "ok"
        retry_after: float | None = None
        try:
            await steps[kind]()
        except Refused as refused:
            result, retry_after = refused.result, refused.retry_after
        took = time.perf_counter() - start
        refused_in_words = result not in ("shed", "unavailable") or retry_after is not None
        self.outcomes.all.append(Outcome(kind, phase, start - self.began, took, result, refused_in_words))
        if result != "ok":
            await _within(until, min(retry_after or 1.0, _MOST_PAUSE))

    async def _open(self) -> None:
        body = {"client": "api", "external_id": self.name, "project": "load/shop"}
        self.session = (await self._post("/v1/sessions", body))["id"]

    async def _ingest(self) -> None:
        """Send messages that were refused before, then new ones, as the spool of a client does."""
        for role in ("user", "assistant")[: self.chance.randint(1, 2)]:
            self.sent += 1
            text = message(self.chance)
            self._waiting.append({"external_id": f"{self.name}-{self.sent}", "role": role, "content": text})
        batch = list(self._waiting)
        await self._post(f"/v1/sessions/{self.session}/messages", {"messages": batch})
        self.acknowledged += len(batch)
        self._waiting.clear()

    async def _recall(self) -> None:
        await self._post("/v1/recall", {"query": question(self.chance)})

    async def _pack(self) -> None:
        await self._ask("GET", f"/v1/sessions/{self.session}/pack")

    async def _context(self) -> None:
        await self._post(f"/v1/sessions/{self.session}/context", {"system": "Be brief.", "recall": True})

    async def _hook(self) -> None:
        await self._open()
        await self._ingest()
        await self._pack()
        await self._post(f"/v1/sessions/{self.session}/events", {"kind": "compaction_pending"})

    async def _reflect(self) -> None:
        await self._post(f"/v1/sessions/{self.session}/observe")
        await self._post(f"/v1/sessions/{self.session}/reflect")

    async def _post(self, path: str, body: object = None) -> Any:
        return await self._ask("POST", path, body)

    async def _ask(self, method: str, path: str, body: object = None) -> Any:
        """Return an answer. Raises Refused."""
        try:
            answer = await self._exchange(method, path, body)
        except httpx2.HTTPError as error:
            self.outcomes.problems[f"{method} {_shape(path)}: {type(error).__name__}"] += 1
            raise Refused("error", None) from error
        if answer.is_success:
            return answer.json()
        results: dict[int, Result] = {429: "shed", 503: "unavailable"}
        self.outcomes.problems[f"{method} {_shape(path)}: {answer.status_code} {_detail(answer)}"] += 1
        after = answer.headers.get("Retry-After", "")
        raise Refused(results.get(answer.status_code, "error"), float(after) if after.isdecimal() else None)

    async def _exchange(self, method: str, path: str, body: object) -> httpx2.Response:
        """Send a request, again if the server was just closing the idle connection, as our clients do."""
        try:
            return await self.client.request(method, path, json=body)
        except (httpx2.ReadError, httpx2.RemoteProtocolError):
            return await self.client.request(method, path, json=body)


async def _within(until: asyncio.Event, seconds: float) -> bool:
    """Wait; return whether the event was set meanwhile."""
    try:
        async with asyncio.timeout(seconds):
            return await until.wait()
    except TimeoutError:
        return False


def _shape(path: str) -> str:
    return "/".join("…" if part.startswith("ses_") else part for part in path.split("/"))


def _detail(answer: httpx2.Response) -> str:
    try:
        return str(answer.json()["detail"])[:200]
    except (ValueError, KeyError, TypeError):
        return answer.text[:100]
