"""The site: every page has its place, links lead somewhere, and the reference has everything with its meaning."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from docs_site.built_pages import drop_unused, move_scripts_out, name_search
from docs_site.client_pictures import NAMES
from docs_site.pages import for_site, source_pages
from docs_site.pictures import FOLDER, pictures
from docs_site.reference import PAGES
from docs_site.reference.commands import commands_of
from esker.server.agents.install.clients import CLIENTS
from esker.server.app import unconnected_app
from esker.server.cli.verbs import VERBS
from esker.server.core import errors
from esker.server.core.config.client_settings import CLIENT_SETTINGS, variable
from esker.server.core.config.settings import Settings
from esker.server.core.ranking import KIND_BIAS, PRIORITY_WEIGHT, pack_score
from esker.server.core.records import Kind, Priority
from tests.support.exported_metrics import exported_metrics
from tests.support.processes import ROOT

CONFIGURATION = yaml.safe_load((ROOT / "docs_site/mkdocs.yml").read_text())


@cache
def reference(name: str) -> str:
    """Return a page that is made from the code."""
    return PAGES[f"reference/{name}.md"]()


def in_navigation(entry: Any = None) -> Iterator[str]:
    """Yield the paths of pages in the navigation."""
    match CONFIGURATION["nav"] if entry is None else entry:
        case str(path):
            yield path
        case list(entries):
            for each in entries:
                yield from in_navigation(each)
        case dict(parts):
            for each in parts.values():
                yield from in_navigation(each)


def rows(page: str) -> list[list[str]]:
    """Return the cells of the tables of a page; the first one is a name."""
    lines = re.findall(r"^\| (`.*) \|$", reference(page), re.MULTILINE)
    cells = [re.split(r" (?<!\\)\| ", line) for line in lines]
    return [[re.findall("`([^`]+)`", first)[0], *rest] for first, *rest in cells]


def test_every_page_is_in_the_navigation_and_no_other() -> None:
    pages = {name for name, _ in source_pages() if not re.fullmatch(r"decisions/(?!README).*", name)} | set(PAGES)
    listed = list(in_navigation())
    assert set(listed) == pages, "docs_site/mkdocs.yml has the navigation"
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize(
    ("page", "text", "shown"),
    [
        ("docs/api.md", "[x](decisions/load.md#a)", "[x](decisions/load.md#a)"),
        ("docs/decisions/load.md", "[x](../api.md)", "[x](../api.md)"),
        ("docs/api.md", "[x](../README.md)", "[x](index.md)"),
        ("docs/api.md", "[x](decisions)", "[x](decisions/README.md)"),
        ("docs/decisions/load.md", "[the rules](../../CONTRIBUTING.md#r)", "[the rules](../project/contributing.md#r)"),
        ("CONTRIBUTING.md", "[x](docs/api.md)", "[x](../api.md)"),
        ("docs/api.md", "[`core/a.py`](../server/core/a.py)", "`server/core/a.py`"),
        ("docs/api.md", "[the code](../server/core/a.py)", "the code (`server/core/a.py`)"),
        ("docs/api.md", "[x](https://example.org/) [y](#z)", "[x](https://example.org/) [y](#z)"),
        ("docs/api.md", "```sh\n[x](../README.md)\n```", "```sh\n[x](../README.md)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site_or_name_a_file(page: str, text: str, shown: str) -> None:
    assert for_site(page, text) == shown


def test_no_script_of_a_built_page_is_inline_and_nothing_unused_stays(tmp_path: Path) -> None:
    scripts = tmp_path / "assets/javascripts"
    (scripts / "lunr").mkdir(parents=True)
    (tmp_path / "a/b").mkdir(parents=True)
    for name in ("lunr/de.js", "bundle.js", "bundle.js.map"):
        (scripts / name).write_text("")
    for name in ("index.html", "a/b/index.html"):
        (tmp_path / name).write_text('<p><script>go("x")</script><script type="application/json">{}</script>')
    drop_unused(tmp_path)
    move_scripts_out(tmp_path)
    [moved] = scripts.glob("inline.*.js")
    assert moved.read_text() == 'go("x")'
    assert {path.name for path in scripts.rglob("*.*")} == {"bundle.js", moved.name}
    kept = '<script type="application/json">{}</script>'
    address = f"assets/javascripts/{moved.name}"
    assert (tmp_path / "index.html").read_text() == f'<p><script src="{address}"></script>{kept}'
    assert (tmp_path / "a/b/index.html").read_text() == f'<p><script src="../../{address}"></script>{kept}'


def test_the_search_of_a_built_page_has_a_name_for_screen_readers(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<div class="md-search" role="dialog"><input></div>')
    name_search(tmp_path)
    assert 'role="dialog" aria-label="Search the documentation"' in (tmp_path / "index.html").read_text()


def test_the_reference_has_every_setting_with_its_meaning() -> None:
    found = rows("settings")
    assert {name for name, *_ in found} == {variable(name) for name in (*Settings.model_fields, *CLIENT_SETTINGS)}
    assert [name for name, *_, meaning in found if not meaning] == []


def test_the_reference_has_every_command_and_option_with_its_meaning() -> None:
    page = reference("commands")
    for verb in VERBS:
        commands = list(commands_of(verb))
        assert commands
        for name, command in commands:
            [part] = re.findall(rf"^## {name}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
            assert command.help, name
            for parameter in command.params:
                if not parameter.hidden:
                    assert parameter.help, (name, parameter.name)
                    assert parameter.help.split(". ")[0].split("<")[0].split("|")[0] in part, (name, parameter.name)


def test_the_reference_has_every_route_and_document() -> None:
    routes, documents = reference("routes"), reference("documents")
    api = unconnected_app().openapi()
    there = {f"{method.upper()} {path}" for path, item in api["paths"].items() for method in item}
    assert set(re.findall(r"^## ([A-Z]+ /.*)$", routes, re.MULTILINE)) == there
    headings = set(re.findall(r"^## (\w+)$", documents, re.MULTILINE))
    assert headings == set(api["components"]["schemas"])
    linked = set(re.findall(r"\]\((?:documents\.md)?#(\w+)\)", routes + documents))
    assert linked <= {name.lower() for name in headings}


def test_links_within_a_page_that_is_made_from_the_code_have_a_target() -> None:
    for name in ("settings", "tools", "errors"):
        page = reference(name)
        headings = {heading.lower() for heading in re.findall(r"^#+ (\w+)$", page, re.MULTILINE)}
        assert set(re.findall(r"\]\(#(\w+)\)", page)) <= headings, name


def test_the_reference_has_every_metric_and_every_error() -> None:
    metrics = {name for name in exported_metrics() if name.startswith("esker_")}
    assert {name for name, *_ in rows("metrics")} == metrics
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    assert {name for name, *_ in rows("errors")} == defined


def test_the_reference_has_every_tool_with_the_meaning_of_its_arguments() -> None:
    page = reference("tools")
    documented = re.findall(r"^\| `(\w+_memory|remember|memory_\w+)`", (ROOT / "docs/api.md").read_text(), re.MULTILINE)
    assert set(documented) <= set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert [name for name, *_, meaning in rows("tools") if not meaning] == []


def test_the_pictures_are_those_that_the_code_draws() -> None:
    drawn = pictures()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}
    assert there == drawn, "`python -m docs_site.pictures` draws them again"


def test_the_examples_of_ranking_are_computed_by_the_code() -> None:
    page = (ROOT / "docs/ranking.md").read_text(encoding="utf-8")
    examples = re.findall(r"^\| (observation|note|reflection), (\w+) \| (\d+) \| ([\d.]+) \|$", page, re.MULTILINE)
    assert len(examples) == 6
    now = datetime(2026, 11, 30, tzinfo=UTC)
    least = pack_score("observation", "low", now)
    for kind, priority, days, worth in examples:
        score = pack_score(cast("Kind", kind), cast("Priority", priority), now - timedelta(days=int(days)))
        assert f"{math.exp(score - least):.2f}" == worth
    weights = dict(re.findall(r"\| (high|medium|low) \| (\d)", page))
    assert {name: float(weight) for name, weight in weights.items()} == PRIORITY_WEIGHT
    biases = dict(re.findall(r"\| (note|reflection|observation) \| ([\d.]+) \|", page))
    assert {name: float(bias) for name, bias in biases.items()} == KIND_BIAS


def test_the_tutorials_are_those_of_the_clients_that_can_be_set_up() -> None:
    tutorials = {path.stem for path in (ROOT / "docs/start").glob("*.md")} - {"first-steps", "own-agent"}
    assert tutorials == set(CLIENTS) == set(NAMES)


def test_every_fact_about_a_peer_has_a_source_with_a_date() -> None:
    page = (ROOT / "docs/comparison.md").read_text(encoding="utf-8")
    sources = dict(re.findall(r"^\| ([a-z]\d) \| \[[^\]]+\]\(https://[^)]+\) \| (.*) \|$", page, re.MULTILINE))
    assert [name for name, version in sources.items() if not re.search(r"\d{4}-\d{2}-\d{2}$", version)] == []
    assert set(re.findall(r"\[([a-z]\d)\]", page)) == set(sources)
