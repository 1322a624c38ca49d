"""The server under test: a child process of its own, or one that runs already; spoken to over HTTP only."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Self, cast

import httpx2
from rich.progress import Progress

from esker.server.core.announcement import read_announcement
from esker.server.core.errors import InvalidInput, Unavailable

# `wait=true` answers after five minutes at the latest.
_SECONDS = 600.0
POLL_SECONDS = 0.2
"""How long to wait before asking once more whether something is done."""
_STALLED_SECONDS = 600.0
_ANY_QUESTION = "anything"


class Server:
    """A connection to a server, kept open between calls until the block ends that it is used in."""

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
            raise Unavailable(f"No Esker answers at {self.url} ({error or type(error).__name__}).") from error
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
    """Raise InvalidInput where a pool has something: a suite would change it, and measure it along with its own."""
    if (
        server.get("/v1/memories", limit=1, include_superseded="true")["memories"]
        or server.get("/v1/sessions", limit=1)["sessions"]
    ):
        raise InvalidInput(
            f"The pool at {server.url} is in use: a suite writes to its pool, and reads all of it.",
            hint="Make one for this run (`esker pool create NAME`), and give its key with --key.",
        )


def until_done(server: Server, path: str, body: object = None) -> Any:
    """Have something observed or reflected by a path with `wait=true`, however long it takes; return the report.

    Raises InvalidInput, Unavailable: the server answers with what its job failed with.
    """
    while (report := server.post(path, body))["queued"]:
        pass
    return report


def wait_for_vectors(server: Server, shown: Progress, description: str) -> None:
    """Wait until every row can be found by meaning, if anybody embeds. Raises Unavailable when nothing moves."""
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
            why = answer["reason"] or f"{pending} rows have no vector, and none gets one"
            raise Unavailable(f"Nothing is found by meaning: {why}.", hint="`esker doctor` says how to mend it.")
        time.sleep(POLL_SECONDS)
    shown.update(task, total=most or 1, completed=most or 1)


def _findable(answer: dict[str, Any]) -> bool:
    return answer["semantic"] == "ok" and not answer["pending"]


@contextmanager
def connected(url: str | None, key: str | None, **settings: str) -> Generator[Server]:
    """Yield the server at `url`, or without one a new server that lives, with its database, while the block runs.

    `settings` are of the new server, beside those of the environment.
    """
    if url is None:
        with tempfile.TemporaryDirectory(prefix="esker-evals-") as directory, _started(directory, settings) as started:
            yield started
        return
    with Server(url, key) as running:
        yield running


@contextmanager
def _started(directory: str, settings: Mapping[str, str]) -> Generator[Server]:
    command = [sys.executable, "-P", "-m", "esker", "serve", "--port", "0", "--data-dir", directory, "--json"]
    command += ["--until-stdin-closes"]  # which they do when the block ends, however it ends
    environment = {k: v for k, v in os.environ.items() if k not in ("ESKER_DATABASE_URL", "ESKER_HOST", "ESKER_PORT")}
    environment |= {"ESKER_LOG_LEVEL": "error", **settings}
    # A process group of its own: Ctrl-C is for this program, which then ends the server and waits for it.
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None  # it is a pipe
        with Server(read_announcement(process.stdout)["url"]) as server:
            yield server
    finally:
        process.communicate()  # closes what it reads from, and waits
