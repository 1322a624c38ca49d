"""Metrics: requests by route, and how much waits."""

import time
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
# Anybody can make up a method, and each would be a series of its own.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BACKLOG = {
    "unobserved_tokens": "Tokens of messages that no observer has seen yet.",
    "oldest_unobserved_seconds": "Age of the oldest message that no observer has seen yet.",
    "jobs_waiting": "Jobs that wait or run.",
    "jobs_dead": "Jobs that failed too often.",
    "embeddings_waiting": "Rows that wait for their vector.",
    "embeddings_dead": "Rows that cannot be embedded.",
    "messages": "Messages that are kept.",
    "covered_messages": "Messages that stand in an observation group.",
    "lost_messages": "Messages that are neither in a group nor waiting for one; there are none.",
    "lowest_coverage": "The share of its messages that stand in a group, of the session with the lowest.",
    "lowest_index_agreement": "The share of the nearest vectors that an index found in its daily probe, of the index"
    " that found the least; 1 without indexes.",
}


class Metrics:
    """The metrics of one app, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "esker_http_request_duration_seconds",
            "How long requests took.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._backlog = {name: Gauge(f"esker_{name}", text, registry=self._registry) for name, text in BACKLOG.items()}

    def render(self, backlog: Mapping[str, float]) -> bytes:
        """Return all metrics as text, with the backlog as it is now."""
        for name, gauge in self._backlog.items():
            gauge.set(backlog[name])
        return generate_latest(self._registry)


class Measured:
    """ASGI middleware that counts every request under its route, never under its path, which holds ids."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "/mcp" if scope["path"] == "/mcp" else "other")
            took = time.perf_counter() - began
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, route, str(status)).observe(took)
