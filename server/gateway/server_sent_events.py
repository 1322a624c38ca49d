"""Reading a stream of server-sent events, from the bytes of a whole answer."""

import json
import re
from collections.abc import Iterator

from esker.server.core.json_input import as_object
from esker.server.gateway.records import Event

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
# Not `splitlines`: it also ends a line at characters that JSON may contain, such as U+2028 and U+0085.
_LINE_END = re.compile(r"\r\n|\n|\r")


def read_events(body: bytes) -> Iterator[Event]:
    """Yield the events whose data is a JSON object; one without a name has that of its data's `type`."""
    for part in _BLANK.split(body):
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
            continue
        if found:
            yield Event(name or str(found.get("type", "")), found)
