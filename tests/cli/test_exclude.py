"""`esker exclude`, and what else of a user's settings holds in any environment."""

import json
from pathlib import Path
from typing import Any

from tests.support.processes import esker, esker_in


def exclude(state: Path, *arguments: str, code: int = 0, **more: str) -> Any:
    """Run `esker exclude` and return what it prints as JSON."""
    done = esker("exclude", *arguments, "--json", ESKER_STATE_DIR=str(state), **more)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout or done.stderr)


def test_patterns_are_added_shown_and_removed(tmp_path: Path) -> None:
    assert exclude(tmp_path, "acme/*", "/private") == {
        "added": ["acme/*", "/private"],
        "list": ["acme/*", "/private"],
    }
    assert exclude(tmp_path, "acme/*")["added"] == []
    shown = exclude(tmp_path, ESKER_EXCLUDE="/elsewhere,acme/*")
    assert shown == {"list": ["acme/*", "/private"], "environment": ["/elsewhere"]}
    assert exclude(tmp_path, "--remove", "acme/*") == {"removed": ["acme/*"], "list": ["/private"]}


def test_a_pattern_that_is_not_valid_is_refused_and_nothing_is_added(tmp_path: Path) -> None:
    done = esker("exclude", "acme/*", "/a/{b,c}", ESKER_STATE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "braces are not supported" in done.stderr
    assert exclude(tmp_path)["list"] == []


def test_it_says_whether_a_pattern_is_a_project_or_a_directory(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    (tmp_path / "secret").mkdir()
    added = esker_in(tmp_path, "exclude", "secret", "/work/other", ESKER_STATE_DIR=state)
    assert "The project secret is now in" in added.stdout
    assert "The directory /work/other is now in" in added.stdout
    assert f"to exclude the directory, write {tmp_path / 'secret'}." in added.stderr.replace("\n", " ")
    refused = esker_in(tmp_path, "exclude", "./secret", ESKER_STATE_DIR=state)
    assert refused.returncode == 1
    assert "write the whole path" in refused.stderr
