"""The thread of a model lets other processes go first, or not any more, and never works beside its successor."""

import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from esker.server.core.arrays import Vectors
from esker.server.core.records import Space
from esker.server.providers.local_embedder import LocalEmbedder
from tests.support.vectors import matrix
from tests.support.waiting import PATIENCE


@dataclass
class Watched:
    """A model that notes the niceness of its thread, and can be held in a call."""

    space: Space = field(default_factory=lambda: Space("watched_1", "watched", "", 1, "", "watched"))
    niceness: list[int] = field(default_factory=list[int])
    entered: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)
    inside: int = 0
    together: int = 0

    def of_rows(self, texts: list[str]) -> Vectors:
        """Note the niceness; wait, if the text says so."""
        self.inside += 1
        self.together = max(self.together, self.inside)
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, 0))
        if texts == ["held"]:
            self.entered.set()
            self.held.wait()
        self.inside -= 1
        return matrix([1.0] for _ in texts)

    def of_queries(self, texts: list[str]) -> Vectors:
        """Embed questions like rows."""
        return self.of_rows(texts)

    def split(self, texts: list[str]) -> list[list[str]]:
        """Note the niceness."""
        self.niceness.append(os.getpriority(os.PRIO_PROCESS, 0))
        return [[text] for text in texts]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness for each thread")
async def test_the_thread_of_a_model_gives_way_and_returns_without_any_right() -> None:
    model = Watched()
    embedder = LocalEmbedder(lambda: model)
    await embedder.load()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for patient in (False, True, True, False):
        embedder.be_patient(patient)
        await embedder.embed(["text"])
        await embedder.split(["text"])
    given_way = min(19, own + 10)
    assert model.niceness == [own, own, given_way, given_way, given_way, given_way, own, own]
    assert os.getpriority(os.PRIO_PROCESS, 0) == own


async def test_a_call_begins_after_those_before_a_change_of_priority() -> None:
    model = Watched()
    embedder = LocalEmbedder(lambda: model)
    await embedder.load()
    first = asyncio.create_task(embedder.embed(["held"]))
    await asyncio.to_thread(model.entered.wait)
    embedder.be_patient(True)
    second = asyncio.create_task(embedder.embed(["text"]))
    asyncio.get_running_loop().call_later(0.05, model.held.set)
    assert [made.tolist() for made in await asyncio.gather(first, second)] == [[[1.0]], [[1.0]]]
    assert model.together == 1


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="no autogroups here")
def test_the_session_of_a_worker_gives_way_and_returns_with_its_model() -> None:
    program = """
import asyncio
from pathlib import Path
from tests.unit.test_thread_priority import Watched
from esker.server.providers.local_embedder import LocalEmbedder
from tests.support.waiting import PATIENCE

async def show():
    embedder = LocalEmbedder(Watched)
    await embedder.load()
    for patient in (True, False):
        # Linux refuses changes that follow one another too fast.
        while not Path("/proc/self/autogroup").read_text().endswith("nice 10\\n" if patient else "nice 0\\n"):
            for now in (not patient, patient):
                embedder.be_patient(now)
                await embedder.embed(["text"])
        print(patient)

asyncio.run(show())
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "True\nFalse\n"
