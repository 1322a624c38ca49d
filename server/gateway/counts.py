"""Numbers that a provider reports: token counts, and the indexes of parts of a stream."""

from esker.server.core.json_input import JsonObject

_LONGEST_INDEX = 9


def count_of(used: JsonObject, name: str) -> int:
    """Return a count; 0 if it is missing or is no count."""
    value = used.get(name)
    return value if isinstance(value, int) and value > 0 else 0


def index_of(part: JsonObject) -> int:
    """Return the index of a part of a stream; 0 if it has none.

    Raises TypeError for another value, which the error does not repeat: errors are logged.
    """
    match part.get("index"):
        case None:
            return 0
        case int(index) if index >= 0 and not isinstance(index, bool):
            return index
        case str(text) if text.isdecimal() and len(text) <= _LONGEST_INDEX:
            return int(text)
        case _:
            raise TypeError("The index of a part is not a whole number.")
