"""One answer of the Messages API from several."""

from collections.abc import Sequence

from esker.server.agents.content import Block, arguments, as_list
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.counts import count_of, index_of
from esker.server.gateway.protocols.messages import extend_block
from esker.server.gateway.server_sent_events import SentEvent, written
from esker.server.gateway.splices.splice import TOOL, RecallCall, Splice, recall_call, summed

_THOUGHTS = ("thinking", "redacted_thinking")


class MessagesSplice(Splice):
    """The events `message_start` of the first answer, `message_delta` and `message_stop` of the last one, once each."""

    def __init__(self) -> None:
        super().__init__()
        self._start: JsonObject = {}
        # The blocks that the client has got, of all answers.
        self._shown: list[Block] = []
        self._has_shown_thoughts = False
        self._written = 0
        self._begin()

    def _begin(self) -> None:
        """Begin with the next answer."""
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, str] = {}
        # The number of each block of this answer that the client gets.
        self._places: dict[int, int] = {}
        self._held: list[SentEvent] = []
        self._ends: list[SentEvent] = []
        self._reason: Json = None

    def unsent(self) -> list[SentEvent]:
        """Return the events of this answer that are held."""
        return [*self._held, *self._ends]

    def take(self, event: SentEvent) -> list[bytes]:
        """Return what the client gets when an event has come."""
        data = event.data
        index = index_of(data)
        match event.name:
            case "message_start":
                self._start = self._start or as_object(data.get("message"))
                return [] if self._answered else [event.raw]
            case "content_block_start":
                self._blocks[index] = block = {**as_object(data.get("content_block"))}
                if block.get("type") in _THOUGHTS:
                    self._held.append(event)
                    return []
                return [] if _is_ours(block) else [*self._released(), self._numbered(event)]
            case "content_block_delta" | "content_block_stop":
                if event.name == "content_block_delta":
                    extend_block(
                        self._blocks.setdefault(index, {"type": "text"}),
                        as_object(data.get("delta")),
                        self._inputs,
                        index,
                    )
                if index in self._places:
                    return [self._numbered(event)]
                if self._held and not _is_ours(self._blocks[index]):
                    self._held.append(event)
                return []
            case "message_delta" | "message_stop":
                self._reason = as_object(data.get("delta")).get("stop_reason") or self._reason
                self._ends.append(event)
                return []
            case _:
                return [event.raw]

    def has_ended(self) -> bool:
        """Return whether the last event has come."""
        return any(event.name == "message_stop" for event in self._ends)

    def take_document(self, document: JsonObject) -> None:
        """Take a whole answer."""
        self.take(SentEvent("message_start", {"message": document}, b""))
        for index, block in enumerate(as_list(document.get("content"))):
            self.take(SentEvent("content_block_start", {"index": index, "content_block": block}, b""))
        self._reason = document.get("stop_reason")
        self._ends.append(SentEvent("message_delta", document, b""))

    def calls(self) -> list[RecallCall]:
        """Return the calls of the tool."""
        self._close()
        ours = [block for block in self._blocks.values() if _is_ours(block)]
        return [recall_call(each.get("id"), each.get("input")) for each in ours] if self._reason == "tool_use" else []

    def has_other_calls(self) -> bool:
        """Return whether tools of the client are called."""
        return any(block.get("type") == "tool_use" and not _is_ours(block) for block in self._blocks.values())

    def answer(self, results: Sequence[str]) -> list[Json]:
        """Return the answer and the results as messages."""
        # A message must not end in a thought.
        last = max(index for index, block in self._blocks.items() if block.get("type") not in _THOUGHTS)
        blocks = {index: self._blocks[index] for index in sorted(self._blocks) if index <= last}
        # The API writes blank texts, and refuses them.
        said = [
            block for block in blocks.values() if block.get("type") != "text" or str(block.get("text") or "").strip()
        ]
        unshown = {index_of(event.data) for event in self._held}
        hidden = [block for index, block in blocks.items() if index in unshown or _is_ours(block)]
        calls = [block for block in said if _is_ours(block)]
        given: list[Json] = [
            {"type": "tool_result", "tool_use_id": call.get("id"), "content": [{"type": "text", "text": result}]}
            for call, result in zip(calls, results, strict=True)
        ]
        answered: Json = {"role": "user", "content": given}
        self.hidden.append({"role": "assistant", "content": [*hidden]})
        self.hidden.append(answered)
        if not self.has_other_calls():
            self._written += count_of(self._usage(), "output_tokens")
            self._answered += 1
            self._begin()
        return [{"role": "assistant", "content": [*said]}, answered]

    def finish(self) -> list[bytes]:
        """Return the last thoughts if no call followed them, and the end."""
        thoughts = [] if self.hides_call() else self._released()
        return [*thoughts, *(self._end(event) for event in self._ends)]

    def document(self) -> JsonObject:
        """Return the whole answer."""
        self.finish()
        last = self._ends[-1].data
        return {
            **last,
            "id": self._start.get("id"),
            "content": [*self._shown],
            "stop_reason": self._stop_reason(),
            "usage": summed(as_object(last.get("usage")), "output_tokens", self._written),
        }

    def _end(self, event: SentEvent) -> bytes:
        if event.name != "message_delta" or not (self._answered or self.hides_call()):
            return event.raw
        delta = {**as_object(event.data.get("delta")), "stop_reason": self._stop_reason()}
        usage = summed(as_object(event.data.get("usage")), "output_tokens", self._written)
        return written(event, {**event.data, "delta": delta, "usage": usage})

    def _usage(self) -> JsonObject:
        return next((as_object(event.data.get("usage")) for event in self._ends if "usage" in event.data), JsonObject())

    def hides_call(self) -> bool:
        """Return whether the answer has a call of the tool, which may be one that was cut off."""
        return any(map(_is_ours, self._blocks.values()))

    def _stop_reason(self) -> Json:
        """Return why the answer ended for the client: not for a call that it does not see."""
        return "end_turn" if self._reason == "tool_use" and not self.has_other_calls() else self._reason

    def _close(self) -> None:
        """Read the inputs of calls, which come in pieces."""
        for index, text in self._inputs.items():
            self._blocks[index]["input"] = arguments(text)
        self._inputs.clear()

    def _released(self) -> list[bytes]:
        """Return the thoughts that were held; those after earlier ones stay hidden, since one answer has them once."""
        held, self._held = self._held, []
        if not held or (self._has_shown_thoughts and self._answered):
            return []
        self._has_shown_thoughts = True
        return [self._numbered(event) for event in held]

    def _numbered(self, event: SentEvent) -> bytes:
        """Return an event with the number that its block has for the client."""
        index = index_of(event.data)
        if index not in self._places:
            self._places[index] = len(self._shown)
            self._shown.append(self._blocks[index])
        place = self._places[index]
        return event.raw if place == index else written(event, {**event.data, "index": place})


def _is_ours(block: JsonObject) -> bool:
    return block.get("type") == "tool_use" and block.get("name") == TOOL
