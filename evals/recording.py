"""Recordings of a language model's answers: recorded once from a real endpoint, and replayed without one.

The server under test calls a proxy on this machine, so its path to the model is the one of production. A recording is
found by the whole request: a changed prompt finds none, which is reported as an error.
"""

import hashlib
import json
import re
import threading
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
from pydantic import ValidationError

from esker.server.core.errors import EskerError, InvalidInput
from esker.server.core.json_input import JsonObject
from evals.case_files import StrictPart
from evals.input import json_of

_SECONDS = 600.0
_POLL_SECONDS = 0.05
"""Seconds between two checks whether the proxy should stop; also the longest wait at the end."""
_REPEATED = ("content-type", "retry-after", "request-id")
_JSON = {"content-type": "application/json"}
_OWN = ("host", "content-length", "connection", "accept-encoding")
# Ids differ in each run; their order identifies them. In JSON an id at the beginning of a line follows the n of an
# escaped line break, so the character before it is not checked.
_ID = re.compile(r"(?:mem|ses|grp|ref|psg)_[0-9a-z]{26}(?![0-9a-z])")


class Recorded(StrictPart):
    """The content of a file: a request and its answer."""

    status: int
    headers: dict[str, str]
    request: JsonObject
    answer: str


@dataclass(slots=True)
class Tape:
    """A folder with one file for each answer; without an `endpoint` only those are given."""

    folder: Path
    endpoint: str | None = None
    given: int = 0
    missing: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    _times: Counter[str] = field(default_factory=Counter[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of the answer to a request."""
        request = json.loads(body)
        file = self._file(request)
        if self.endpoint is None:
            return self._found(file, request)
        status, kept, text = _forward(self.endpoint + path, body, headers)
        recording = Recorded(status=status, headers=dict(kept), request=request, answer=text)
        file.write_text(json.dumps(recording.model_dump(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        with self._lock:
            self.given += 1
        return status, kept, text.encode()

    def _file(self, request: JsonObject) -> Path:
        """Return the file of the answer to a request; each repetition of a request has its own."""
        name = fingerprint(request)
        with self._lock:
            self._times[name] += 1
            return self.folder / f"{name}-{self._times[name]}.json"

    def _found(self, file: Path, request: JsonObject) -> tuple[int, Mapping[str, str], bytes]:
        if not file.is_file():
            with self._lock:
                self.missing.append(file.name)
            # The server does not retry a 400.
            return 400, _JSON, _error("invalid_request_error", f"No answer is recorded in {file}.").encode()
        try:
            recording = Recorded.model_validate(json_of(file))
        except (InvalidInput, ValidationError):
            with self._lock:
                self.unreadable.append(file.name)
            return 400, _JSON, _error("invalid_request_error", f"{file} is not a recorded answer.").encode()
        with self._lock:
            self.given += 1
        # The ids that an answer cites have changed; they are in the same order in the request.
        now = dict(zip(_ids(_text(recording.request)), _ids(_text(request)), strict=False))
        answer = _ID.sub(lambda found: now.get(found[0], found[0]), recording.answer)
        return recording.status, recording.headers, answer.encode()


def _forward(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, Mapping[str, str], str]:
    """Return the answer of an endpoint; an unreachable one becomes a 502, so that a replay gives the same."""
    try:
        answer = httpx2.post(url, content=body, headers=dict(headers), timeout=_SECONDS)
    except httpx2.HTTPError as error:
        return 502, _JSON, _error("api_error", f"{url} does not answer ({str(error) or type(error).__name__}).")
    kept = {name: value for name, value in answer.headers.items() if name in _REPEATED}
    return answer.status_code, kept, answer.text


def _error(kind: str, message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}})


def fingerprint(request: JsonObject) -> str:
    """Return a hash of a request in which ids are replaced by their order."""
    text = _text(request)
    place = {found: f"id{number}" for number, found in enumerate(_ids(text))}
    return hashlib.sha256(_ID.sub(lambda found: place[found[0]], text).encode()).hexdigest()[:32]


def _text(request: JsonObject) -> str:
    return json.dumps(request, sort_keys=True, ensure_ascii=False)


def _ids(text: str) -> list[str]:
    return list(dict.fromkeys(_ID.findall(text)))


@contextmanager
def recorded(
    record: Path | None, replay: Path | None, environ: Mapping[str, str]
) -> Generator[tuple[Tape | None, dict[str, str]]]:
    """Yield the tape, or None, and the settings with which a server uses it while the block runs.

    Raises InvalidInput if both are given, nothing can be recorded or replayed, or a request has no recorded answer,
    which takes precedence over errors of the block.
    """
    folder = record or replay
    if folder is None:
        yield None, {}
        return
    if record and replay:
        raise InvalidInput("--record and --replay exclude each other.", hint="Use one of them.")
    if replay and not any(replay.glob("*.json")):
        raise InvalidInput(f"{replay} has no recording.", hint="--record makes one.")
    key = environ.get("ESKER_LLM_API_KEY") or environ.get("ANTHROPIC_API_KEY")
    endpoint = environ.get("ESKER_LLM_BASE_URL") or ("https://api.anthropic.com" if key else None)
    if record and endpoint is None:
        raise InvalidInput("No model is configured to record.", hint="Set ESKER_LLM_API_KEY or ESKER_LLM_BASE_URL.")
    folder.mkdir(parents=True, exist_ok=True)
    tape = Tape(folder, _root(endpoint) if record and endpoint else None)
    failed: EskerError | None = None
    with _listening(tape) as url:
        try:
            yield tape, {"ESKER_LLM_BASE_URL": url, "ESKER_LLM_API_KEY": key or "replayed"}
        except EskerError as error:
            failed = error
    if tape.unreadable:
        raise InvalidInput(
            f"{folder / tape.unreadable[0]} is not a recorded answer.", hint="Record again with a model."
        ) from failed
    if tape.missing:
        several = f"{len(tape.missing)} requests are" if len(tape.missing) > 1 else "A request is"
        raise InvalidInput(
            f"{several} not in the recording ({tape.missing[0]}): our prompts or the cases have"
            " changed since, or the recording was not finished.",
            hint="Record again with a model, and compare the two runs.",
        ) from failed
    if failed:
        raise failed


def _root(endpoint: str) -> str:
    """Return the URL of an endpoint in the form of the settings."""
    return endpoint.rstrip("/").removesuffix("/v1")


@contextmanager
def _listening(tape: Tape) -> Generator[str]:
    class TapeHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer a request from the tape."""
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            forwarded = {name: value for name, value in self.headers.items() if name.lower() not in _OWN}
            status, headers, text = tape.answer(self.path, body, forwarded)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), TapeHandler) as server:
        threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
