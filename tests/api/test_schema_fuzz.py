"""The HTTP interface keeps to its OpenAPI document, whatever is sent: generated requests, with and without a key."""

import asyncio
import json
import re
from typing import Any

import httpx2
import hypothesis
import pytest
from hypothesis import strategies

from esker.server.app import make_app
from esker.server.rest.document import operations
from esker.server.usecases.authenticate import SCOPES, create_key
from esker.server.usecases.parts import Parts
from tests.support.api import observed, opened, said
from tests.support.waiting import PATIENCE

# Said of strategies that are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisDeprecationWarning")

SLOW = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.filter_too_much, hypothesis.HealthCheck.data_too_large]
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture(scope="module")
def schemathesis() -> Any:
    """The generator of requests, whose import takes a second of each process that needs it."""
    made = pytest.importorskip("schemathesis", reason="the environment is older than requirements/lock.txt")
    pytest.importorskip("schemathesis.checks").load_all_checks()
    made.serializer("application/x-ndjson")(lines)
    return made


def lines(_: Any, value: Any) -> bytes:
    """Send any value as a file of one line."""
    return value if isinstance(value, bytes) else json.dumps(value, default=str).encode()


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> int:
    """How many requests are made of each kind."""
    return 200 if request.config.getoption("--full") else 3


async def real_ids(client: httpx2.AsyncClient) -> dict[str, str]:
    """Return the ids of things that exist."""
    session = await opened(client)
    await said(client, session, "We decided that the boat is painted blue.")
    await observed(client, session)
    memory = (await client.post("/v1/memories", json={"content": "The hill is green."})).json()["id"]
    receipt = (await client.post("/v1/forget", json={"ids": [memory]})).json()["id"]
    note = (await client.post("/v1/memories", json={"content": "The river is high."})).json()["id"]
    return {"session_id": session, "memory_id": note, "receipt_id": receipt}


def try_everything(
    schemathesis: Any, document: Any, url: str, headers: dict[str, str], ids: dict[str, str], examples: int
) -> set[int]:
    """Send generated requests to each operation, half of them to things that exist; return the statuses seen."""
    promised = [schemathesis.checks.CHECKS.get_one(name) for name in CHECKS]
    seen: set[int] = set()
    for found in schemathesis.openapi.from_dict(document).get_all_operations():
        operation = found.ok()

        @hypothesis.settings(max_examples=examples, deadline=None, suppress_health_check=SLOW)
        @hypothesis.given(case=operation.as_strategy(), is_real=strategies.booleans())
        def ask(case: Any, is_real: bool) -> None:
            if is_real:
                case.path_parameters = {**(case.path_parameters or {})} | {
                    name: ids[name] for name in case.path_parameters or {} if name in ids
                }
            answer = case.call(base_url=url, headers=headers, timeout=PATIENCE)
            seen.add(answer.status_code)
            case.validate_response(answer, checks=promised)

        ask()
    return seen


async def test_no_request_makes_the_server_fail_or_leave_its_document(
    client: httpx2.AsyncClient, parts: Parts, schemathesis: Any, examples: int
) -> None:
    ids = await real_ids(client)
    key = await create_key(parts, name="a", pool="default", scopes=list(SCOPES))
    document, url = make_app(parts).openapi(), str(client.base_url).rstrip("/")
    headers = {"Authorization": f"Bearer {key.key}"}
    seen = await asyncio.to_thread(try_everything, schemathesis, document, url, headers, ids, examples)
    assert 200 in seen
    assert 401 not in seen
    assert max(seen) < 500


async def test_no_request_without_a_key_gets_in(
    client: httpx2.AsyncClient, parts: Parts, schemathesis: Any, examples: int
) -> None:
    await create_key(parts, name="a", pool="default", scopes=list(SCOPES))
    document, url = make_app(parts).openapi(), str(client.base_url).rstrip("/")
    for health in ("/livez", "/readyz"):
        del document["paths"][health]
    seen = await asyncio.to_thread(try_everything, schemathesis, document, url, {}, {}, max(1, examples // 4))
    # An address that sends many requests without a key is told to wait.
    assert {401} <= seen <= {401, 404, 429}


async def test_every_example_of_a_request_is_accepted(client: httpx2.AsyncClient, parts: Parts) -> None:
    document = make_app(parts).openapi()
    ids = await real_ids(client)
    sent: set[str] = set()
    for path, method, operation in operations(document):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            named = re.findall(r"'#/components/schemas/(\w+)'", str(content))
            for example in document["components"]["schemas"][named[0]].get("examples", []) if named else []:
                answer = await client.request(method, path.format(**ids), json=example)
                assert answer.status_code < 300, (path, answer.text)
                sent.add(named[0])
    assert {"RecallIn", "MessagesIn", "CorrectionIn", "ForgetIn"} <= sent
