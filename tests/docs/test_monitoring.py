"""The dashboard and the alerts name only what is exported, and every metric is in one of them or documented."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.exported_metrics import exported_metrics, series_of
from tests.support.processes import ROOT

RULES = ROOT / "deploy/prometheus/esker.rules.yml"
DASHBOARD = ROOT / "deploy/grafana/esker.json"


def rules() -> list[dict[str, Any]]:
    """Return the alert rules."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """Return the panels with queries."""
    return [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]


def queries() -> Iterator[str]:
    """Yield every query of the dashboard and the alerts."""
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    yield from (rule["expr"] for rule in rules())


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_a_query_uses_metrics_and_labels_that_are_exported(query: str) -> None:
    exported = exported_metrics()
    named = {name: labels for metric, labels in exported.items() for name in series_of(metric)}
    used = set(re.findall(r"\b(?:esker|process)_\w+", query))
    assert used <= set(named)
    assert used or query.startswith("up{")
    labels = {label for name in used for label in named[name]} | {"le", "instance", "job"}
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
    matched = set(re.findall(r"(\w+)(?:=~|!~|!=|=)\"", query))
    assert grouped | matched <= labels


def test_every_metric_of_esker_is_on_the_dashboard() -> None:
    shown = " ".join(target["expr"] for panel in panels() for target in panel["targets"])
    names = {name for name in exported_metrics() if name.startswith("esker_") and name != "esker_build_info"}
    assert {name for name in names if not re.search(rf"\b{name}(?:_bucket|_count)?\b", shown)} == set()


def test_every_alert_says_what_happened_and_what_to_do() -> None:
    found = rules()
    assert len({rule["alert"] for rule in found}) == len(found)
    for rule in found:
        assert rule["alert"].startswith("Esker")
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert set(rule["annotations"]) == {"summary", "action"}


def test_every_panel_has_a_place_and_a_title_of_its_own() -> None:
    found = panels()
    assert len({panel["title"] for panel in found}) == len(found)
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in found]
    assert len(set(places)) == len(places)


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not here")
def test_promtool_accepts_the_rules() -> None:
    checked = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
