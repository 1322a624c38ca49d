"""The reference of HTTP, from the OpenAPI document of the server."""

from typing import Any

from docs_site.reference.tables import code, default_of, fields_of, prose, table, type_of
from esker.server.app import unconnected_app
from esker.server.rest.access import is_open, needed_scope

_HEADS = ("name", "type", "default", "meaning")


def routes_page() -> str:
    """Return the page with every route."""
    routes = [
        _route(method.upper(), path, operation)
        for path, operations in unconnected_app().openapi()["paths"].items()
        for method, operation in operations.items()
    ]
    text = f"""# Routes

Every route of the server with all that it takes and gives, as `/openapi.json` has it. [HTTP and MCP](../api.md)
explains what they do. Every route answers an error with a [Problem](#problem); [Errors](errors.md) lists them.

{"".join(routes)}"""
    return text.replace("](#", "](documents.md#")


def documents_page() -> str:
    """Return the page with the fields of every document that routes take and give."""
    found = unconnected_app().openapi()["components"]["schemas"]
    schemas = [_schema(name, schema) for name, schema in sorted(found.items())]
    return f"""# Documents

The JSON documents that the [routes](routes.md) take and give, with their fields.

{"".join(schemas)}"""


def _route(method: str, path: str, operation: dict[str, Any]) -> str:
    scope = "no key" if is_open(path) else f"a key with the scope {code(needed_scope(method, _example(path)))}"
    given = [
        (f"{code(each['name'])} ({each['in']})", type_of(each["schema"]), _default(each), each.get("description", ""))
        for each in operation.get("parameters", ())
    ]
    body = _body(operation.get("requestBody", {}))
    return f"""## {method} {path}

{prose(operation.get("description", operation.get("summary", "")))}

Needs {scope}.{" Body: " + body + "." if body else ""} Answers: {_answers(operation)}.

{table(_HEADS, given)}
"""


def _example(path: str) -> str:
    """Return a path as a client sends it."""
    return path.replace("{", "").replace("}", "")


def _default(parameter: dict[str, Any]) -> str:
    return "required" if parameter.get("required") else default_of(parameter["schema"])


def _body(body: dict[str, Any]) -> str:
    return " or ".join(
        type_of(each["schema"]) if "$ref" in each.get("schema", {}) else code(kind)
        for kind, each in body.get("content", {}).items()
    )


def _answers(operation: dict[str, Any]) -> str:
    shown = [
        f"{status} {_body(answer)}".strip()
        for status, answer in operation["responses"].items()
        if not status.endswith("XX")
    ]
    return "; ".join(shown)


def _schema(name: str, schema: dict[str, Any]) -> str:
    fields = table(_HEADS, fields_of(schema)) or f"{type_of(schema)}\n"
    return f"## {name}\n\n{prose(schema.get('description', ''))}\n\n{fields}\n"
