"""The JSON schema of an answer, in the form that every kind of server accepts.

OpenAI's strict mode requires every property and closed objects; servers that compile a schema into a grammar know no
more than types, lists and choices. Bounds are left out for both, and checked when the answer is read.
"""

from functools import cache
from typing import Any, cast

from pydantic import BaseModel

Schema = dict[str, Any]

_KEPT = ("type", "enum", "const", "anyOf", "items", "properties")


@cache
def schema_of(shape: type[BaseModel]) -> Schema:
    """Return the schema of a shape: without titles, defaults, bounds and references, and every property required."""
    whole = shape.model_json_schema()
    return _plain(whole, whole.get("$defs", {}))


def _plain(schema: Schema, named: Schema) -> Schema:
    if reference := schema.get("$ref"):
        return _plain(named[str(reference).rpartition("/")[2]], named)
    made = {key: schema[key] for key in _KEPT if key in schema}
    if "anyOf" in made:
        made["anyOf"] = [_plain(each, named) for each in cast("list[Schema]", made["anyOf"])]
    if "items" in made:
        made["items"] = _plain(made["items"], named)
    if "properties" in made:
        properties = cast("dict[str, Schema]", made["properties"])
        made["properties"] = {name: _plain(each, named) for name, each in properties.items()}
        made |= {"required": list(properties), "additionalProperties": False}
    return made
