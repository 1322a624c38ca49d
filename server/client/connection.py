"""One HTTP connection to the server, and its errors as ours."""

import json
from typing import Any, cast

import httpx2

from server.core.errors import (
    Conflict,
    EskerError,
    Forbidden,
    InvalidInput,
    Misconfigured,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)

_ERRORS: dict[int, type[EskerError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidInput,
}


class Connection:
    """Speaks JSON with one server."""

    def __init__(self, url: str, key: str | None, timeout: float, http: httpx2.AsyncClient | None) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._own = http is None
        self._http = http or httpx2.AsyncClient(timeout=timeout)
        self._url = url.rstrip("/")
        self._headers = headers

    async def close(self) -> None:
        """Close what was opened here; an HTTP client that was handed in stays open."""
        if self._own:
            await self._http.aclose()

    async def get(self, path: str, **query: Any) -> Any:
        """Return the answer to a GET; parameters that are None are left out. Raises an EskerError."""
        given = {name: _plain(value) for name, value in query.items() if value is not None}
        return await self._call("GET", path, params=given)

    async def post(self, path: str, body: object = None) -> Any:
        """Return the answer to a POST. Raises an EskerError."""
        return await self._call("POST", path, json=body)

    async def patch(self, path: str, body: object) -> Any:
        """Return the answer to a PATCH. Raises an EskerError."""
        return await self._call("PATCH", path, json=body)

    async def delete(self, path: str, **query: Any) -> Any:
        """Return the answer to a DELETE. Raises an EskerError."""
        return await self._call("DELETE", path, params={name: _plain(value) for name, value in query.items()})

    async def _call(self, method: str, path: str, **what: Any) -> Any:
        try:
            answer = await self._http.request(method, f"{self._url}{path}", headers=self._headers, **what)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise Misconfigured(
                f"{self._url!r} is no address of a server.", hint="It looks like http://127.0.0.1:8377."
            ) from error
        except httpx2.TransportError as error:
            raise Unavailable(
                f"No Esker answers at {self._url} ({error or type(error).__name__}).",
                hint="Start it with `esker serve`, or say where it is.",
            ) from error
        return _read(answer.status_code, answer.content)


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _read(status: int, text: bytes) -> Any:
    """Return an answer. Raises what it says went wrong."""
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise Unavailable(f"What answers there is not Esker (status {status}).") from error
    if status < 400:
        return value
    kind = _ERRORS.get(status, Unavailable if status >= 500 else EskerError)
    problem = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    raise kind(problem.get("detail") or f"The server answered {status}.", hint=problem.get("hint"))
