"""The generated files of `clients/typescript`: written by `python -m tests.generators`, compared by a test."""

import hashlib
import json
import subprocess
from functools import cache
from typing import Any, cast

from esker.server.app import unconnected_app
from esker.server.rest.document import operations
from tests.support.processes import ROOT

FOLDER = ROOT / "clients" / "typescript"
OPERATIONS = FOLDER / "src" / "operations.ts"
SCHEMA = FOLDER / "src" / "schema.ts"
# Texts of the document, which change no type.
_PROSE = frozenset({"description", "summary", "examples"})


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    return unconnected_app().openapi()


def operations_module(described: dict[str, Any]) -> str:
    """Return the module with the method and the path of each operation."""
    rows = sorted((each["operationId"], method.upper(), path) for path, method, each in operations(described))
    lines = "".join(f'  {name}: ["{method}", "{path}"],\n' for name, method, path in rows)
    return (
        f"/** Method and path of each operation. Written by `make generators`; do not edit. */\n"
        f"export const ROUTES = {{\n{lines}}} as const;\n\nexport type OperationId = keyof typeof ROUTES;\n"
    )


def fingerprint(described: dict[str, Any]) -> str:
    """Return a hash of everything in a document that types depend on."""
    typed = {name: described[name] for name in ("paths", "components")}
    return hashlib.sha256(json.dumps(_without_prose(typed), sort_keys=True).encode()).hexdigest()


def first_line(described: dict[str, Any]) -> str:
    """Return the first line of the generated types, which names the document that they are from."""
    return f"// Written by `make generators`; do not edit. Document: {fingerprint(described)}\n"


def generate() -> None:
    """Write the generated files; the packages of `clients/typescript` must be installed."""
    described = document()
    (FOLDER / "openapi.json").write_text(json.dumps(described), encoding="utf-8")
    subprocess.run(["npm", "run", "--silent", "types", "--", "src/schema.ts"], cwd=FOLDER, check=True)
    SCHEMA.write_text(first_line(described) + SCHEMA.read_text(encoding="utf-8"), encoding="utf-8")
    OPERATIONS.write_text(operations_module(described), encoding="utf-8")


def _without_prose(value: Any) -> Any:
    if isinstance(value, dict):
        there = cast("dict[str, Any]", value)
        # The properties of a schema are names, and one of them may be `description`.
        return {
            name: {field: _without_prose(each) for field, each in inner.items()}
            if name in ("properties", "schemas")
            else _without_prose(inner)
            for name, inner in there.items()
            if name not in _PROSE
        }
    if isinstance(value, list):
        return [_without_prose(each) for each in cast("list[Any]", value)]
    return value
