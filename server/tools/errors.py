"""Errors as a model reads them: what happened, why, what to do next."""

from collections.abc import Generator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ToolError

from server.core.errors import EskerError, NotFound


@contextmanager
def told_to_the_model(id_hint: str = "") -> Generator[None]:
    """Turn our errors into those that reach the model; for something that is not there add where ids come from."""
    try:
        yield
    except NotFound as error:
        raise ToolError(" ".join(filter(None, (str(error), id_hint)))) from error
    except EskerError as error:
        raise ToolError(" ".join(filter(None, (str(error), error.hint)))) from error
