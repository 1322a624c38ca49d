"""Refusals of MCP calls, in words that a model or a user can act on, in place of the library's."""

from collections.abc import Iterable, Sequence

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import ValidationError

from esker.server.core.invalid_values import problem_with
from esker.server.core.text.fencing import neutral

UNEXPECTED = "An internal error occurred in Esker; its log has the details. Try again, or continue without memory."

_MOST = 5
_LONGEST = 80
# The library's message for a call before the handshake; wrong arguments raise a ValidationError instead.
_TOO_SOON = "Invalid request parameters"


def problems_of(error: ValidationError) -> str:
    """Return the problems of a call, argument by argument."""
    found = error.errors(include_url=False, include_input=False)
    problems = list(dict.fromkeys(problem_with(_path(detail["loc"]), detail) for detail in found))
    more = [f"and {len(problems) - _MOST} more"] if len(problems) > _MOST else []
    return "; ".join([*problems[:_MOST], *more])


def _path(location: Sequence[int | str]) -> str:
    """Return the path of an invalid value, such as `kinds[1]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return neutral("".join(parts).lstrip(".")[:_LONGEST]) or "this"


def unknown(noun: str, given: str, known: Iterable[str]) -> str:
    """Return the message for an unknown name, with the known ones; ignoring a misspelt filter would be wrong."""
    one_of = ", ".join(sorted(known))
    named = neutral(given[:_LONGEST])
    return f"Unknown {noun} {named!r}; {f'it must be one of: {one_of}' if one_of else 'there are none'}."


class PlainErrors(ServerMiddleware[object]):
    """Describes invalid parameters of a method, which the library does not."""

    async def __call__(self, ctx: ServerRequestContext[object, object], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and reword refusals. Raises MCPError."""
        try:
            return await call_next(ctx)
        except ValidationError as error:
            message = f"Invalid params of {ctx.method}: {problems_of(error)}."
            raise MCPError(INVALID_PARAMS, message) from error
        except MCPError as error:
            if error.code == INVALID_PARAMS and error.message == _TOO_SOON:
                raise MCPError(INVALID_PARAMS, "The handshake is missing: send initialize first.") from error
            raise
