"""`esker reflect` and `esker reflections` against a real server."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest

from tests.support.made import made_at
from tests.support.processes import ROOT, environment, esker, served
from tests.support.waiting import PATIENCE

RULE = "Never use floats for money."
ASKED = "Please look at the {0} page."
# A report and a later report that replaces it.
REPORTED = (
    "The limit of the {0} queue in the worker is 30 jobs.",
    "The limit of the {0} queue in the worker is 40 jobs.",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[dict[str, str]]:
    """The environment of a command with a running server that has two sessions of ten days ago."""
    with served("--data-dir", made_at(tmp_path_factory.mktemp("d") / "d")) as (_, said):
        with httpx2.Client(base_url=said["url"], timeout=PATIENCE) as client:
            for name in ("one", "two"):
                talked(client, name)
        yield {"ESKER_URL": said["url"]}


def talked(client: httpx2.Client, name: str) -> None:
    """Observe a session of ten days ago."""
    session = client.post("/v1/sessions", json={"client": "api", "external_id": name, "project": name}).json()["id"]
    spoken = [("user", f"{RULE} In {name} that holds as well.")]
    for word in WORDS:
        for report in REPORTED:
            spoken += [("user", ASKED.format(word)), ("assistant", report.format(f"{name} {word}"))]
    then = datetime.now(UTC) - timedelta(days=10)
    messages = [
        {"external_id": str(n), "role": role, "content": text, "sent_at": (then + timedelta(minutes=n)).isoformat()}
        for n, (role, text) in enumerate(spoken)
    ]
    client.post(f"/v1/sessions/{session}/messages", json={"messages": messages}).raise_for_status()
    client.post(f"/v1/sessions/{session}/observe?wait=true").raise_for_status()


WORDS = "anchor basket candle dragon engine forest harbour island".split()


def printed(*arguments: str, **server: str) -> str:
    """Return the output of a command that must succeed."""
    done = esker(*arguments, **server)
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_json(*arguments: str, **server: str) -> Any:
    """Return the JSON output of a command."""
    return json.loads(printed(*arguments, "--json", **server))


def on_terminal(*arguments: str, **server: str) -> str:
    """Return the output of a command on a terminal."""
    ours, theirs = pty.openpty()
    more = environment(**server, TERM="xterm-256color", COLUMNS="200")
    command = [sys.executable, "-P", "-m", "esker", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=more, stdout=theirs, stderr=subprocess.DEVNULL) as process:
        os.close(theirs)
        shown = b""
        while chunk := _read(ours):
            shown += chunk
    os.close(ours)
    assert process.returncode == 0
    return shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other end is closed
        return b""


def changes_of(diff: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the ids of the removed rows and of the new ones."""
    gone = [
        row["id"] for change in diff["changes"] if change["change"] in ("became", "dropped") for row in change["before"]
    ]
    return gone, [change["after"]["id"] for change in diff["changes"] if change["after"]]


def test_a_session_is_reflected_shown_and_undone(server: dict[str, str]) -> None:
    before = as_json("memories", "--session", "one", **server)
    shown = printed("reflect", "one", "--wait", **server)
    [made] = as_json("reflections", "--session", "one", **server)
    assert f"{len(before)} memories became {len(made['output_ids'])}" in shown
    assert (made["scope"], made["state"], made["reflector"]) == ("session", "committed", "extractive")
    listed = printed("reflections", "--session", "one", **server)
    assert [made["id"] in line for line in listed.splitlines()].count(True) == 1
    assert f"{made['tokens_before']:,} → {made['tokens_after']:,}" in listed
    assert as_json("reflections", "--session", "two", **server) == []

    diff = as_json("reflections", "diff", made["id"], **server)
    gone, came = changes_of(diff)
    assert gone
    lines = printed("reflections", "diff", made["id"], **server).splitlines()
    word_for_word = {
        row["id"]: change["after"]["id"]
        for change in diff["changes"]
        for row in change["before"]
        if change["after"] and row["content"] == change["after"]["content"] and len(change["before"]) == 1
    }
    assert word_for_word
    assert len(word_for_word) < len(came)
    for sign, ids in (("- ", gone), ("+ ", came)):
        for memory in ids:
            signs = [line[:2] for line in lines if line.endswith(f"[{memory}]")]
            if memory in word_for_word:
                assert signs == [], "what stays word for word is shown once, as what it is now"
            else:
                assert signs == ["  " if memory in word_for_word.values() else sign]
    assert any(RULE in line for line in lines)

    undone = printed("reflections", "undo", made["id"], **server)
    assert f"{len(gone)} memories are live again" in undone
    assert as_json("memories", "--session", "one", **server) == before
    again = esker("reflections", "undo", made["id"], "--json", **server)
    assert (again.returncode, "undone" in json.loads(again.stdout)["error"]) == (1, True)
    assert "undone" in printed("reflections", "--session", "one", **server)


def test_the_pool_is_reflected_after_a_dry_run_that_changes_nothing(server: dict[str, str]) -> None:
    before, there = as_json("memories", **server), as_json("reflections", **server)
    plan = as_json("reflect", "--dry-run", "--project", "two", **server)
    assert (plan["dry_run"], [batch["project"] for batch in plan["batches"]]) == (True, ["two"])
    shown = printed("reflect", "--dry-run", "--project", "two", **server)
    assert f"{plan['rows']} memories ({plan['tokens']:,} tokens) would be considered" in shown
    assert "two" in shown.splitlines()[-1]
    assert "0 memories (0 tokens)" in printed("reflect", "--dry-run", "--min-age-days", "30", **server)
    assert (as_json("memories", **server), as_json("reflections", **server)) == (before, there)

    report = as_json("reflect", "--project", "two", "--target-tokens", "1000", "--wait", **server)
    assert (len(report["reflection_ids"]), report["queued"]) == (1, False)
    [reflection] = report["reflection_ids"]
    assert "There is nothing to do" in printed("reflect", "--project", "two", "--wait", **server)
    assert "the pool, two" in printed("reflections", **server)
    undone = as_json("reflections", "undo", reflection, **server)
    assert (undone["id"], undone["restored"]) == (reflection, report["superseded"])
    assert as_json("memories", **server) == before


def test_every_session_is_reflected_and_only_terminals_get_colours(server: dict[str, str]) -> None:
    report = as_json("reflect", "--sessions", "--wait", **server)
    [reflection] = [i for session in report["sessions"] for i in session["reflection_ids"]][:1]
    plain = printed("reflections", "diff", reflection, **server)
    assert "\x1b" not in plain
    coloured = on_terminal("reflections", "diff", reflection, **server)
    assert re.search(r"\x1b\[31m- ", coloured), "what went is red"
    assert re.search(r"\x1b\[32m\+ ", coloured), "what came is green"
    without = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert without.split() == plain.split(), "the signs are there with and without colours"


def test_a_failed_reflection_command_is_explained(server: dict[str, str]) -> None:
    for arguments in (("diff", "ref_nowhere"), ("undo", "ref_nowhere")):
        done = esker("reflections", *arguments, **server)
        assert (done.returncode, "no reflection 'ref_nowhere'" in done.stderr) == (1, True)
    mixed = esker("reflect", "one", "--dry-run", **server)
    assert (mixed.returncode, "only to the whole pool" in " ".join(mixed.stderr.split())) == (2, True)
    few = esker("reflect", "--target-tokens", "1", "--wait", **server)
    assert (few.returncode, "target_tokens" in few.stderr) == (1, True)
