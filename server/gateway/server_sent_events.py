"""Server-sent events: reading those of a whole answer, or one after the other as they come."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from esker.server.core.json_input import JsonObject, as_object
from esker.server.gateway.records import Event

_LONGEST_BLANK = 4
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
# Not `splitlines`: it also ends a line at characters that JSON may contain, such as U+2028 and U+0085.
_LINE_END = re.compile(r"\r\n|\n|\r")


class SentEvent(NamedTuple):
    """An event as it came: `raw` are its bytes. `data` is empty if it is not a JSON object, as of comments."""

    name: str
    data: JsonObject
    raw: bytes


class EventReader:
    """Cuts a stream of bytes into events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[SentEvent]:
        """Return the events that end in a chunk."""
        # Only an end that reaches into this chunk: a large event may come in hundreds of them.
        searched = max(0, len(self._rest) - _LONGEST_BLANK)
        self._rest += chunk
        found: list[SentEvent] = []
        start = 0
        for blank in _BLANK.finditer(self._rest, searched):
            found.append(_event(self._rest[start : blank.end()]))
            start = blank.end()
        self._rest = self._rest[start:]
        return found

    def rest(self) -> list[SentEvent]:
        """Return an event at the end of the stream that no blank line ends."""
        rest, self._rest = self._rest, b""
        return [_event(rest)] if rest else []


def read_events(body: bytes) -> Iterator[Event]:
    """Yield the events whose data is a JSON object; one without a name has that of its data's `type`."""
    for part in _BLANK.split(body):
        event = _event(part)
        if event.data:
            yield Event(event.name, event.data)


def written(event: SentEvent, data: JsonObject) -> bytes:
    """Return the bytes of an event with other data; it has a line with its name if the one that came had."""
    name = f"event: {event.name}\n" if event.raw.startswith(b"event:") else ""
    # JSON in ASCII, since a provider may escape half of a character, which UTF-8 cannot write.
    return f"{name}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


def _event(part: bytes) -> SentEvent:
    name, data = "", list[str]()
    for line in _LINE_END.split(part.decode("utf-8", "replace")):
        field, _, value = line.partition(":")
        if field == "event":
            name = value.strip()
        elif field == "data":
            data.append(value.removeprefix(" "))
    try:
        found = as_object(json.loads("\n".join(data)))
    except (ValueError, RecursionError):
        found = {}
    return SentEvent(name or str(found.get("type", "")), found, part)
