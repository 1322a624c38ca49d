"""One answer of OpenAI's chat completions from several."""

from collections.abc import Sequence

from esker.server.agents.content import Block, as_list
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.counts import count_of, index_of
from esker.server.gateway.server_sent_events import SentEvent, written
from esker.server.gateway.splices.splice import TOOL, RecallCall, Splice, recall_call, summed

_GAP = "\n\n"
_THOUGHTS = "reasoning_content"


class ChatSplice(Splice):
    """The chunks of all answers under the id of the first; the last chunks with an end and with usage, once each."""

    def __init__(self) -> None:
        super().__init__()
        self._id: Json = None
        # The text that the client has got, of all answers.
        self._text = ""
        self._written = 0
        self._begin()

    def _begin(self) -> None:
        """Begin with the next answer."""
        self._said = ""
        self._thought = ""
        self._calls: dict[int, Block] = {}
        # The number of each call of this answer that the client gets.
        self._places: dict[int, int] = {}
        self._ends: list[SentEvent] = []
        self._reason: Json = None
        self._usage: JsonObject = {}

    def unsent(self) -> list[SentEvent]:
        """Return the events of this answer that are held."""
        return self._ends

    def take(self, event: SentEvent) -> list[bytes]:
        """Return what the client gets when a chunk has come."""
        data = event.data
        self._id = self._id or data.get("id")
        self._usage = as_object(data.get("usage")) or self._usage
        choice = as_object(next(iter(as_list(data.get("choices"))), None))
        if not choice:
            # The usage, or what ends the stream; anything else is no part of the answer.
            is_end = bool(self._usage) or _is_last(event)
            self._ends += [event] if is_end else []
            return [] if is_end else [event.raw]
        delta = as_object(choice.get("delta"))
        seen = self._seen(delta)
        reason = choice.get("finish_reason")
        # Some servers send an empty one with each chunk.
        if not reason:
            return [] if delta and not seen else [self._chunk(event, choice, seen)]
        self._reason = reason
        is_changed = seen != delta or bool(self._answered) or self.hides_call()
        if is_changed:
            event = event._replace(data={**data, "choices": [{**choice, "delta": {}}]})
        self._ends.append(event)
        return [self._chunk(event, {**choice, "finish_reason": None}, seen)] if is_changed and seen else []

    def has_ended(self) -> bool:
        """Return whether the last event has come."""
        return any(map(_is_last, self._ends))

    def take_document(self, document: JsonObject) -> None:
        """Take a whole answer."""
        choice = as_object(next(iter(as_list(document.get("choices"))), None))
        message = as_object(choice.get("message"))
        numbered = [
            {**as_object(call), "index": index} for index, call in enumerate(as_list(message.get("tool_calls")))
        ]
        delta: JsonObject = {**message, **({"tool_calls": numbered} if numbered else {})}
        event = SentEvent("", {**document, "choices": [{**choice, "delta": delta}]}, b"")
        self.take(event)
        self._ends = self._ends or [event]

    def calls(self) -> list[RecallCall]:
        """Return the calls of the tool."""
        if self._reason not in ("tool_calls", "stop"):
            return []
        ours = [call for call in self._calls.values() if _is_ours(call)]
        return [recall_call(each.get("id"), as_object(each.get("function")).get("arguments")) for each in ours]

    def has_other_calls(self) -> bool:
        """Return whether tools of the client are called."""
        return any(not _is_ours(call) for call in self._calls.values())

    def answer(self, results: Sequence[str]) -> list[Json]:
        """Return the answer and the results as messages."""
        ours: list[Json] = [self._calls[index] for index in sorted(self._calls) if _is_ours(self._calls[index])]
        answered: list[Json] = [
            {"role": "tool", "tool_call_id": as_object(call).get("id"), "content": result}
            for call, result in zip(ours, results, strict=True)
        ]
        thoughts: JsonObject = {_THOUGHTS: self._thought} if self._thought else {}
        call: JsonObject = {"role": "assistant", "content": None, **thoughts, "tool_calls": ours}
        self.hidden += [call, *answered]
        items: list[Json] = [{**call, "content": self._said or None}, *answered]
        if not self.has_other_calls():
            self._written += count_of(self._usage, "completion_tokens")
            self._answered += 1
            self._begin()
        return items

    def finish(self) -> list[bytes]:
        """Return the end, with the usage."""
        return [self._end(event) for event in self._ends]

    def document(self) -> JsonObject:
        """Return the whole answer."""
        data = self._ends[0].data
        choice = as_object(as_list(data.get("choices"))[0])
        calls: list[Json] = [call for call in self._calls.values() if not _is_ours(call)]
        message = {**as_object(choice.get("message")), "content": self._text or None}
        message.pop("tool_calls", None)
        shown = {name: value for name, value in choice.items() if name != "delta"}
        shown |= {
            "message": {**message, **({"tool_calls": calls} if calls else {})},
            "finish_reason": self._last_reason(),
        }
        return {**data, **self._first_id(), "choices": [shown], "usage": self._whole_usage(data)}

    def _seen(self, delta: JsonObject) -> JsonObject:
        """Return what of a delta the client gets, and note all of it."""
        seen = {**delta}
        if isinstance(text := delta.get("content"), str) and text:
            self._said += text
            gap = _GAP if self._answered and self._text and not self._text[-1].isspace() else ""
            seen["content"] = gap + text if self._said == text else text
            self._text += str(seen["content"])
        if isinstance(thought := delta.get(_THOUGHTS), str):
            self._thought += thought
        if self._answered:
            seen.pop("role", None)
        if "tool_calls" in delta:
            calls = [each for part in as_list(delta["tool_calls"]) if (each := self._seen_call(as_object(part)))]
            seen["tool_calls"] = calls
            if not calls:
                del seen["tool_calls"]
                # Members beside a hidden call that have no value say nothing.
                seen = {name: value for name, value in seen.items() if value}
        return seen

    def _seen_call(self, part: JsonObject) -> JsonObject | None:
        index = index_of(part)
        call = self._calls.setdefault(index, {"id": None, "type": "function", "function": {}})
        function = as_object(call["function"])
        for name, value in as_object(part.get("function")).items():
            function[name] = f"{function.get(name) or ''}{value}" if isinstance(value, str) else value
        call |= {name: value for name, value in part.items() if name not in ("index", "function") and value}
        if _is_ours(call):
            return None
        place = self._places.setdefault(index, len(self._places))
        return {**part, "index": place}

    def _chunk(self, event: SentEvent, choice: JsonObject, delta: JsonObject) -> bytes:
        changed = {**event.data, **self._first_id(), "choices": [{**choice, "delta": delta}]}
        return event.raw if changed == event.data else written(event, changed)

    def _first_id(self) -> JsonObject:
        """Return the id of the first answer for later ones; some servers send none."""
        return {"id": self._id} if self._answered and self._id else {}

    def _end(self, event: SentEvent) -> bytes:
        if not event.data or not (self._answered or self.hides_call()):
            return event.raw
        choices: list[Json] = [
            {**as_object(choice), "finish_reason": self._last_reason()} for choice in as_list(event.data.get("choices"))
        ]
        changed = {**event.data, **self._first_id(), "choices": choices}
        return written(event, changed | ({"usage": self._whole_usage(event.data)} if "usage" in event.data else {}))

    def _whole_usage(self, data: JsonObject) -> Json:
        if not (used := as_object(data.get("usage"))):
            return data.get("usage")
        return summed(summed(used, "completion_tokens", self._written), "total_tokens", self._written)

    def _last_reason(self) -> Json:
        """Return why the answer ended for the client: not for a call that it does not see."""
        return "stop" if self._reason == "tool_calls" and not self.has_other_calls() else self._reason

    def hides_call(self) -> bool:
        """Return whether the answer has a call of the tool, which may be one that was cut off."""
        return any(map(_is_ours, self._calls.values()))


def _is_last(event: SentEvent) -> bool:
    """Return whether an event ends the stream; it is no chunk, whose words may be the same."""
    return not event.data and b"[DONE]" in event.raw


def _is_ours(call: JsonObject) -> bool:
    return as_object(call.get("function")).get("name") == TOOL
