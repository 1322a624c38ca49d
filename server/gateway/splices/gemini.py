"""One answer of Google's Gemini API from several."""

from collections.abc import Sequence

from esker.server.agents.content import as_list
from esker.server.core.json_input import Json, JsonObject, as_object
from esker.server.gateway.counts import count_of
from esker.server.gateway.server_sent_events import SentEvent, written
from esker.server.gateway.splices.splice import TOOL, RecallCall, Splice, recall_call, summed

_GAP = "\n\n"
_SIGNATURE = "thoughtSignature"


class GeminiSplice(Splice):
    """The parts of all answers under the id of the first; one chunk with the end."""

    def __init__(self) -> None:
        super().__init__()
        self._id: Json = None
        # The parts that the client has got, of all answers.
        self._shown: list[JsonObject] = []
        self._written = 0
        # Bytes that the client gets before the next chunk.
        self._before: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        """Begin with the next answer."""
        self._parts: list[JsonObject] = []
        self._end: SentEvent | None = None
        # The parts of the last chunk that the client gets.
        self._last: list[Json] = []

    def unsent(self) -> list[SentEvent]:
        """Return the events of this answer that are held."""
        return []

    def take(self, event: SentEvent) -> list[bytes]:
        """Return what the client gets when a chunk has come. The last one is held."""
        self._id = self._id or event.data.get("responseId")
        candidate = _candidate(event.data)
        before, self._before = self._before, []
        seen: list[Json] = [shown for part in _parts(candidate) if (shown := self._seen(as_object(part))) is not None]
        if candidate.get("finishReason") is not None:
            self._end, self._last = event, seen
            return before
        return [*before, *([self._chunk(event, candidate, seen)] if seen or not _parts(candidate) else [])]

    def has_ended(self) -> bool:
        """Return whether the last event has come; no event says so in this protocol."""
        return False

    def take_document(self, document: JsonObject) -> None:
        """Take a whole answer."""
        event = SentEvent("", document, b"")
        self.take(event)
        self._end = self._end or event

    def calls(self) -> list[RecallCall]:
        """Return the calls of the tool."""
        if self._end is None or _candidate(self._end.data).get("finishReason") != "STOP":
            return []
        calls = [as_object(part.get("functionCall")) for part in self._parts if _is_ours(part)]
        return [recall_call(call.get("id"), call.get("args")) for call in calls]

    def hides_call(self) -> bool:
        """Return whether the answer has a call of the tool, which may be one that was cut off."""
        return any(map(_is_ours, self._parts))

    def has_other_calls(self) -> bool:
        """Return whether tools of the client are called."""
        return any("functionCall" in part and not _is_ours(part) for part in self._parts)

    def answer(self, results: Sequence[str]) -> list[Json]:
        """Return the answer and the results as contents."""
        ours = [part for part in self._parts if _is_ours(part)]
        given: list[Json] = [
            {"functionResponse": {**_named(as_object(part["functionCall"])), "response": {"output": result}}}
            for part, result in zip(ours, results, strict=True)
        ]
        answered: Json = {"role": "user", "parts": given}
        said = [part for part in self._parts if not part.get("thought")]
        self.hidden.append({"role": "model", "parts": [*ours]})
        self.hidden.append(answered)
        if self._end and not self.has_other_calls():
            if self._last:
                going_on = {name: value for name, value in _candidate(self._end.data).items() if name != "finishReason"}
                self._before = [self._chunk(self._end, going_on, self._last)]
            self._written += count_of(as_object(self._end.data.get("usageMetadata")), "candidatesTokenCount")
            self._answered += 1
            self._begin()
        return [{"role": "model", "parts": [*said]}, answered]

    def finish(self) -> list[bytes]:
        """Return the end."""
        if self._end is None:
            return self._before
        candidate = _candidate(self._end.data)
        # Clients take a last chunk whose only part was left out for a broken one.
        nothing: list[Json] = [{"text": ""}] if _parts(candidate) else []
        return [*self._before, self._chunk(self._end, candidate, self._last or nothing)]

    def document(self) -> JsonObject:
        """Return the whole answer."""
        data = self._end.data if self._end else {}
        return self._whole(data, _candidate(data), [*self._shown])

    def _seen(self, part: JsonObject) -> JsonObject | None:
        """Return a part as the client gets it; None if it does not. Note all of it."""
        self._parts.append(part)
        if _is_ours(part):
            return None
        seen = {**part}
        if "functionCall" in part and _SIGNATURE not in part and not self._has_shown_call():
            # The first of the calls of an answer has its signature, and the client must send it back with one.
            signed = next((each for each in self._parts if _is_ours(each) and _SIGNATURE in each), part)
            seen |= {name: value for name, value in signed.items() if name == _SIGNATURE}
        if self._begins_text(part):
            seen["text"] = f"{_GAP}{part['text']}"
        self._shown.append(seen)
        return seen

    def _has_shown_call(self) -> bool:
        return any("functionCall" in each and not _is_ours(each) for each in self._parts[:-1])

    def _begins_text(self, part: JsonObject) -> bool:
        """Return whether a text comes right behind that of an earlier answer."""
        if not self._answered or not _is_text(part) or any(map(_is_text, self._parts[:-1])):
            return False
        earlier = next((each["text"] for each in reversed(self._shown) if _is_text(each)), " ")
        return not str(earlier)[-1:].isspace()

    def _chunk(self, event: SentEvent, candidate: JsonObject, parts: list[Json]) -> bytes:
        changed = self._whole(event.data, candidate, parts)
        is_same = parts == _parts(_candidate(event.data)) and not self._answered
        return event.raw if is_same else written(event, changed)

    def _whole(self, data: JsonObject, candidate: JsonObject, parts: list[Json]) -> JsonObject:
        """Return a chunk, or an answer, with other parts, and with the tokens that all answers have written."""
        content = {**as_object(candidate.get("content")), "parts": parts}
        used = as_object(data.get("usageMetadata"))
        for name in ("candidatesTokenCount", "totalTokenCount"):
            used = summed(used, name, self._written)
        about: JsonObject = {"usageMetadata": used} if used else {}
        about |= {"responseId": self._id} if self._id else {}
        return {**data, "candidates": [{**candidate, "content": content}], **about}


def _candidate(data: JsonObject) -> JsonObject:
    return as_object(next(iter(as_list(data.get("candidates"))), None))


def _parts(candidate: JsonObject) -> list[Json]:
    return as_list(as_object(candidate.get("content")).get("parts"))


def _is_text(part: JsonObject) -> bool:
    return bool(part.get("text")) and not part.get("thought")


def _named(call: JsonObject) -> JsonObject:
    return {name: call[name] for name in ("id", "name") if name in call}


def _is_ours(part: JsonObject) -> bool:
    return as_object(part.get("functionCall")).get("name") == TOOL
