"""`esker spool`: queues are shown, sent on request, and deleted only on request."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from esker.server.agents.spool import Spool
from tests.support.made import made_at
from tests.support.processes import esker, served

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The URL of a running server."""
    with served("--data-dir", made_at(tmp_path_factory.mktemp("d") / "d"), "--no-worker") as (_, said):
        yield said["url"]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with a parcel for an unreachable server."""
    message = {"external_id": "m1", "role": "user", "content": "We use pnpm."}
    session = {"client": "codex", "external_id": tmp_path.name}
    assert Spool(tmp_path / "spool", NOWHERE, "gone").put({"session": session, "messages": [message]})
    return tmp_path


def spool_json(*arguments: str, state: Path, url: str) -> Any:
    """Run `esker spool --json` and return its output."""
    done = esker("spool", *arguments, "--json", ESKER_STATE_DIR=str(state), ESKER_URL=url)
    assert not done.stderr
    return json.loads(done.stdout)


def test_queues_are_listed_with_their_server_but_without_the_key(state: Path, server: str) -> None:
    [queue] = spool_json(state=state, url=server)
    assert (queue["server"], queue["keyed"], queue["parcels"], queue["for_here"]) == (NOWHERE, True, 1, False)
    shown = esker("spool", ESKER_STATE_DIR=str(state), ESKER_URL=server).stdout
    assert queue["id"] in shown
    assert "--send --for ID" in shown


def test_parcels_of_a_revoked_key_are_sent_only_when_named(state: Path, server: str) -> None:
    [queue] = spool_json(state=state, url=server)
    assert spool_json("--send", state=state, url=server)["sent"] == 0
    assert spool_json("--send", "--for", queue["id"], state=state, url=server) == {
        "sent": 1,
        "refused": 0,
        "waiting": 0,
        "held": 0,
    }
    assert spool_json(state=state, url=server) == []


def test_a_failed_send_says_why_and_keeps_the_parcels(state: Path) -> None:
    [queue] = spool_json(state=state, url=NOWHERE)
    assert "No Esker answers" in spool_json("--send", "--for", queue["id"], state=state, url=NOWHERE)["error"]
    assert [queue["parcels"] for queue in spool_json(state=state, url=NOWHERE)] == [1]


def test_a_queue_is_deleted_only_by_its_id(state: Path, server: str) -> None:
    assert "--for" in spool_json("--drop", state=state, url=server)["hint"]
    assert "No queue has the id" in spool_json("--drop", "--for", "other", state=state, url=server)["error"]
    [queue] = spool_json(state=state, url=server)
    assert spool_json("--drop", "--for", queue["id"], state=state, url=server) == {"dropped": 1}
    assert spool_json(state=state, url=server) == []
