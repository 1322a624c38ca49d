"""The OpenAPI document, from which people generate clients: `GET /openapi.json`, and `esker openapi`.

FastAPI derives it from the routes. This module adds the problem document as the error of every operation, the key, and
the words of `descriptions.toml` and `examples.toml`; it also says that an answer has all of its fields.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import FastAPI
from pydantic import Field, TypeAdapter

from esker.server.core.pool.lines import End, GroupLine, Header, MemoryLine, MessageLine, ReflectionLine, SessionLine
from esker.server.rest.access import is_open
from esker.server.rest.problems import ProblemResponse

Json = dict[str, Any]

TEXT_ANSWER: Json = {"content": {"text/plain": {"schema": {"type": "string"}}}}
"""An answer that is also given as text, for `responses` of a route."""
_REF = "#/components/schemas/"
_HERE = Path(__file__).parent
_PoolLine = Annotated[
    Header | SessionLine | MessageLine | GroupLine | MemoryLine | ReflectionLine | End, Field(discriminator="type")
]
_TEXT: Json = {"type": "string"}
_PROBLEM: Json = {
    "title": "Problem",
    "description": "An error in the format of RFC 9457: what happened, what to do next, and which fields are wrong.",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        **{name: dict(_TEXT) for name in ("type", "title", "detail", "hint", "request_id")},
        "status": {"type": "integer"},
        "errors": {"type": "array", "items": {"$ref": f"{_REF}InvalidField"}},
    },
}
_INVALID_FIELD: Json = {
    "title": "InvalidField",
    "description": "A wrong field of a request.",
    "type": "object",
    "required": ["at", "problem"],
    "properties": {"at": dict(_TEXT), "problem": dict(_TEXT)},
}
_ERROR: Json = {
    "description": "An error; nothing was changed if the status is below 500.",
    "headers": {
        "X-Request-Id": {"description": "Id under which the server logs the request.", "schema": _TEXT},
        "Retry-After": {
            "description": "Seconds to wait before the next try; with 429 and 503.",
            "schema": {"type": "integer"},
        },
    },
    "content": {ProblemResponse.media_type: {"schema": {"$ref": f"{_REF}Problem"}}},
}
_ABOUT = """\
Esker is a memory server that many agent CLIs share: transcripts in, dated facts out, recall by meaning.

A key selects the pool and is sent as `Authorization: Bearer <key>`; the user who runs a local server needs none. An
error is a `Problem`. A request that is answered with 429 or 503 changed nothing and can be repeated after
`Retry-After`. Unknown fields and parameters are refused; those of sessions, messages and usage are ignored."""


def install(app: FastAPI) -> None:
    """Have an app serve the complete document."""
    make_document = app.openapi

    def openapi() -> Json:
        if app.openapi_schema is None:
            _complete(make_document())
        return make_document()

    app.openapi = openapi


@cache
def words(name: str) -> Json:
    """Return the contents of a TOML file beside this module."""
    return tomllib.loads((_HERE / f"{name}.toml").read_text(encoding="utf-8"))


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    """Yield the path, the method and the description of each operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _complete(document: Json) -> None:
    """Add to a document everything that the routes do not say."""
    schemas: Json = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas |= {"Problem": _PROBLEM, "InvalidField": _INVALID_FIELD} | _pool_lines()
    document["components"]["responses"] = {"Error": _ERROR}
    document["components"]["securitySchemes"] = {
        "key": {
            "type": "http",
            "scheme": "bearer",
            "description": "A key of a pool; `esker key create NAME` makes one.",
        }
    }
    document["security"] = [{"key": []}]
    document["info"] |= {"description": _ABOUT, "license": {"name": "MIT", "identifier": "MIT"}}
    document["servers"] = [{"url": "http://127.0.0.1:8377", "description": "The server of this machine."}]
    document["tags"] = [{"name": name, "description": text} for name, text in words("descriptions")["tags"].items()]
    for path, _, operation in operations(document):
        _complete_operation(path, operation, schemas)
    _require_all_fields(document, schemas)
    for name, schema in schemas.items():
        _complete_schema(name, schema)


def _pool_lines() -> Json:
    """Return the schemas of the lines of a pool's file."""
    made = TypeAdapter[Any](_PoolLine).json_schema(ref_template=f"{_REF}{{model}}")
    lines: Json = made.pop("$defs")
    return lines | {"PoolLine": made | {"title": "PoolLine", "description": "One line of a pool's file."}}


def _complete_operation(path: str, operation: Json, schemas: Json) -> None:
    about = _plain(operation["description"])
    first = re.split(r"(?<=\.)\s", about, maxsplit=1)[0]
    operation |= {"summary": " ".join(first.removesuffix(".").split()), "description": about}
    if is_open(path):
        operation["security"] = []
    glossary = words("descriptions")
    own = glossary["operations"].get(operation["operationId"], {})
    for parameter in operation.get("parameters", []):
        name = parameter["name"].lower()
        parameter["schema"].pop("title", None)
        if told := own.get(name) or glossary["parameters"].get(name):
            parameter["description"] = told
    answers: Json = operation["responses"]
    answers.pop("422", None)
    for status, answer in answers.items():
        for content in answer.get("content", {}).values():
            content.get("schema", {}).pop("title", None)
        if answer["description"] in ("Successful Response", "Accepted", "Service Unavailable"):
            answer["description"] = _about_answer(answer, status, schemas)
    answers |= {"4XX": {"$ref": "#/components/responses/Error"}, "5XX": {"$ref": "#/components/responses/Error"}}


def _about_answer(answer: Json, status: str, schemas: Json) -> str:
    """Return the description of an answer: that of its schema, or of the first of several."""
    if status == "202":
        return "The work runs in the background."
    named = next(iter(_references(answer)), None)
    return _plain(schemas[named]["description"].split("\n")[0]) if named in schemas else "The text."


def _require_all_fields(document: Json, schemas: Json) -> None:
    """Say that answers have all of their fields: a field with a default is sent, too."""
    bodies = [operation.get("requestBody", {}) for _, _, operation in operations(document)]
    sent = _reachable(bodies, schemas) | {"Problem"}
    for name, schema in schemas.items():
        if name not in sent and "properties" in schema:
            schema["required"] = list(schema["properties"])


def _reachable(start: Iterable[Json], schemas: Json) -> set[str]:
    """Return the names of the schemas to which some parts of the document lead."""
    found: set[str] = set()
    waiting = [name for part in start for name in _references(part)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _references(schemas[name])
    return found


def _references(part: Any) -> list[str]:
    """Return the names of the schemas that a part of the document mentions itself, in order."""
    if isinstance(part, dict):
        there = cast("Json", part)
        own = [there["$ref"].removeprefix(_REF)] if isinstance(there.get("$ref"), str) else []
        return own + [name for value in there.values() for name in _references(value)]
    if isinstance(part, list):
        return [name for value in cast("list[Any]", part) for name in _references(value)]
    return []


def _complete_schema(name: str, schema: Json) -> None:
    glossary = words("descriptions")
    own = glossary["schemas"].get(name, {})
    for field, value in schema.get("properties", {}).items():
        value.pop("title", None)
        if about := own.get(field) or glossary["fields"].get(field):
            value["description"] = about
    if "description" in schema:
        schema["description"] = _plain(schema["description"])
    if examples := words("examples").get(name):
        schema["examples"] = examples


def _plain(text: str) -> str:
    """Return a description with the constants of JSON in place of Python's."""
    return re.sub(r"\b(None|True|False)\b", lambda found: {"None": "null"}.get(found[0], found[0].lower()), text)
