"""Metrics: requests by route, the state of the process, and the work of all pools."""

import time
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Histogram, Info, ProcessCollector, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from esker.server import VERSION
from esker.server.core.reports import Measure

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


PROCESS = {
    "database_connections_open": "Connections to the database that this server has open.",
    "database_connections_idle": "Of these connections, those that are idle.",
    "database_connections_most": "The most connections to the database that this server may open.",
    "database_connection_waiting": "Requests and jobs that wait for a connection.",
    "database_connection_wait_seconds_total": "How long requests and jobs have waited for connections, in seconds.",
    "database_connection_failures_total": "Requests and jobs that got no connection in time.",
    "database_writable": "0 if the database refused writes in the last half a minute: disk full, or read-only.",
    "job_slots": "The most jobs that this server runs at a time.",
    "job_runner_idle_seconds": "Seconds since the job runner last moved; 0 while all its slots are taken.",
    "language_model_up": "0 if the language model could not be reached the last time.",
    "embedder_up": "0 if the embedder of questions does not work.",
    "embedding_worker_up": "0 if the embedding worker of this server has died and not recovered.",
    "embedding_worker_deaths": "How often the embedding worker of this server died in a row.",
    "disk_free_bytes": "Free space on the disk of the embedded Postgres.",
    "disk_size_bytes": "Size of the disk of the embedded Postgres.",
    "requests_at_work": "Requests that are being answered.",
    "requests_queued": "Requests that wait for their turn.",
    "exports_running": "Exports that are being sent.",
    "database_up": "Whether the database answered this scrape; if not, only what the process knows is shown.",
}
OPERATIONS = {
    "jobs": "Jobs by kind and state.",
    "jobs_oldest_due_seconds": "Age of the oldest job that is due and does not run, by kind.",
    "jobs_lease_expired": "Jobs whose worker no longer renews its lease.",
    "embeddings_oldest_due_seconds": "Age of the oldest row that is due for its vector.",
    "spend_today_usd": "Cost of language models today (UTC) in dollars, by purpose.",
    "database_bytes": "Size of the database.",
}


class Metrics:
    """The metrics of one app: those of requests in its own registry, and those that other parts of it count."""

    def __init__(self, instruments: CollectorRegistry) -> None:
        self.requests_registry = CollectorRegistry()
        self._instruments = instruments
        self._process = CollectorRegistry()
        ProcessCollector(registry=self._process)
        Info("esker_build", "The version of Esker.", registry=self._process).info({"version": VERSION})
        self.requests = Histogram(
            "esker_http_request_duration_seconds",
            "Duration of requests, in seconds.",
            ("method", "route", "status"),
            buckets=_BUCKETS,
            registry=self.requests_registry,
        )

    def render(
        self, process: Mapping[str, float], backlog: Mapping[str, float] | None, operations: Sequence[Measure]
    ) -> bytes:
        """Return all metrics as text; those of pools are left out if `backlog` is None: the database did not answer."""
        shown = {**process, "database_up": float(backlog is not None)}
        own = [_family(name, PROCESS[name], value) for name, value in shown.items()]
        pools = [_family(name, text, backlog[name]) for name, text in BACKLOG.items()] if backlog else []
        measured = [_labelled(name, text, operations) for name, text in OPERATIONS.items()] if backlog else []
        texts = map(generate_latest, (self.requests_registry, self._instruments, self._process))
        return b"".join((*texts, generate_latest(_Families([*own, *pools, *measured]))))


def render_backlog(backlog: Mapping[str, float]) -> bytes:
    """Return the backlog of one pool as text. Requests are not in it, since they are counted for all pools together."""
    return generate_latest(_Families([_family(name, text, backlog[name]) for name, text in BACKLOG.items()]))


class _Families(CollectorRegistry):
    """A registry of families that were measured just now."""

    def __init__(self, families: Sequence[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterator[Metric]:
        """Yield the families."""
        yield from self._families


def _family(name: str, text: str, value: float) -> Metric:
    if name.endswith("_total"):
        return CounterMetricFamily(f"esker_{name.removesuffix('_total')}", text, value)
    return GaugeMetricFamily(f"esker_{name}", text, value)


def _labelled(name: str, text: str, measures: Sequence[Measure]) -> Metric:
    """Return a family with the kinds and states of its measures as labels; the label of spending is its purpose."""
    labels = {"jobs": ["kind", "state"], "jobs_oldest_due_seconds": ["kind"], "spend_today_usd": ["purpose"]}.get(
        name, []
    )
    family = GaugeMetricFamily(f"esker_{name}", text, labels=labels)
    for each in measures:
        if each.measure == name:
            family.add_metric([each.kind, each.state][: len(labels)], each.value)
    return family


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
        began, ended = time.perf_counter(), None
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status, ended
            if message["type"] == "http.response.start":
                status = message["status"]
                # A stream of events lasts as long as a browser listens, so it is measured only until it begins.
                if Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream"):
                    ended = time.perf_counter()
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            route = getattr(scope.get("route"), "path", "/mcp" if scope["path"] == "/mcp" else "other")
            took = (ended or time.perf_counter()) - began
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._metrics.requests.labels(method, route, str(status)).observe(took)
