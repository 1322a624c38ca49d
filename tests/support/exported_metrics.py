"""All metrics that a server can export, by the names that are documented and those of their series."""

from docs_site.reference.metrics import exported

_OF_HISTOGRAMS = ("_bucket", "_count", "_sum")


def exported_metrics() -> dict[str, set[str]]:
    """Return the names as they are documented, a histogram by its stem, with their labels."""
    return {metric.name: set(metric.labels) for metric in exported()}


def series_of(name: str) -> set[str]:
    """Return the names under which queries find a metric."""
    return {name, *(name + suffix for suffix in _OF_HISTOGRAMS)}
