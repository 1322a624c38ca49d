"""One coherent answer from those of several requests: the calls of `recall_memory` between them are not in it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.server_sent_events import SentEvent

TOOL = "recall_memory"


class RecallCall(NamedTuple):
    """A call of the tool: its id, and the question; an empty one if the model has not written it as it should."""

    id: str
    query: str


class Splice(ABC):
    """Takes the answers of a chain of requests, of which each one but the last ends with calls of the tool.

    The client sees one answer: its beginning as it comes, the parts numbered through, one end. Thoughts are held until
    the next part begins, and are hidden with a call that follows them at once: a provider checks that thoughts are sent
    back with what they led to. `hidden` are the items of the history that the client does not get.
    """

    def __init__(self) -> None:
        self.hidden: list[Json] = []
        # How many answers have ended with calls that were answered.
        self._answered = 0

    @abstractmethod
    def unsent(self) -> list[SentEvent]:
        """Return the events of this answer that are held."""

    @abstractmethod
    def take(self, event: SentEvent) -> list[bytes]:
        """Return what the client gets when an event of the stream has come; the end of the answer is held."""

    @abstractmethod
    def has_ended(self) -> bool:
        """Return whether the last event of the answer has come: the connection may stay open behind it."""

    @abstractmethod
    def take_document(self, document: JsonObject) -> None:
        """Take a whole answer."""

    @abstractmethod
    def calls(self) -> list[RecallCall]:
        """Return the calls of the tool in the answer that has ended; none if the answer was cut off."""

    @abstractmethod
    def hides_call(self) -> bool:
        """Return whether that answer has a call of the tool, which may be one that was cut off."""

    @abstractmethod
    def has_other_calls(self) -> bool:
        """Return whether that answer also calls tools of the client."""

    @abstractmethod
    def answer(self, results: Sequence[str]) -> list[Json]:
        """Return the items that continue the history of the request: the answer, and results for its calls of the tool.

        Those of them that the client does not get are added to `hidden`.
        """

    @abstractmethod
    def finish(self) -> list[bytes]:
        """Return the end of the stream for the client."""

    @abstractmethod
    def document(self) -> JsonObject:
        """Return the whole answer for the client."""


def recall_call(call_id: object, arguments: object) -> RecallCall:
    """Return a call from its arguments, which may be written as JSON."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    query = as_object(arguments).get("query")
    return RecallCall(str(call_id or ""), query.strip() if isinstance(query, str) else "")


def summed(used: JsonObject, name: str, more: int) -> JsonObject:
    """Return a provider's usage with more of one count."""
    count = used.get(name)
    return {**used, name: count + more} if isinstance(count, int) else used
