"""What is wrong with a call, in words that a model or a person can act on; the library's own are for programmers."""

import re
from collections.abc import Iterable, Mapping, Sequence

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import ValidationError
from pydantic_core import ErrorDetails

UNEXPECTED = "Something went wrong in Esker; its log has the details. Try again, or do without memory for now."

_MOST = 5
_LONGEST = 80
# How pydantic begins to say what a value has to be.
_SUBJECT = re.compile(r"^[A-Z]\w*(?: \w+)? (?=should )")
_TIME = "should be a time such as 2026-03-01T14:30:00Z, or a date"
_SAID: Mapping[str, str] = {
    "missing": "is missing",
    "int_parsing": "should be a whole number",
    "int_type": "should be a whole number",
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "string_type": "should be a text",
    "list_type": "should be a list",
    "dict_type": "should be an object",
    "model_type": "should be an object",
}
# What the library says to whoever calls before the handshake; arguments that are wrong come as a ValidationError.
_TOO_SOON = "Invalid request parameters"


def what_is_wrong(error: ValidationError) -> str:
    """Return what has to be mended, argument by argument."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = list(dict.fromkeys(map(_said, found)))
    more = [f"and {len(said) - _MOST} more"] if len(said) > _MOST else []
    return "; ".join([*said[:_MOST], *more])


def _said(detail: ErrorDetails) -> str:
    kind = detail["type"]
    rule = _TIME if kind.startswith("datetime") else _SAID.get(kind) or _SUBJECT.sub("", detail["msg"])
    return f"{_place(detail['loc'])} {rule}"


def _place(location: Sequence[int | str]) -> str:
    """Return where something is wrong, such as `kinds[1]`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).lstrip(".")[:_LONGEST] or "this"


def unknown(what: str, given: str, known: Iterable[str]) -> str:
    """Return that there is no such thing, with those that there are: a misspelt filter would be no filter."""
    one_of = ", ".join(sorted(known))
    return f"There is no {what} {given[:_LONGEST]!r}; {f'it is one of: {one_of}' if one_of else 'there are none'}."


class PlainErrors(ServerMiddleware[object]):
    """Says what is wrong with the parameters of a method, which the library would not."""

    async def __call__(self, ctx: ServerRequestContext[object, object], call_next: CallNext) -> HandlerResult:
        """Pass a message on, and reword what it is refused with. Raises MCPError."""
        try:
            return await call_next(ctx)
        except ValidationError as error:
            told = f"The params of {ctx.method} are not right: {what_is_wrong(error)}."
            raise MCPError(INVALID_PARAMS, told) from error
        except MCPError as error:
            if error.code == INVALID_PARAMS and error.message == _TOO_SOON:
                raise MCPError(INVALID_PARAMS, "The handshake comes first: send initialize.") from error
            raise
