"""No words of an exchange are in logs, metrics or the audit trail, also if the provider's answer cannot be read."""

import json

import httpx2
import pytest

from tests.gateway.test_messages import SESSION, request, sent, stored, text
from tests.gateway.test_recall import BODIES, HISTORIES, MEMBERS, ON, PATHS
from tests.support.logs import CANARY
from tests.support.model_answers import FORMS
from tests.support.upstream import Said, Upstream, messages_stream


async def test_what_goes_through_the_gateway_is_not_logged(
    agent: httpx2.AsyncClient, provider: Upstream, logged: list[str]
) -> None:
    await agent.post("/v1/memories", json={"content": f"The {CANARY} is ripe.", "kind": "manual"})
    provider.say(Said(messages_stream(text(f"Eat the {CANARY}."))))
    await sent(agent, request(("user", f"Is the {CANARY} ripe?")))
    await stored(agent, SESSION, 2)
    provider.say(Said([f"no {CANARY}".encode()], status=500, headers={"content-type": "text/plain"}))
    await sent(agent, request(("user", f"Is the {CANARY} ripe?")))
    assert logged
    assert not [line for line in logged if CANARY in line]
    for path in ("/metrics", "/v1/savings", "/v1/spend", "/v1/audit", "/v1/status"):
        assert CANARY not in (await agent.get(path)).text, path


@pytest.mark.parametrize("name", ["messages", "chat"])
async def test_an_answer_that_cannot_be_read_is_not_repeated(
    agent: httpx2.AsyncClient, provider: Upstream, logged: list[str], name: str
) -> None:
    whole = b"".join(FORMS[name].stream([("text", "I look."), ("call", "Bash"), ("recall", "shop")], 1)).decode()
    lines = [json.loads(line.removeprefix("data: ")) for line in whole.splitlines() if line.startswith("data: {")]
    answers = [
        whole.replace('"index": 0', f'"index": "{CANARY}"'),
        whole.replace(json.dumps(lines[0]), f'{{"type": "{CANARY}", "choices": "{CANARY}"}}'),
    ]
    body = {**BODIES[name], MEMBERS[name]: HISTORIES[name]}
    for answer in answers:
        assert CANARY in answer
        provider.say(Said([answer.encode()]))
        await agent.post(f"/gateway/model{PATHS[name, True]}", json=body, headers=ON)
    assert not [line for line in logged if CANARY in line]
