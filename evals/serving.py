"""The server under test: a child process, or a server that already runs; used over HTTP only."""

import os
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Self, cast

import httpx2
from rich.progress import Progress

from esker.server.core.announcement import read_announcement
from esker.server.core.child_command import child_command
from esker.server.core.errors import InvalidInput, Unavailable

# Timeout of a request; `wait=true` answers within five minutes.
_SECONDS = 600.0
POLL_SECONDS = 0.2
"""Pause between two questions whether something is done."""
_STALLED_SECONDS = 600.0
_ANY_QUESTION = "anything"


class Server:
    """A connection to a server, kept open until the end of its `with` block."""

    def __init__(self, url: str, key: str | None = None) -> None:
        """`url` is where it listens, `key` opens a pool."""
        self.url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx2.Client(base_url=self.url, headers=headers, timeout=_SECONDS)

    def get(self, path: str, **query: str | int) -> Any:
        """Return the answer to a GET. Raises Unavailable, InvalidInput."""
        return self._call("GET", path, params=query)

    def post(self, path: str, body: object = None) -> Any:
        """Return the answer to a POST. Raises Unavailable, InvalidInput."""
        return self._call("POST", path, json=body)

    def post_lines(self, path: str, lines: bytes) -> Any:
        """Return the answer to a POST of lines of JSON. Raises Unavailable, InvalidInput."""
        return self._call("POST", path, content=lines, headers={"Content-Type": "application/x-ndjson"})

    def delete(self, path: str) -> Any:
        """Return the answer to a DELETE. Raises Unavailable, InvalidInput."""
        return self._call("DELETE", path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _call(self, method: str, path: str, **content: Any) -> Any:
        try:
            answer = self._client.request(method, path, **content)
        except httpx2.HTTPError as error:
            raise Unavailable(f"No Esker answers at {self.url} ({str(error) or type(error).__name__}).") from error
        if answer.is_success:
            return answer.json()
        raise _refusal(method, path, answer)


def _refusal(method: str, path: str, answer: httpx2.Response) -> InvalidInput:
    try:
        problem: object = answer.json()
    except ValueError:
        problem = answer.text[:200]
    said: dict[str, Any] = cast("dict[str, Any]", problem) if isinstance(problem, dict) else {"detail": problem}
    fields = f" {said['errors']}" if "errors" in said else ""
    return InvalidInput(
        f"The server answered {answer.status_code} to {method} {path}: {said.get('detail', said)}{fields}",
        hint=said.get("hint"),
    )


def refuse_used_pool(server: Server) -> None:
    """Raise InvalidInput unless the pool is empty: a suite would change its rows and measure them with its own."""
    if (
        server.get("/v1/memories", limit=1, include_superseded="true")["memories"]
        or server.get("/v1/sessions", limit=1)["sessions"]
    ):
        raise InvalidInput(
            f"The pool at {server.url} is not empty: a suite writes to its pool and reads all of it.",
            hint="Create a pool for this run (`esker pool create NAME`), and pass its key with --key.",
        )


def until_done(server: Server, path: str, body: object = None) -> Any:
    """Observe or reflect by a path with `wait=true` until it is done, and return the report.

    Raises InvalidInput or Unavailable with the error of the job.
    """
    while (report := server.post(path, body))["queued"]:
        pass
    return report


def wait_for_vectors(server: Server, shown: Progress, description: str) -> None:
    """Wait until every row has a vector, if there is an embedder. Raises Unavailable when there is no progress."""
    if server.get("/readyz")["embedder"] == "none":
        return
    task = shown.add_task(description, total=None)
    most = last = 0
    moved = time.monotonic()
    while (answer := server.post("/v1/recall", {"query": _ANY_QUESTION, "limit": 1})) and not _findable(answer):
        pending = answer["pending"]
        most = max(most, pending)
        shown.update(task, total=most or None, completed=most - pending)
        if pending != last:
            last, moved = pending, time.monotonic()
        if time.monotonic() - moved > _STALLED_SECONDS:
            why = answer["reason"] or f"{pending} rows have no vector, and the number does not fall"
            raise Unavailable(f"Nothing is found by meaning: {why}.", hint="`esker doctor` shows how to fix it.")
        time.sleep(POLL_SECONDS)
    shown.update(task, total=most or 1, completed=most or 1)


def _findable(answer: dict[str, Any]) -> bool:
    return answer["semantic"] == "ok" and not answer["pending"]


@contextmanager
def connected(url: str | None, key: str | None, **settings: str) -> Generator[Server]:
    """Yield the server at `url` or, without a url, a new server with its own database for the length of the block.

    `settings` are added to the environment of the new server.
    """
    if url is None:
        with (
            tempfile.TemporaryDirectory(prefix="esker-evals-") as directory,
            started(directory, settings) as (server, _),
        ):
            yield server
        return
    with Server(url, key) as running:
        yield running


@contextmanager
def started(directory: str, settings: Mapping[str, str]) -> Generator[tuple[Server, int]]:
    """Yield a new server on a data directory, and the id of its process, for the length of the block."""
    command = child_command("esker", "serve", "--port", "0", "--data-dir", directory, "--json")
    command += ["--until-stdin-closes"]  # the pipe closes with the block, however it ends
    environment = {k: v for k, v in os.environ.items() if k not in ("ESKER_DATABASE_URL", "ESKER_HOST", "ESKER_PORT")}
    environment |= {"ESKER_LOG_LEVEL": "error", **settings}
    # In its own process group, so that Ctrl-C reaches only this program, which then ends the server and waits for it.
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None  # it is a pipe
        with Server(read_announcement(process.stdout)["url"]) as server:
            yield server, process.pid
    finally:
        process.communicate()  # closes its input, which ends it, and waits
