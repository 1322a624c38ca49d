"""The settings that a run reports, and options that are refused before it starts."""

import json
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal
from typer.testing import CliRunner

from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.settings import Settings
from esker.server.core.errors import InvalidInput
from esker.server.db.database import Database
from evals.__main__ import app
from evals.observation.command import observation
from evals.reflection.command import reflection
from evals.serving import Server, connected
from tests.support.processes import using
from tests.support.serving import serving
from tests.support.suites import first_cases

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def url(loop: BlockingPortal, database_url: str) -> Generator[str]:
    """The URL of a server with an extractive observer and a reflector whose model is unreachable."""
    roles = {"ESKER_OBSERVER": "extractive", "ESKER_REFLECTOR": "model", "ESKER_REFLECTOR_MODEL": "of-the-server"}
    model = {"ESKER_LLM_BASE_URL": NOWHERE, "ESKER_LLM_API_KEY": "k", "ESKER_EMBEDDER": "none"}
    parts = make_parts(Settings.from_environment(roles | model), Database(database_url), system_clock)
    with loop.wrap_async_context_manager(serving(parts)) as listening:
        yield listening


def test_a_run_reports_the_roles_of_its_server(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = first_cases(tmp_path, "observation", 1)
    observation(cases, questions=False, url=url, json_file=tmp_path / "run.json")
    run = json.loads((tmp_path / "run.json").read_text())["run"]
    assert (run["observer"], run["reflector"]) == ("extractive", "of-the-server")
    assert "observation (observer extractive, reflector of-the-server): 1 case" in capsys.readouterr().out


def test_a_server_started_for_a_run_has_the_requested_roles_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESKER_OBSERVER", "extractive")
    monkeypatch.setenv("ESKER_EMBEDDER", "none")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with connected(None, None, ESKER_OBSERVER="off", ESKER_REFLECTOR="extractive") as server:
        [folder] = tmp_path.iterdir()
        assert using(folder)
        serving = server.get("/readyz")
        assert (serving["observer"], serving["reflector"]) == ("off", "extractive")
    assert (using(folder), [*tmp_path.iterdir()]) == ([], [])


def test_a_pool_in_use_is_neither_changed_nor_measured(url: str, tmp_path: Path) -> None:
    cases = first_cases(tmp_path, "observation", 1)
    with Server(url) as server:
        server.post("/v1/memories", {"content": "My dentist is Dr. Quill."})
        before = server.get("/v1/memories")
        with pytest.raises(InvalidInput, match="is not empty"):
            observation(cases, questions=False, url=url)
        assert server.get("/v1/memories") == before
        assert not server.get("/v1/sessions")["sessions"]


@pytest.mark.parametrize("by", ["extractive", "model"])
def test_roles_cannot_be_set_for_a_running_server(tmp_path: Path, by: str) -> None:
    cases = first_cases(tmp_path, "poison", 1)
    roles = ("--observer", by, "--reflector", by)
    done = CliRunner().invoke(app, ["poison", "--cases", str(cases), "--url", NOWHERE, *roles])
    assert isinstance(done.exception, InvalidInput)
    assert f"--observer and --reflector cannot be set with --url: the server at {NOWHERE} has its roles already" in str(
        done.exception
    )


def test_the_error_of_a_job_ends_the_run(url: str, tmp_path: Path) -> None:
    cases = first_cases(tmp_path, "reflection", 1)
    with pytest.raises(InvalidInput, match=r"/reflect.*127\.0\.0\.1:9"):
        reflection(cases, questions=False, url=url)


@pytest.mark.parametrize("suite", ["reflection", "observation", "poison", "mutations"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    tmp_path: Path, suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(f"evals.{'catching' if suite == 'mutations' else f'{suite}.command'}.chosen")
    (tmp_path / "file").write_text("")
    for folder in ("nowhere", "file"):
        done = CliRunner().invoke(app, [suite, "--json", str(tmp_path / folder / "run.json")])
        assert isinstance(done.exception, InvalidInput)
        assert "does not exist" in str(done.exception)


def test_a_file_without_permission_is_refused_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("evals.reflection.command.chosen")
    # The user of this test may be root.
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    done = CliRunner().invoke(app, ["reflection", "--json", str(tmp_path / "run.json")])
    assert isinstance(done.exception, InvalidInput)
    assert "permission denied" in str(done.exception)


@pytest.mark.parametrize(
    ("suite", "option"), [("pack", "--observer"), ("reflection", "--observer"), ("poison", "--judge")]
)
def test_a_suite_has_only_the_options_that_it_takes(suite: str, option: str) -> None:
    assert CliRunner().invoke(app, [suite, option, "extractive"]).exit_code == 2
