"""The reference of the HTTP interface at `/docs`, made of the OpenAPI document without scripts or files of others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request, Response

from esker.server.web.page_route import PageRoute
from esker.server.web.rendering import page

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_SCHEMAS = "#/components/schemas/"
_RESPONSES = "#/components/responses/"
_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "at least",
    "maxLength": "at most",
    "minItems": "at least",
    "maxItems": "at most",
}
_COUNTED = {"minLength": " characters", "maxLength": " characters", "minItems": " items", "maxItems": " items"}

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TypePart:
    """A part of the name of a type; one that is a schema of the document has its name in `schema`, too."""

    text: str
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class ApiValue:
    """A parameter, or a field of a schema."""

    name: str
    place: str
    types: list[TypePart]
    required: bool
    about: str


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """An answer of a route, by its status."""

    status: str
    about: str
    types: list[TypePart]


@dataclass(frozen=True, slots=True)
class ApiRoute:
    """One method of one path."""

    anchor: str
    method: str
    path: str
    summary: str
    about: str
    parameters: list[ApiValue]
    body: list[TypePart]
    answers: list[ApiAnswer]


def routes_of(document: Schema) -> dict[str, list[ApiRoute]]:
    """Return the routes of an OpenAPI document by their first tag, in its order."""
    found: dict[str, list[ApiRoute]] = {}
    shared = document.get("components", {}).get("responses", {})
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found.setdefault(operation.get("tags", ["other"])[0], []).append(_route(path, method, operation, shared))
    return found


def schemas_of(document: Schema) -> dict[str, list[ApiValue]]:
    """Return the fields of each schema of an OpenAPI document by its name."""
    return {
        name: [
            ApiValue(field, "", list(type_of(of)), field in schema.get("required", ()), _about(of))
            for field, of in schema.get("properties", {}).items()
        ]
        for name, schema in document.get("components", {}).get("schemas", {}).items()
    }


def type_of(schema: Schema) -> Iterator[TypePart]:
    """Yield the name of a schema's type in parts: `list of Hit or null`."""
    if reference := schema.get("$ref"):
        name = reference.removeprefix(_SCHEMAS)
        yield TypePart(name, name)
    elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        yield from _joined(choices)
    elif "enum" in schema or "const" in schema:
        yield TypePart(" | ".join(f'"{each}"' for each in schema.get("enum", [schema.get("const")])))
    elif schema.get("type") == "array":
        yield TypePart("list of ")
        yield from type_of(schema.get("items", {}))
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield TypePart("object of ")
        yield from type_of(schema["additionalProperties"])
    else:
        named = schema.get("type", "any")
        yield TypePart(schema.get("format") or (named if isinstance(named, str) else " or ".join(named)))


def _joined(choices: Sequence[Schema]) -> Iterator[TypePart]:
    for place, choice in enumerate(choices):
        if place:
            yield TypePart(" or ")
        yield from type_of(choice)


def _route(path: str, method: str, operation: Schema, shared: Schema) -> ApiRoute:
    body = operation.get("requestBody", {}).get("content", {})
    return ApiRoute(
        anchor=f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        method=method.upper(),
        path=path,
        summary=operation.get("summary", ""),
        about=operation.get("description", ""),
        parameters=[
            ApiValue(
                each["name"],
                each["in"],
                list(type_of(each.get("schema", {}))),
                each.get("required", False),
                each.get("description") or _about(each.get("schema", {})),
            )
            for each in operation.get("parameters", ())
        ],
        body=list(_of_content(body)),
        answers=[
            ApiAnswer(status, answer.get("description", ""), list(_of_content(answer.get("content", {}))))
            for status, named in operation.get("responses", {}).items()
            for answer in [shared.get(named.get("$ref", "").removeprefix(_RESPONSES), named)]
        ],
    )


def _of_content(content: Schema) -> Iterator[TypePart]:
    for place, (media, of) in enumerate(content.items()):
        yield TypePart(f"{' or ' if place else ''}{media}{': ' if of.get('schema') else ''}")
        if of.get("schema"):
            yield from type_of(of["schema"])


def _about(schema: Schema) -> str:
    """Return the description of a field with its limits and its default."""
    parts = [schema.get("description", "")]
    limited = next((each for each in schema.get("anyOf", ()) if _LIMITS.keys() & each.keys()), schema)
    parts += [f"{how} {limited[key]:g}{_COUNTED.get(key, '')}" for key, how in _LIMITS.items() if key in limited]
    if schema.get("default") is not None:
        parts.append(f"default {schema['default']}")
    return "; ".join(filter(None, parts))


@router.get("/docs")
async def show_api(request: Request) -> Response:
    """Show every route of the HTTP interface and every schema of its requests and answers."""
    document = request.app.openapi()
    return page(request, "api.html", routes=routes_of(document), schemas=schemas_of(document), info=document["info"])
