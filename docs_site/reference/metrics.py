"""The reference of metrics, read by the parser of Prometheus's own library from what a server renders."""

from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from docs_site.reference.tables import code, table
from esker.server.core.reports import Measure
from esker.server.rest.metrics import BACKLOG, OPERATIONS, PROCESS, Metrics
from esker.server.usecases.instruments import Instruments

_SUFFIXES = {"counter": "_total"}


@dataclass(frozen=True, slots=True)
class ExportedMetric:
    """A metric under its documented name, which for a histogram has no suffix."""

    name: str
    kind: str
    meaning: str
    labels: frozenset[str]


def exported() -> list[ExportedMetric]:
    """Return all metrics that a server can export, in their order."""
    instruments = Instruments()
    metrics = Metrics(instruments.registry)
    text = metrics.render(
        dict.fromkeys(PROCESS, 1.0),
        dict.fromkeys(BACKLOG, 1.0),
        [Measure(name, "observe", "ready", 1.0) for name in OPERATIONS],
    ).decode()
    known = _labels(instruments.registry) | _labels(metrics.requests_registry)
    return [
        ExportedMetric(
            family.name + _SUFFIXES.get(family.type, ""),
            family.type,
            family.documentation,
            frozenset({label for sample in family.samples for label in sample.labels} - {"le"})
            | known.get(family.name, frozenset()),
        )
        for family in text_string_to_metric_families(text)
        if not family.name.endswith("_created")  # the library adds it to every counter
    ]


def metrics_page() -> str:
    """Return the page with every metric."""
    rows = [
        (code(each.name), each.kind, ", ".join(sorted(each.labels)), each.meaning)
        for each in exported()
        if each.name.startswith("esker_")
    ]
    return f"""# Metrics

Every metric of `/metrics`. [Monitoring](../monitoring.md) says who may read them, which to watch, and which alerts
exist. Metrics of the process itself (`process_…`) come from Prometheus's library.

{table(("metric", "type", "labels", "meaning"), rows)}"""


def _labels(registry: CollectorRegistry) -> dict[str, frozenset[str]]:
    """Return the labels of metrics that have no series before something happens."""
    collectors: dict[Any, Any] = vars(registry)["_collector_to_names"]  # the library has no public list of label names
    return {vars(each)["_name"]: _names(each) for each in collectors}


def _names(collector: object) -> frozenset[str]:
    names: tuple[str, ...] = vars(collector)["_labelnames"]
    return frozenset(names)
