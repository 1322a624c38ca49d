"""A request and its answer, as one side of a connection saw them."""

from dataclasses import dataclass, field

Headers = list[tuple[str, str]]

TRIAL = "x-trial"
"""The header by which a request before the gateway and the one behind it are known as the same."""


@dataclass(slots=True)
class Exchange:
    """A request, and as much of its answer as was sent; header names are in lower case."""

    trial: str
    method: str
    path: str
    headers: Headers
    body: bytes
    status: int = 0
    answer_headers: Headers = field(default_factory=list[tuple[str, str]])
    answer: bytes = b""
    is_whole: bool = False

    def header(self, name: str) -> str:
        """Return the value of a header of the request; empty if it has none."""
        return next((value for each, value in self.headers if each == name), "")
