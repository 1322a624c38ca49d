"""The HTTP client of the command line and the hooks, on the standard library so that they start fast."""

import http.client
import json
import os
import re
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.local_token import token_for
from esker.server.core.errors import Misconfigured, Unavailable
from esker.server.core.http_answers import (
    BUSY,
    MOST_TRIES,
    Problem,
    ServerRefused,
    no_address,
    pause,
    read_answer,
    unreachable,
)

_CHUNK = 64 * 1024
# Characters of a path that are not quoted; an id typed by a user may contain any others.
_IN_PATHS = "/?&=%:;,@+~!$'()*[]-._"
_IN_HEADERS = re.compile(r"[!-~]+")
SECONDS = 600.0
"""Timeout of an answer, in seconds; long because `wait=true` waits for a language model."""


class Api:
    """A connection to a server, kept open between calls."""

    def __init__(self, url: str, key: str | None = None, timeout: float = SECONDS) -> None:
        """`url` is the server's address, `key` opens a pool. Raises Misconfigured for an invalid one."""
        parts = _split(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.url = url.rstrip("/")
        self._base = parts.path.rstrip("/")
        self._connection = kind(parts.hostname or "", parts.port, timeout=timeout)
        self._headers = {"Content-Type": "application/json"}
        if key and not _IN_HEADERS.fullmatch(key):
            # The library's error would repeat it.
            raise Misconfigured("The key contains a space, a line break or another character that no key has.")
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    @classmethod
    def to(cls, settings: ClientSettings, timeout: float = SECONDS) -> "Api":
        """Return a connection to the server of the settings. Raises Misconfigured for an invalid url."""
        return cls(settings.url, settings.key or token_for(settings.url, os.environ), timeout)

    def close(self) -> None:
        """Close the connection; another call opens a new one."""
        self._connection.close()

    def get(self, path: str, **query: Any) -> Any:
        """Return the answer to a GET; parameters that are None are left out. Raises Unavailable, ServerRefused."""
        given = {name: value for name, value in query.items() if value is not None}
        return self._call("GET", f"{path}?{urlencode(given, doseq=True)}" if given else path, None)

    def post(self, path: str, body: object = None) -> Any:
        """Return the answer to a POST. Raises Unavailable, ServerRefused."""
        return self._call("POST", path, body)

    def post_lines(self, path: str, lines: bytes) -> Any:
        """Return the answer to a POST of lines of JSON. Raises Unavailable, ServerRefused."""
        return self._call("POST", path, lines)

    def stream(self, path: str) -> Iterator[bytes]:
        """Yield the answer to a GET in chunks. Raises ServerRefused, and Unavailable, also if it breaks off."""
        answer = None
        try:
            self._connection.request("GET", self._base + path, headers=self._headers)
            answer = self._connection.getresponse()
            if answer.status >= 400:
                _read(answer.status, answer.read())
            while chunk := answer.read1(_CHUNK):
                yield chunk
        except (TimeoutError, OSError, http.client.HTTPException) as error:
            if answer is None:
                raise unreachable(self.url, error) from error
            raise Unavailable(
                f"The answer of {self.url} broke off.", hint="Try again; the server's log may have the cause."
            ) from error
        finally:
            self._connection.close()

    def ask_for_text(self, path: str, body: object = None) -> str:
        """Return the plain-text answer to a GET, or with a body to a POST."""
        return str(self._call("GET" if body is None else "POST", path, body, accept="text/plain"))

    def patch(self, path: str, body: object) -> Any:
        """Return the answer to a PATCH. Raises Unavailable, ServerRefused."""
        return self._call("PATCH", path, body)

    def delete(self, path: str) -> Any:
        """Return the answer to a DELETE. Raises Unavailable, ServerRefused."""
        return self._call("DELETE", path, None)

    def _call(self, method: str, path: str, body: object, accept: str = "application/json") -> Any:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        path = quote(path, safe=_IN_PATHS)
        try:
            status, text, seconds = self._exchange(method, path, data, accept)
            for _ in range(MOST_TRIES - 1):
                if status not in BUSY:
                    break
                time.sleep(seconds)
                status, text, seconds = self._exchange(method, path, data, accept)
        except (TimeoutError, OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise unreachable(self.url, error) from error
        return text.decode() if accept == "text/plain" and status < 400 else _read(status, text)

    def _exchange(self, method: str, path: str, data: bytes | None, accept: str) -> tuple[int, bytes, float]:
        """Return the status, the body, and the seconds to wait before a retry if the server is busy.

        An idle connection that the server has closed is reopened.
        """
        for reopen in (self._connection.sock is not None, False):
            try:
                self._connection.request(method, self._base + path, data, {**self._headers, "Accept": accept})
                answer = self._connection.getresponse()
                return answer.status, answer.read(), pause(answer.headers.get("Retry-After"))
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                self._connection.close()
                if not reopen:
                    raise
        raise AssertionError  # the second round returns or raises


def _split(url: str) -> SplitResult:
    """Return the parts of an address. Raises Misconfigured for an invalid one."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good, parts = False, urlsplit("")
    if not good:
        raise no_address(url)
    return parts


def _read(status: int, text: bytes) -> Any:
    answer = read_answer(status, text)
    if isinstance(answer, Problem):
        raise ServerRefused(answer.detail, status=answer.status, hint=answer.hint)
    return answer
