"""The counters and clocks of a process, which `/metrics` shows: they need no database."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from esker.server.core.conversation.records import KNOWN_CLIENTS
from esker.server.core.records import JobKind, Purpose, TokenUse

RecallArm = Literal["question", "search", "rerank", "paraphrase", "all"]
"""A part of a recall: embedding the question, searching by keyword and vector, the optional models, and the whole."""

_RECALL_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_JOB_BUCKETS = (0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0)
_LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Instruments:
    """Counts of the work of a process since its start, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._recalls = self._histogram(
            "esker_recall_duration_seconds", "Duration of recalls by part, in seconds.", ["arm"], _RECALL_BUCKETS
        )
        self.recall_answers = self._counter(
            "esker_recalls",
            "Recalls by the part that vectors had in them, and whether there was a hit.",
            "semantic",
            "hit",
        )
        self.packs = self._counter("esker_packs_frozen", "Packs that were frozen, by reason.", "reason")
        self._jobs = self._histogram(
            "esker_job_duration_seconds", "Duration of jobs in seconds.", ["kind", "outcome"], _JOB_BUCKETS
        )
        self.jobs_running = Gauge("esker_jobs_running", "Jobs that this server runs.", registry=self.registry)
        self._calls = self._counter("esker_model_calls", "Calls of language models.", "purpose")
        self._call_tokens = self._counter(
            "esker_model_tokens", "Tokens of language models, by what became of them.", "purpose", "use"
        )
        self._cost = self._counter("esker_model_cost_usd", "Cost of language models in dollars.", "purpose")
        self._client_tokens = self._counter(
            "esker_client_tokens", "Tokens that the models of clients used, as clients report them.", "use"
        )
        self.gateway_requests = self._counter(
            "esker_gateway_requests", "Requests to models that passed through the gateway, by what was done.", "outcome"
        )
        self._gateway_tokens = self._counter(
            "esker_gateway_tokens", "Tokens of the gateway's requests, as their providers count them.", "client", "use"
        )
        self._gateway_raw_tokens = self._counter(
            "esker_gateway_raw_tokens",
            "Input tokens that the gateway's requests would have had as their clients sent them, by estimate.",
            "client",
        )
        self._gateway_cost = self._counter(
            "esker_gateway_cost_usd",
            "Cost of the gateway's requests with a known price in dollars: as sent, or with their raw history.",
            "client",
            "history",
        )
        self.batches = self._counter("esker_worker_batches", "Batches of texts that a worker embedded.", "outcome")
        self.loop_lag = Histogram(
            "esker_event_loop_lag_seconds",
            "How much later than planned the event loop came to a task, in seconds.",
            buckets=_LAG_BUCKETS,
            registry=self.registry,
        )

    @contextmanager
    def recall_arm(self, arm: RecallArm) -> Generator[None]:
        """Measure a part of a recall."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._recalls.labels(arm).observe(time.perf_counter() - began)

    @contextmanager
    def job(self, kind: JobKind) -> Generator[None]:
        """Measure a job; one that ends with an error has failed."""
        began = time.perf_counter()
        outcome = "failed"
        with self.jobs_running.track_inprogress():
            try:
                yield
                outcome = "done"
            finally:
                self._jobs.labels(kind, outcome).observe(time.perf_counter() - began)

    def model_call(self, purpose: Purpose, used: TokenUse, cost_usd: float | None) -> None:
        """Count a call of a language model."""
        self._calls.labels(purpose).inc()
        for use, tokens in _uses(used):
            self._call_tokens.labels(purpose, use).inc(tokens)
        self._cost.labels(purpose).inc(cost_usd or 0.0)

    def client_call(self, used: TokenUse) -> None:
        """Count a call that a client reports: its cached tokens show how often the frozen prefix is reused."""
        for use, tokens in _uses(used):
            self._client_tokens.labels(use).inc(tokens)

    def gateway_call(
        self, client: str, used: TokenUse, *, raw_tokens: int, cost_usd: float, raw_cost_usd: float
    ) -> None:
        """Count a call that passed through the gateway; `raw_…` are the figures of the unchanged request."""
        # Each name that a program gives itself would become a series of its own.
        label = client if client in KNOWN_CLIENTS else "other"
        for use, tokens in _uses(used):
            self._gateway_tokens.labels(label, use).inc(tokens)
        self._gateway_raw_tokens.labels(label).inc(raw_tokens)
        for history, dollars in (("sent", cost_usd), ("raw", raw_cost_usd)):
            self._gateway_cost.labels(label, history).inc(max(0.0, dollars))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, labels: list[str], buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, labels, buckets=buckets, registry=self.registry)


def _uses(used: TokenUse) -> list[tuple[str, int]]:
    return [
        ("input", used.input_tokens),
        ("cache_write", used.cache_write_tokens),
        ("cache_read", used.cache_read_tokens),
        ("output", used.output_tokens),
    ]
