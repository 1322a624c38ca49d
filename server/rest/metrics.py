"""Metrics: requests by route, and the backlog."""

import time
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
# A client can invent methods, and each would become a series of its own.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
BACKLOG = {
    "unobserved_tokens": "Tokens of messages not observed yet.",
    "oldest_unobserved_seconds": "Age of the oldest message not observed yet, in seconds.",
    "jobs_waiting": "Jobs waiting or running.",
    "jobs_dead": "Jobs that failed permanently.",
    "embeddings_waiting": "Rows waiting for their vector.",
    "embeddings_dead": "Rows whose embedding failed permanently.",
    "messages": "Stored messages.",
    "covered_messages": "Messages in an observation group.",
    "lost_messages": "Messages neither in a group nor waiting for one; must be 0.",
    "lowest_coverage": "The lowest share of messages in a group, over all sessions.",
    "lowest_index_agreement": "The lowest share of nearest vectors found in the daily probe, over all indexes; 1 if"
    " there are none.",
}


class Metrics:
    """The metrics of one app, in its own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Histogram(
            "esker_http_request_duration_seconds",
            "Duration of requests, in seconds.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._backlog = {name: Gauge(f"esker_{name}", text, registry=self._registry) for name, text in BACKLOG.items()}

    def render(self, backlog: Mapping[str, float]) -> bytes:
        """Return all metrics as text, with the present backlog of all pools."""
        for name, gauge in self._backlog.items():
            gauge.set(backlog[name])
        return generate_latest(self._registry)


def render_backlog(backlog: Mapping[str, float]) -> bytes:
    """Return the backlog of one pool as text. Requests are not in it, since they are counted for all pools together."""
    registry = CollectorRegistry()
    for name, text in BACKLOG.items():
        Gauge(f"esker_{name}", text, registry=registry).set(backlog[name])
    return generate_latest(registry)


class Measured:
    """ASGI middleware that measures every request by its route, not its path, since paths contain ids."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure it."""
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
