"""All metrics that a server can export, read by the parser of Prometheus's own library from what it renders."""

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from esker.server.core.reports import Measure
from esker.server.rest.metrics import BACKLOG, OPERATIONS, PROCESS, Metrics
from esker.server.usecases.instruments import Instruments

_SUFFIXES = {"counter": "_total"}
_OF_HISTOGRAMS = ("_bucket", "_count", "_sum")


def exported_metrics() -> dict[str, set[str]]:
    """Return the names as they are documented, a histogram by its stem, with their labels."""
    instruments = Instruments()
    metrics = Metrics(instruments.registry)
    text = metrics.render(
        dict.fromkeys(PROCESS, 1.0),
        dict.fromkeys(BACKLOG, 1.0),
        [Measure(name, "observe", "ready", 1.0) for name in OPERATIONS],
    ).decode()
    labels = _labels(instruments.registry) | _labels(metrics.requests_registry)
    names: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        if family.name.endswith("_created"):  # the library adds it to whatever counts
            continue
        name = family.name + _SUFFIXES.get(family.type, "")
        seen = {label for sample in family.samples for label in sample.labels} - {"le"}
        names[name] = seen | labels.get(family.name, set())
    return names


def series_of(name: str) -> set[str]:
    """Return the names under which queries find a metric."""
    return {name, *(name + suffix for suffix in _OF_HISTOGRAMS)}


def _labels(registry: CollectorRegistry) -> dict[str, set[str]]:
    """Return the labels of metrics that have no series before something happens."""
    return {collector._name: set(collector._labelnames) for collector in registry._collector_to_names}  # type: ignore[attr-defined]
