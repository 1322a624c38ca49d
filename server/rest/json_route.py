"""A route whose JSON body is cleaned before validation: NUL characters, lone surrogates, excessive depth."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Set
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

# Bytes up to which parsing takes less time than starting a thread.
_SMALL = 64 * 1024
_JSON = "application/json"


class CleanRequest(Request):
    """A request whose body is parsed by `server/core/json_input.py`."""

    parsed: Json = None

    async def parse(self) -> None:
        """Read the body, if there is one. Raises InvalidInput, which FastAPI would turn into a bare 400."""
        body = await self.body()
        if not body:
            return
        if _media_type(self) != _JSON:
            raise InvalidInput("The body must be sent as JSON.", hint=f"Send the header Content-Type: {_JSON}.")
        self.parsed = parse_json(body) if len(body) < _SMALL else await asyncio.to_thread(parse_json, body)

    async def json(self) -> Json:
        """Return the body, cleaned."""
        return self.parsed


class StrictRoute(APIRoute):
    """A route that refuses unknown query parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, preceded by a check of the query."""
        handle = super().get_route_handler()
        known = {parameter.alias for parameter in self.dependant.query_params}

        async def handle_known(request: Request) -> Response:
            _refuse_unknown(known, request.query_params.keys())
            return await handle(request)

        return handle_known


class JsonRoute(StrictRoute):
    """A route that also reads its body through CleanRequest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, which gets a CleanRequest."""
        handle = super().get_route_handler()

        async def handle_clean(request: Request) -> Response:
            clean = CleanRequest(request.scope, request.receive)
            try:
                await clean.parse()
            except ClientDisconnect:
                return Response(status_code=499)  # the client has gone; an incomplete request changes nothing
            return await handle(clean)

        return handle_clean


def _media_type(request: Request) -> str:
    """Return the type of a request's body in lower case, without parameters such as the charset."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _refuse_unknown(known: Set[str], given: Iterable[str]) -> None:
    """Raise InvalidInput for an unknown parameter: a misspelt filter must not be ignored."""
    if unknown := sorted(set(given) - known):
        known_names = ", ".join(sorted(known)) or "none"
        raise InvalidInput(f"Unknown query parameter {unknown[0][:80]!r}.", hint=f"Known are: {known_names}.")
