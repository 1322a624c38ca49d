"""Errors as a model reads them: what happened, why, what to do next."""

from collections.abc import Generator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError

from esker.server.core.errors import EskerError, InvalidInput, NotFound


@contextmanager
def told_to_the_model(id_hint: str = "") -> Generator[None]:
    """Turn our errors into those that reach the model; for something that is not there add where ids come from."""
    try:
        yield
    except NotFound as error:
        raise ToolError(" ".join(filter(None, (str(error), id_hint)))) from error
    except EskerError as error:
        raise ToolError(_whole(error)) from error


def exact_id(text: str, hint: str) -> str:
    """Return an id without white space around it. Raises ToolError for a blank one."""
    if not text.strip():
        raise ToolError(f"The id is blank. {hint}")
    return text.strip()


@contextmanager
def told_of_a_resource() -> Generator[None]:
    """Turn our errors into those of resources: one that is not there has a code of its own."""
    try:
        yield
    except (NotFound, InvalidInput) as error:
        raise ResourceNotFoundError(_whole(error)) from error
    except EskerError as error:
        raise ResourceError(_whole(error)) from error


def _whole(error: EskerError) -> str:
    return " ".join(filter(None, (str(error), error.hint)))
