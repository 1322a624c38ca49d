"""The documentation is a tested product: nothing is missing from it, and what it shows works."""

import re
import tomllib
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from docs_site.reference import PAGES as REFERENCE
from esker.server.app import unconnected_app
from esker.server.cli.verbs import VERBS
from esker.server.core.config.client_settings import CLIENT_SETTINGS, ClientSettings, variable
from esker.server.core.config.settings import Settings
from esker.server.core.records import KINDS
from evals.__main__ import app as evals
from evals.retrieval.command import READERS
from tests.support.exported_metrics import exported_metrics
from tests.support.processes import ROOT

PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


COMPOSE_VARIABLES = set(re.findall(r"\$\{ESKER_(\w+)", page("docker-compose.yml")))


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    [row] = [
        line for line in page("docs/configuration.md").splitlines() if line.startswith(f"| `ESKER_{name.upper()}` |")
    ]
    default = Settings.model_fields[name].default
    if isinstance(default, bool):
        assert f"`{str(default).lower()}`" in row
    elif isinstance(default, int | float):
        assert f"| {int(default) if default == int(default) else default} |" in row
    elif isinstance(default, str):
        assert f"| `{default}` |" in row


@pytest.mark.parametrize("name", sorted(CLIENT_SETTINGS))
def test_every_setting_of_clients_is_documented_with_its_default(name: str) -> None:
    lines = page("docs/configuration.md").splitlines()
    [row] = [line for line in lines if line.startswith(f"| `{variable(name)}` |")]
    default = getattr(ClientSettings(), name)
    assert f"| `{default}`" in row if default else "| none |" in row


def test_every_documented_setting_exists() -> None:
    of_compose = {name.lower() for name in COMPOSE_VARIABLES}
    for text in PAGES:
        for name in re.findall(r"`ESKER_([A-Z_]+)`", text.read_text(encoding="utf-8")):
            assert name.lower() in {*Settings.model_fields, *CLIENT_SETTINGS, *of_compose}, (text.name, name)


def test_every_variable_of_the_compose_file_is_documented() -> None:
    settings = {name.upper() for name in Settings.model_fields}
    missing = [name for name in COMPOSE_VARIABLES - settings if f"`ESKER_{name}`" not in page("docs/deployment.md")]
    assert missing == []


def test_the_documented_routes_are_the_routes_of_the_server() -> None:
    app = unconnected_app()
    there = {f"{method.upper()} {path}" for path, item in app.openapi()["paths"].items() for method in item}
    documented = set(re.findall(r"\| `((?:GET|POST|DELETE|PUT|PATCH) [^`]+)` \|", page("docs/api.md")))
    assert documented == there


def test_every_verb_and_every_option_of_serve_is_documented() -> None:
    text = page("docs/cli.md")
    for verb in VERBS:
        assert f"`esker {verb}" in text, verb
    assert set(re.findall(r"`esker (\w+)", text)) <= set(VERBS)


def test_every_command_option_and_format_of_the_evals_is_documented() -> None:
    text = page("docs/evals.md")
    group = typer.main.get_command(evals)
    assert isinstance(group, TyperGroup)
    for name, command in group.commands.items():
        assert f"`python -m evals {name}" in text, name
        for option in (option for parameter in command.params for option in parameter.opts):
            assert not option.startswith("--") or f"`{option}" in text, option
    for name in READERS:
        assert f"`{name}`" in text, name


def test_the_documented_metrics_are_those_that_are_exported() -> None:
    rows = re.findall(r"^\| `((?:esker)_\w+)` \| ([\w, ]*) \|", page("docs/monitoring.md"), re.MULTILINE)
    documented = {name: {label for label in labels.split(", ") if label.strip()} for name, labels in rows}
    assert len(documented) == len(rows)
    assert documented == {name: labels for name, labels in exported_metrics().items() if name.startswith("esker_")}


def test_every_kind_of_memory_is_a_word_of_the_architecture() -> None:
    words = page("docs/architecture.md")
    for kind in KINDS:
        assert f"`{kind}`" in words


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_have_a_target(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        if not target.startswith("https://"):  # those are not asked for in tests
            target_path = (path.parent / target).resolve()
            made = (
                target_path.relative_to(ROOT / "docs").as_posix() if target_path.is_relative_to(ROOT / "docs") else ""
            )
            assert target_path.exists() or made in REFERENCE, target


def test_the_numbers_of_formats_of_secrets_are_documented() -> None:
    tables = tomllib.loads(page("server/core/redaction/formats.toml"))
    formats = {**tables["prefixed"], **tables["inside"]}
    entries = sum(len(of_kind) for table in ("prefixed", "inside") for of_kind in tables[table].values())
    assert f"{entries} beginnings and patterns of {len(formats)} kinds" in page("docs/decisions/secrets.md")
    assert f"{entries} formats of {len(formats)} kinds" in page("CHANGELOG.md")


def test_every_folder_of_tests_is_documented() -> None:
    folders = {file.parent.name for file in (ROOT / "tests").glob("*/test_*.py")}
    table = [line for line in page("CONTRIBUTING.md").splitlines() if line.startswith("| `")]
    documented = {name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert documented == folders | {"clients"}


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    listed = set(re.findall(r"\]\(([^)]+)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert listed == {file.name for file in folder.glob("*.md")} - {"README.md"}


def test_the_commands_of_the_readme_are_targets() -> None:
    targets = set(re.findall(r"^([a-z]+):", page("Makefile"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md"):
        for command in re.findall(r"^make (\w+)", page(name), re.MULTILINE):
            assert command in targets


def test_the_map_of_the_readme_matches_the_folders() -> None:
    block = page("README.md").split("## Where things are")[1].split("```")[1]
    for name in re.findall(r"^ *((?:[a-z_]+/ *)+)", block, re.MULTILINE):
        for folder in name.split():
            assert (ROOT / folder).is_dir() or (ROOT / "server" / folder).is_dir(), folder
    folders = {path.name for path in (ROOT / "server").iterdir() if path.is_dir() and not path.name.startswith("__")}
    assert {name for name in folders if f"{name}/" not in block} == set()


# Packaging ---------------------------------------------------------------------------------------------------------


def pinned(file: str) -> dict[str, str]:
    """Return the entries of a lock file by package, with their hashes; comments and markers are checked, too."""
    entries = [entry for entry in re.split(r"\n(?=[a-z])", page(file)) if entry.strip()]
    form = re.compile(r"([a-z0-9-]+)==[A-Za-z0-9.]+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n*")
    found = {match[1]: entry for entry in entries if (match := form.fullmatch(entry))}
    assert len(found) == len(entries), [entry for entry in entries if not form.fullmatch(entry)]
    return found


@pytest.mark.parametrize("file", ["requirements/lock.txt", "requirements/runtime.txt", "requirements/tools.txt"])
def test_a_lock_pins_every_package_with_its_hashes_and_names_no_path_or_index(file: str) -> None:
    assert len(pinned(file)) > 20


def declared(*lists: list[str]) -> set[str]:
    """Return the names of required packages but torch, which has no hash."""
    required = [requirement for each in lists for requirement in each if not requirement.startswith("esker[")]
    return {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=; ]", each)[0].lower()) for each in required} - {"torch"}


def test_the_locks_have_every_dependency_that_is_declared() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    frameworks = re.findall(r"^([a-z0-9-]+)==", page("requirements/integrations.txt"), re.MULTILINE)
    locked = pinned("requirements/lock.txt").keys() | set(frameworks)
    assert declared(project["dependencies"], *extras.values()) <= locked
    assert declared(project["dependencies"]) <= pinned("requirements/runtime.txt").keys()
    assert f"TORCH := {extras['models'][-1]}" in page("Makefile")


def test_the_locks_agree_on_versions() -> None:
    everything = pinned("requirements/lock.txt")
    for name, entry in pinned("requirements/runtime.txt").items():
        assert entry.split()[0] == everything.get(name, entry).split()[0]


def test_the_image_runs_as_a_user_without_rights() -> None:
    assert "USER esker" in page("Dockerfile")
    assert "--require-hashes" in page("Dockerfile")
