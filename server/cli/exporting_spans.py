"""Exports spans to a collector of OpenTelemetry, if one is configured (`esker[otel]`)."""

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from esker.server import VERSION
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured


@contextmanager
def exporting_spans(settings: Settings) -> Generator[None]:
    """Export the spans of this process during the block; do nothing without ESKER_OTLP_ENDPOINT.

    The rest is sent at the end. Raises Misconfigured if OpenTelemetry is not installed.
    """
    if settings.otlp_endpoint is None:
        yield
        return
    try:
        trace: Any = import_module("opentelemetry.trace")
        sdk: Any = import_module("opentelemetry.sdk.trace")
        export: Any = import_module("opentelemetry.sdk.trace.export")
        resources: Any = import_module("opentelemetry.sdk.resources")
        otlp: Any = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        raise Misconfigured(
            "ESKER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed.", hint="Install esker[otel]."
        ) from error
    resource = resources.Resource.create({"service.name": "esker", "service.version": VERSION})
    provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
    address = f"{settings.otlp_endpoint.rstrip('/')}/v1/traces"
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter(endpoint=address, timeout=2)))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
