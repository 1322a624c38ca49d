"""The reference of errors, from their classes and the table of statuses."""

from collections.abc import Iterator

from docs_site.reference.tables import code, table
from esker.server.core.errors import EskerError
from esker.server.rest.problems import STATUS


def errors_page() -> str:
    """Return the page with every error."""
    rows = [
        (code(kind.__name__), status_of(kind), _first_line(kind), kind.hint or "") for kind in every_error(EskerError)
    ]
    return f"""# Errors

Every error has a message that says what happened and why, and often a hint that says what to do next. HTTP answers
with a [Problem](documents.md#problem) (`application/problem+json`) and the status in the table; MCP gives the error of
a tool to the model as its result; the command line prints the message and the hint, and exits with 1. `esker jobs show`
names the kind of a job's last error. A message that describes the case more closely replaces the usual one.

{table(("error", "HTTP status", "usual message", "usual hint"), rows)}"""


def every_error(kind: type[EskerError]) -> Iterator[type[EskerError]]:
    """Yield an error class and all below it, in the order of their definition."""
    yield kind
    for below in kind.__subclasses__():
        if below.__module__ == EskerError.__module__:
            yield from every_error(below)


def status_of(kind: type[EskerError]) -> str:
    """Return the HTTP status of an error class."""
    return next((str(status) for base, status in STATUS if issubclass(kind, base)), "500")


def _first_line(kind: type[EskerError]) -> str:
    return (kind.__doc__ or "").strip()
