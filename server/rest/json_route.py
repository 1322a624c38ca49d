"""A route whose JSON body is cleaned before it is looked at: NUL bytes, lone surrogates, absurd depth."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Set
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

# Below this a body is parsed faster than a thread starts.
_SMALL = 64 * 1024


class CleanRequest(Request):
    """A request whose body is parsed by `server/core/json_input.py`."""

    parsed: Json = None

    async def parse(self) -> None:
        """Read the body, if there is one. Raises InvalidInput; the framework would hide it behind a bare 400."""
        body = await self.body()
        if body:
            self.parsed = parse_json(body) if len(body) < _SMALL else await asyncio.to_thread(parse_json, body)

    async def json(self) -> Json:
        """Return the body, cleaned."""
        return self.parsed


class StrictRoute(APIRoute):
    """A route that refuses query parameters which it does not know."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route with a look at the query before it."""
        handle = super().get_route_handler()
        known = {parameter.alias for parameter in self.dependant.query_params}

        async def handle_known(request: Request) -> Response:
            _refuse_unknown(known, request.query_params.keys())
            return await handle(request)

        return handle_known


class JsonRoute(StrictRoute):
    """A route that also reads its body through CleanRequest."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route with the request replaced."""
        handle = super().get_route_handler()

        async def handle_clean(request: Request) -> Response:
            clean = CleanRequest(request.scope, request.receive)
            try:
                await clean.parse()
            except ClientDisconnect:
                return Response(status_code=499)  # nobody reads it; what was not sent whole changes nothing
            return await handle(clean)

        return handle_clean


def _refuse_unknown(known: Set[str], given: Iterable[str]) -> None:
    """Raise InvalidInput for a parameter that we do not know: a misspelt filter would be no filter."""
    if unknown := sorted(set(given) - known):
        there = ", ".join(sorted(known)) or "none"
        raise InvalidInput(f"There is no query parameter {unknown[0][:80]!r} here.", hint=f"There is: {there}.")
