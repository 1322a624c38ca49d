"""An HTTP connection to the server, with its errors raised as Esker's."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import httpx2

from esker.server.core.errors import (
    Conflict,
    EskerError,
    Forbidden,
    InvalidInput,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from esker.server.core.http_answers import BUSY, Problem, no_address, pause, read_answer, unreachable

_ERRORS: dict[int, type[EskerError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: InvalidInput,
}


class HttpConnection:
    """Speaks JSON with one server."""

    def __init__(
        self, url: str, key: str | None, timeout: float, retries: int, http: httpx2.AsyncClient | None
    ) -> None:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._own = http is None
        self._http = http or httpx2.AsyncClient(timeout=timeout)
        self._url = url.rstrip("/")
        self._headers = headers
        self._retries = retries

    async def close(self) -> None:
        """Close the HTTP client, unless the caller passed it in."""
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

    async def request(self, method: str, path: str, query: Mapping[str, Any], body: object) -> Any:
        """Return the answer to any request. Raises an EskerError."""
        given = {name: _plain(value) for name, value in query.items() if value is not None}
        return await self._call(method, path, params=given, **({} if body is None else {"json": body}))

    async def lines(self, path: str) -> AsyncGenerator[str]:
        """Yield the lines of the answer to a GET as they arrive. Raises an EskerError."""
        try:
            async with self._http.stream("GET", f"{self._url}{path}", headers=self._headers) as answer:
                if answer.status_code >= 400:
                    _read(answer.status_code, await answer.aread())
                async for line in answer.aiter_lines():
                    yield line
        except httpx2.TransportError as error:
            raise unreachable(self._url, error) from error

    async def _call(self, method: str, path: str, **request: Any) -> Any:
        answer = await self._exchange(method, path, request)
        for _ in range(self._retries):
            if answer.status_code not in BUSY:
                break
            await asyncio.sleep(pause(answer.headers.get("Retry-After")))
            answer = await self._exchange(method, path, request)
        return _read(answer.status_code, answer.content)

    async def _exchange(self, method: str, path: str, request: dict[str, Any]) -> httpx2.Response:
        try:
            return await self._http.request(method, f"{self._url}{path}", headers=self._headers, **request)
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
            raise no_address(self._url) from error
        except httpx2.TransportError as error:
            raise unreachable(self._url, error) from error


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _read(status: int, text: bytes) -> Any:
    """Return an answer. Raises the EskerError that it describes."""
    answer = read_answer(status, text)
    if isinstance(answer, Problem):
        kind = _ERRORS.get(status, Unavailable if status >= 500 or status in BUSY else EskerError)
        raise kind(answer.detail, hint=answer.hint)
    return answer
