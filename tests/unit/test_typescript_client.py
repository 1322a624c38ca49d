"""The files of the TypeScript client that are made from the server are current."""

import json

from esker.server import VERSION
from tests.generators.typescript import FOLDER, OPERATIONS, SCHEMA, document, first_line, operations_module

HINT = "run `make generators`, and commit the files that it writes"


def test_the_generated_files_of_the_typescript_client_are_those_of_the_document() -> None:
    described = document()
    assert OPERATIONS.read_text(encoding="utf-8") == operations_module(described), HINT
    assert SCHEMA.read_text(encoding="utf-8").startswith(first_line(described)), HINT


def test_the_typescript_client_has_the_version_of_the_server_and_no_dependency() -> None:
    package = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    assert package["version"] == VERSION
    assert "dependencies" not in package
