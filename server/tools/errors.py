"""Errors as a model reads them: what happened, why, what to do next."""

from collections.abc import Generator
from contextlib import contextmanager

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError

from esker.server.core.errors import EskerError, InvalidInput, NotFound


@contextmanager
def tool_errors(id_hint: str = "") -> Generator[None]:
    """Turn Esker's errors into tool errors; to a NotFound add where ids come from."""
    try:
        yield
    except NotFound as error:
        raise ToolError(" ".join(filter(None, (str(error), id_hint)))) from error
    except EskerError as error:
        raise ToolError(_with_hint(error)) from error


def exact_id(text: str, hint: str) -> str:
    """Return an id without surrounding white space. Raises ToolError for a blank one."""
    if not text.strip():
        raise ToolError(f"The id is blank. {hint}")
    return text.strip()


@contextmanager
def resource_errors() -> Generator[None]:
    """Turn Esker's errors into resource errors; a missing resource has an error code of its own."""
    try:
        yield
    except (NotFound, InvalidInput) as error:
        raise ResourceNotFoundError(_with_hint(error)) from error
    except EskerError as error:
        raise ResourceError(_with_hint(error)) from error


def _with_hint(error: EskerError) -> str:
    return " ".join(filter(None, (str(error), error.hint)))
