"""Spans of OpenTelemetry: requests, jobs and calls of language models.

The SDK of OpenTelemetry is imported only by a process that exports spans (`server/cli/exporting_spans.py`). In any
other, a span does nothing and costs one dictionary lookup.
"""

import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

_EXPORTING = "opentelemetry.sdk.trace"
SpanKind = Literal["SERVER", "CLIENT", "INTERNAL"]
Attribute = str | int | float | list[str]


class Span:
    """A span that may get attributes while it is open; without OpenTelemetry it ignores them."""

    def __init__(self, real: Any = None) -> None:
        self._real = real

    def rename(self, name: str) -> None:
        """Change the name of the span."""
        if self._real:
            self._real.update_name(name)

    def set(self, attributes: Mapping[str, Attribute]) -> None:
        """Add attributes."""
        if self._real:
            self._real.set_attributes(attributes)

    def fail(self, kind: str) -> None:
        """Mark the span as failed; `kind` is the class of the error. Its words are not exported."""
        if self._real:
            self._real.set_attribute("error.type", kind)
            self._real.set_status(sys.modules["opentelemetry.trace"].StatusCode.ERROR)


@contextmanager
def span(name: str, kind: SpanKind, attributes: Mapping[str, Attribute]) -> Generator[Span]:
    """Open a span for the block. An exception marks it as failed."""
    if _EXPORTING not in sys.modules:
        yield Span()
        return
    trace: Any = sys.modules["opentelemetry.trace"]
    tracer = trace.get_tracer("esker")
    opened = tracer.start_as_current_span(
        name,
        kind=trace.SpanKind[kind],
        attributes=attributes,
        record_exception=False,
        set_status_on_exception=False,
    )
    with opened as real:
        made = Span(real)
        try:
            yield made
        except BaseException as error:
            made.fail(type(error).__name__)
            raise
