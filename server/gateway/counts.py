"""Token counts in the usage that a provider reports."""

from esker.server.core.json_input import JsonObject


def count_of(used: JsonObject, name: str) -> int:
    """Return a count; 0 if it is missing or is no count."""
    value = used.get(name)
    return value if isinstance(value, int) and value > 0 else 0
