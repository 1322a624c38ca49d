"""A server is killed in the middle of an answer that passes through its gateway.

The client repeats its request, or goes on if it got the answer. Each request has the bytes of the one before, by which
the cache of the provider still holds, and everything is stored once.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM, Signals
from typing import Any

import httpx2
import pytest

from tests.gateway.test_recall import BODIES, FIRST, HISTORIES, LAST, MEMBERS, PATHS, answer
from tests.support.api import observed, until
from tests.support.forks import Forked
from tests.support.model_answers import FORMS
from tests.support.processes import served
from tests.support.upstream import Said, Upstream, upstream
from tests.support.waiting import PATIENCE

_WORDS = "We looked at the cart, at its items and at how the price is computed when it is shown. " * 12


@dataclass(frozen=True, slots=True)
class Case:
    """A client whose server is killed by a signal; one that is not `named` does not say which session it is."""

    protocol: str
    mode: str
    recall: bool = False
    named: bool = True
    killed_by: Signals = SIGKILL

    def __str__(self) -> str:
        return "-".join(
            [self.protocol, self.mode, *["recall"] * self.recall, *["named"] * self.named, self.killed_by.name.lower()]
        )


EVERY = [
    Case(protocol, mode, recall, named, how)
    for protocol in FORMS
    for mode, recall in (("watch", False), ("pack", True), ("manage", False), ("manage", True))
    for named in (True, False)
    for how in (SIGKILL, SIGTERM)
    if how == SIGKILL or (mode, recall) == ("manage", True)
]
SHORT = (Case("messages", "manage", recall=True), Case("gemini", "manage", recall=True, named=False))


@dataclass(frozen=True, slots=True)
class Client:
    """A client of a gateway."""

    case: Case
    http: httpx2.AsyncClient

    def body(self, history: Sequence[Any]) -> bytes:
        """Return a request."""
        return json.dumps({**BODIES[self.case.protocol], MEMBERS[self.case.protocol]: history}).encode()

    def asking(self, history: Sequence[Any]) -> Any:
        """Send a history; return the answer as a stream."""
        headers = {"content-type": "application/json", "x-esker-client": "mine", "x-esker-mode": self.case.mode}
        headers |= {"x-esker-recall": "on"} if self.case.recall else {}
        headers |= {"x-esker-session": "s"} if self.case.named else {}
        path = f"/gateway/model{PATHS[self.case.protocol, True]}"
        return self.http.stream("POST", path, content=self.body(history), headers=headers)

    async def ask(self, history: Sequence[Any]) -> None:
        """Send a history, and read the whole answer."""
        async with self.asking(history) as got:
            FORMS[self.case.protocol].read_stream(await got.aread())


@asynccontextmanager
async def server(case: Case, database_url: str, provider: Upstream) -> AsyncGenerator[tuple[Forked, Client]]:
    """Run a server process; yield it and a client."""
    settings = {"ESKER_GATEWAY_UPSTREAMS": f"model={provider.url}", "ESKER_GATEWAY_HISTORY_TOKENS": "4000"}
    running = served(ESKER_DATABASE_URL=database_url, ESKER_WORKER="false", **settings)
    process, started = await asyncio.to_thread(running.__enter__)
    try:
        async with httpx2.AsyncClient(base_url=started["url"], timeout=PATIENCE) as http:
            yield process, Client(case, http)
    finally:
        await asyncio.to_thread(running.__exit__, None, None, None)


def said(protocol: str, role: str, words: str) -> dict[str, Any]:
    """Return an entry of a history."""
    match protocol:
        case "responses":
            kind = "input_text" if role == "user" else "output_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
        case "gemini":
            return {"role": "user" if role == "user" else "model", "parts": [{"text": words}]}
        case _:
            return {"role": role, "content": words}


def work(case: Case) -> list[dict[str, Any]]:
    """Return a prompt, its answer and the result of its call; only after a recall the answer begins with words."""
    items = HISTORIES[case.protocol]
    if case.recall:
        return items
    asked, *rest = json.loads(json.dumps(items).replace(r"I look.\n\n", ""))
    if case.protocol == "messages":
        del rest[0]["content"][0]
    elif case.protocol == "responses":
        del rest[0]
    return [asked, *rest]


async def begun(client: Client, provider: Upstream, rounds: Sequence[Any], prompt: Sequence[Any]) -> None:
    """Have some rounds observed, and a prompt answered with a call."""
    memory = {"content": "The shop deploys on Fridays.", "kind": "manual"}
    (await client.http.post("/v1/memories", json=memory)).raise_for_status()
    name = client.case.protocol
    provider.say(answer(name, [("text", "It is done.")], 1, is_stream=True))
    await client.ask(rounds)
    [session] = (await until(client.http, "/v1/sessions", lambda page: page["sessions"]))["sessions"]
    await until(client.http, f"/v1/sessions/{session['id']}", lambda one: one["messages"] == len(rounds) + 1)
    await observed(client.http, session["id"])
    first = [answer(name, FIRST, 1, is_stream=True)] if client.case.recall else []
    provider.say(*first, answer(name, LAST, 2, is_stream=True))
    async with client.asking([*rounds, *prompt]) as got:
        await got.aread()


async def killed(
    process: Forked, client: Client, provider: Upstream, history: Sequence[Any], last: list[bytes]
) -> None:
    """Send a history to a server that is killed when a part of the answer has come."""
    gate = asyncio.Event()
    provider.say(Said(last, gate=gate))
    async with client.asking(history) as got:
        arriving = got.aiter_raw()
        await anext(arriving)
        process.send_signal(client.case.killed_by)
        gate.set()
        # A server that is asked to stop finishes the answer.
        with pytest.raises(httpx2.RemoteProtocolError) if client.case.killed_by == SIGKILL else nullcontext():
            async for _ in arriving:
                pass


async def told(client: Client, count: int) -> list[str]:
    """Return the last words of the last messages of the only session, as soon as it has so many."""
    [session] = (await client.http.get("/v1/sessions")).json()["sessions"]
    path = f"/v1/sessions/{session['id']}/messages?limit=500"
    messages = (await until(client.http, path, lambda page: len(page["messages"]) >= count))["messages"]
    assert len(messages) == count
    assert (await client.http.get(f"/v1/sessions/{session['id']}")).json()["lost"] == 0
    return [each["text"].split()[-1] for each in messages[-5:]]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in SHORT else pytest.mark.slow, id=str(case)) for case in EVERY]
)
async def test_a_client_repeats_its_request_after_a_kill_and_nothing_changes_or_is_stored_twice(
    case: Case, database_url: str
) -> None:
    name, member = case.protocol, MEMBERS[case.protocol]
    rounds = [
        said(name, role, f"{role} {number}. {_WORDS if role == 'assistant' else ''}")
        for number in range(20)
        for role in ("user", "assistant")
    ]
    rounds.append(said(name, "user", "Sum up."))
    prompt, *rest = work(case)
    asked = [said(name, "assistant", "It is done."), prompt]
    whole = [*rounds, *asked, *rest]
    last = FORMS[name].stream(
        [("text", "All is "), ("text", "well.")] if name == "gemini" else [("text", "All is well.")], 1
    )
    async with upstream() as provider:
        async with server(case, database_url, provider) as (process, client):
            await begun(client, provider, rounds, asked)
            await killed(process, client, provider, whole, last)
        before = provider.arrived[-1]
        async with server(case, database_url, provider) as (_, client):
            provider.say(Said(last))
            if case.killed_by == SIGKILL:
                await client.ask(whole)
                assert provider.arrived[-1].body == before.body
            await client.ask([*whole, said(name, "assistant", "All is well."), said(name, "user", "Thanks.")])
            after = provider.arrived[-1].json[member]
            words = await told(client, len(rounds) + 5 + len(rest))
    sent = before.json[member]
    assert after[: len(sent)] == sent
    assert ("recall_memory" in str(sent)) == case.recall
    assert (len(sent) < len(whole)) == (case.mode == "manage")
    assert words == ['"cart.py"})]', "done]", "well.", "Thanks.", "well."]
