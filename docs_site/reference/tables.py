"""Tables in Markdown, and types in words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
"""A JSON schema."""
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; nothing for no rows."""
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    rule = "|" + "---|" * len(heads)
    return "\n".join(["| " + " | ".join(heads) + " |", rule, *lines]) + "\n" if lines else ""


def _cell(text: str) -> str:
    return " ".join(prose(text).split()).replace("|", "\\|")


def prose(text: str) -> str:
    """Return a text of the code as Markdown that shows it unchanged: angle brackets are escaped."""
    parts = text.split("`")
    parts[::2] = [part.replace("<", "&lt;") for part in parts[::2]]
    return "`".join(parts)


def code(text: str) -> str:
    """Return a text as code; nothing for an empty one."""
    return f"`{text}`" if text else ""


def fields_of(schema: Schema) -> list[tuple[str, str, str, str]]:
    """Return name, type, default and meaning of each property of an object."""
    required = schema.get("required", ())
    return [
        (
            code(name),
            type_of(each),
            "required" if name in required else default_of(each),
            str(each.get("description", "")),
        )
        for name, each in schema.get("properties", {}).items()
    ]


def default_of(schema: Schema) -> str:
    """Return the default of a property as code."""
    default = schema.get("default")
    return "" if default in (None, [], {}, "") else code(default if isinstance(default, str) else json.dumps(default))


def type_of(schema: Schema) -> str:
    """Return a type in words: `integer, ≥ 1`, `list of string`, `one of high, medium, low`; an object by its name.

    Only those of an OpenAPI document are described, so only their names are links.
    """
    if "$ref" in schema:
        path, _, name = str(schema["$ref"]).rpartition("/")
        return f"[{name}](#{name.lower()})" if path == "#/components/schemas" else code(name)
    if "anyOf" in schema:
        parts = [type_of(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(parts)) or "null"
    if "enum" in schema:
        return "one of " + ", ".join(code(str(each)) for each in schema["enum"])
    if "const" in schema:
        return code(str(schema["const"]))
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    bounds = [f"{sign} {_number(schema[key])}" for key, sign in _BOUNDS.items() if key in schema]
    return ", ".join([_plain(schema), *bounds])


def _plain(schema: Schema) -> str:
    known = {"password": "secret", "date-time": "time", "path": "path", "ipvanynetwork": "network"}
    return known.get(schema.get("format", ""), str(schema.get("type", "any JSON")))


def _number(value: float) -> str:
    return f"{value:,}"
