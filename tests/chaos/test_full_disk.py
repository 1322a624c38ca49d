"""The disk of a real server is full: writes are refused in words, and all goes on when there is space again."""

import os
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.processes import esker, serve
from tests.support.waiting import PATIENCE, eventually_here

pytestmark = pytest.mark.slow

_MEGABYTE = 2**20
_BATCH = 20


@pytest.fixture
def disk() -> Generator[Path]:
    """A disk of 160 MB."""
    with tempfile.TemporaryDirectory(prefix="esker-disk-", dir="/tmp") as directory:
        command = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "tmpfs", directory]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("only root can mount a small disk")
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", directory], check=True)


def fill(disk: Path, but: int) -> Path:
    """Fill a disk with a file, so that `but` bytes are left."""
    found = os.statvfs(disk)
    path = disk / "filler"
    path.write_bytes(bytes(max(0, found.f_bavail * found.f_frsize - but)))
    return path


def batch(number: int) -> dict[str, Any]:
    """Return some messages that need space."""
    texts = [f"We decided {number}x{n}: {os.urandom(3_000).hex()}" for n in range(_BATCH)]
    return {
        "messages": [{"external_id": f"m{number}x{n}", "role": "user", "content": text} for n, text in enumerate(texts)]
    }


def test_a_full_disk_loses_nothing_that_was_acknowledged_and_is_named(disk: Path) -> None:
    data_dir = str(disk / "data")
    with (
        serve("--data-dir", data_dir, ESKER_WORKER="false") as (_, said),
        httpx2.Client(base_url=said["url"], timeout=PATIENCE) as client,
    ):
        session = client.post("/v1/sessions", json={"client": "api", "external_id": "s"}).json()["id"]
        filler = fill(disk, 3 * _MEGABYTE)
        acknowledged = 0
        while (answer := client.post(f"/v1/sessions/{session}/messages", json=batch(acknowledged))).status_code == 200:
            acknowledged += _BATCH
        assert (answer.status_code, int(answer.headers["Retry-After"]) > 0) == (503, True)
        assert client.get("/livez").status_code == 200
        ready = client.get("/readyz")
        assert ready.status_code == 503
        assert "disk" in " ".join(ready.json()["reasons"])
        filler.unlink()
        eventually_here(lambda: client.get("/readyz").status_code == 200)
        last = {"messages": [{"external_id": "last", "role": "user", "content": "Done."}]}
        eventually_here(lambda: client.post(f"/v1/sessions/{session}/messages", json=last).status_code == 200)
        shown = client.get(f"/v1/sessions/{session}").json()
        assert (shown["messages"] - acknowledged - 1) in (0, _BATCH), (
            "a write that was refused may be stored, but whole"
        )
        assert shown["lost"] == 0
        found = esker("doctor", "--data-dir", data_dir, ESKER_URL=said["url"]).stdout
        assert "invariants of 1 pool hold" in found, found
