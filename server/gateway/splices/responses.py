"""One answer of the Responses API from several."""

from collections.abc import Sequence

from esker.server.agents.content import as_list
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.counts import count_of
from esker.server.gateway.protocols.responses import ENDS
from esker.server.gateway.server_sent_events import SentEvent, written
from esker.server.gateway.splices.splice import TOOL, RecallCall, Splice, recall_call, summed

_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
# Calls that the provider answers itself.
_OF_PROVIDER = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
)


class ResponsesSplice(Splice):
    """The events `response.created` of the first answer and `response.completed` of the last one, and items between."""

    def __init__(self) -> None:
        super().__init__()
        self._id: Json = None
        # The items that the client has got, of all answers, by the number that they have for it.
        self._shown: dict[int, JsonObject] = {}
        self._sequence: int | None = None
        self._written = 0
        self._begin()

    def _begin(self) -> None:
        """Begin with the next answer."""
        self._items: dict[int, JsonObject] = {}
        # The number of each item of this answer that the client gets.
        self._places: dict[int, int] = {}
        self._held: list[SentEvent] = []
        self._end: SentEvent | None = None

    def unsent(self) -> list[SentEvent]:
        """Return the events of this answer that are held."""
        return self._held

    def take(self, event: SentEvent) -> list[bytes]:
        """Return what the client gets when an event has come."""
        data = event.data
        if event.name in _BEGINNINGS:
            self._id = self._id or as_object(data.get("response")).get("id")
            return [] if self._answered else [self._sent(event)]
        if event.name in ENDS:
            self._end = event
            return []
        index = data.get("output_index")
        if not isinstance(index, int):
            return [self._sent(event)]
        if event.name in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = as_object(data.get("item"))
        item = self._items.get(index, {})
        if _is_ours(item):
            return []
        if item.get("type") == "reasoning" and index not in self._places:
            self._held.append(event)
            return []
        return [*self._released(), self._sent(event)]

    def has_ended(self) -> bool:
        """Return whether the last event has come."""
        return self._end is not None

    def take_document(self, document: JsonObject) -> None:
        """Take a whole answer."""
        for index, item in enumerate(as_list(document.get("output"))):
            self.take(SentEvent("response.output_item.done", {"output_index": index, "item": item}, b""))
        self._id = self._id or document.get("id")
        name = "response.completed" if document.get("status") in (None, "completed") else "response.incomplete"
        self._end = SentEvent(name, {"response": document}, b"")

    def calls(self) -> list[RecallCall]:
        """Return the calls of the tool."""
        if self._end is None or self._end.name != "response.completed":
            return []
        return [
            recall_call(item.get("call_id"), item.get("arguments")) for item in self._items.values() if _is_ours(item)
        ]

    def has_other_calls(self) -> bool:
        """Return whether tools of the client are called."""
        return any(_is_call(item) and not _is_ours(item) for item in self._items.values())

    def answer(self, results: Sequence[str]) -> list[Json]:
        """Return the answer and the results as items of an input."""
        unshown = {event.data.get("output_index") for event in self._held}
        items = [self._items[index] for index in sorted(self._items)]
        hidden = [
            self._items[index] for index in sorted(self._items) if index in unshown or _is_ours(self._items[index])
        ]
        calls = [item for item in items if _is_ours(item)]
        answered: list[Json] = [
            {"type": "function_call_output", "call_id": call.get("call_id"), "output": result}
            for call, result in zip(calls, results, strict=True)
        ]
        self.hidden += [*_as_input(hidden), *answered]
        if not self.has_other_calls():
            self._written += count_of(as_object(self._response().get("usage")), "output_tokens")
            self._answered += 1
            self._begin()
        return [*_as_input(items), *answered]

    def finish(self) -> list[bytes]:
        """Return the last thoughts if no call followed them, and the end."""
        found = [] if self.hides_call() else self._released()
        if self._end is None:
            return found
        if not (self._answered or self.hides_call()):
            return [*found, self._sent(self._end)]
        return [*found, self._sent(self._end, {"response": self._whole()})]

    def document(self) -> JsonObject:
        """Return the whole answer."""
        self.finish()
        return self._whole()

    def _whole(self) -> JsonObject:
        """Return the last answer with the items that the client has got of all."""
        last = self._response()
        usage = summed(as_object(last.get("usage")), "output_tokens", self._written)
        usage = summed(usage, "total_tokens", self._written)
        return {**last, "id": self._id, "output": [self._shown[place] for place in sorted(self._shown)], "usage": usage}

    def _response(self) -> JsonObject:
        return as_object(self._end.data.get("response")) if self._end else {}

    def hides_call(self) -> bool:
        """Return whether the answer has a call of the tool, which may be one that was cut off."""
        return any(map(_is_ours, self._items.values()))

    def _released(self) -> list[bytes]:
        """Return the reasoning that was held."""
        held, self._held = self._held, []
        return [self._sent(event) for event in held]

    def _sent(self, event: SentEvent, changed: JsonObject | None = None) -> bytes:
        """Return an event with the numbers that it and its item have for the client, and with other changed members."""
        data = {**event.data, **(changed or {})}
        index = data.get("output_index")
        if isinstance(index, int):
            place = self._places.setdefault(index, len(self._shown))
            self._shown[place] = self._items.get(index, {})
            data["output_index"] = place
        if isinstance(number := data.get("sequence_number"), int):
            self._sequence = number if self._sequence is None else self._sequence + 1
            data["sequence_number"] = self._sequence
        return event.raw if data == event.data else written(event, data)


def _is_call(item: JsonObject) -> bool:
    kind = str(item.get("type") or "")
    return kind.endswith("_call") and kind not in _OF_PROVIDER


def _is_ours(item: JsonObject) -> bool:
    return item.get("type") == "function_call" and item.get("name") == TOOL


def _as_input(items: Sequence[JsonObject]) -> list[Json]:
    """Return items of an answer as those of an input; the provider has stored none of them.

    Reasoning is understood by its encrypted content alone; without it, other items must not name themselves.
    """
    kept = [item for item in items if item.get("type") != "reasoning" or item.get("encrypted_content")]
    dropped = {"status"} if len(kept) == len(items) else {"status", "id"}
    return [{name: value for name, value in item.items() if name not in dropped} for item in kept]
