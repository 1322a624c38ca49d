"""Spans that a collector receives: requests, jobs and models by the conventions, and no words of anybody."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager
from importlib import import_module
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from esker.server.app import make_app, make_parts
from esker.server.cli.exporting_spans import exporting_spans
from esker.server.core.config.settings import Settings
from esker.server.core.tracing import span
from esker.server.db.database import Database
from tests.support.api import opened, said
from tests.support.model_server import ModelServer
from tests.support.serving import serving_app
from tests.support.waiting import PATIENCE


@asynccontextmanager
async def collector() -> AsyncGenerator[tuple[str, list[bytes]]]:
    """Run a collector; yield its address and what it receives."""
    received: list[bytes] = []

    async def receive(request: Request) -> Response:
        received.append(await request.body())
        return Response()

    async with serving_app(Starlette(routes=[Route("/v1/traces", receive, methods=["POST"])])) as url:
        yield url, received


def test_without_a_collector_nothing_is_imported_and_a_span_is_nothing() -> None:
    before = set(sys.modules)
    with exporting_spans(Settings()), span("x", "INTERNAL", {"a": 1}) as nothing:
        nothing.set({"b": 2})
        nothing.rename("y")
    assert not {name for name in set(sys.modules) - before if name.startswith("opentelemetry")}


async def test_a_collector_receives_requests_jobs_and_models_without_words(
    database_url: str, model: ModelServer
) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    fact = {"text": "User decided to use Redis.", "priority": "high", "category": "decision", "sources": [1]}
    model.say({"facts": [fact]})
    with ExitStack() as exporting:
        async with collector() as (url, received):
            settings = Settings.from_environment(model.environment() | {"ESKER_OTLP_ENDPOINT": url})
            exporting.enter_context(exporting_spans(settings))
            app = make_app(make_parts(settings, Database(database_url)))
            async with serving_app(app) as served, httpx2.AsyncClient(base_url=served, timeout=PATIENCE) as client:
                session = await opened(client)
                await said(client, session, "Let's use Redis.")
                answer = await client.post(f"/v1/sessions/{session}/observe?wait=true")
            await asyncio.to_thread(exporting.close)
    spans = {each.name: attributes(each) for body in received for each in decoded(body)}
    request = spans["POST /v1/sessions/{session_id}/observe"]
    assert request["esker.request_id"] == answer.headers["x-request-id"]
    assert request["http.response.status_code"] == 200
    assert spans["job observe"]["esker.job.subject"] == session
    call = spans["chat claude-haiku-5-5"]
    assert (call["gen_ai.operation.name"], call["gen_ai.provider.name"]) == ("chat", "anthropic")
    assert call["gen_ai.request.model"] == "claude-haiku-5-5"
    assert call["gen_ai.usage.input_tokens"] > 0
    assert call["gen_ai.usage.output_tokens"] > 0
    assert call["gen_ai.response.finish_reasons"] == ["end"]
    assert not [body for body in received if b"Redis" in body]


def decoded(body: bytes) -> list[Any]:
    """Return the spans in what a collector received."""
    service: Any = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = service.ExportTraceServiceRequest.FromString(body)
    return [each for resource in request.resource_spans for scope in resource.scope_spans for each in scope.spans]


def attributes(one: Any) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {each.key: _value(each.value) for each in one.attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)
