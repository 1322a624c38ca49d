"""The OpenAPI document: the rules that people and generators of clients depend on."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from esker.server.app import unconnected_app
from esker.server.cli.main import app
from esker.server.rest.document import operations, words

Json = dict[str, Any]
ERROR = {"$ref": "#/components/responses/Error"}


@pytest.fixture(scope="module")
def document() -> Json:
    """The document of a server that was never started."""
    return unconnected_app().openapi()


def parts(value: Any, at: str = "") -> Iterator[tuple[str, Json]]:
    """Yield every object of a document with its path."""
    if isinstance(value, dict):
        yield at, value
        for name, each in value.items():
            yield from parts(each, f"{at}/{name}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from parts(each, f"{at}/{place}")


def test_the_document_is_written_without_a_server(document: Json, tmp_path: Path) -> None:
    file = tmp_path / "openapi.json"
    assert (
        CliRunner().invoke(app, ["openapi", str(file)]).output
        == f"Wrote {file}: {len(list(operations(document)))} operations.\n"
    )
    assert json.loads(file.read_text(encoding="utf-8")) == document
    assert json.loads(CliRunner().invoke(app, ["openapi"]).stdout) == document


def test_every_operation_has_an_id_that_reads_and_is_its_own(document: Json) -> None:
    ids = [operation["operationId"] for _, _, operation in operations(document)]
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(?:[A-Z][a-z]+)+", name)] == []
    assert len(set(ids)) == len(ids)
    assert "recallMemories" in ids


def test_every_schema_has_one_name_of_one_word(document: Json) -> None:
    schemas = document["components"]["schemas"]
    assert [name for name in schemas if not re.fullmatch(r"[A-Z][A-Za-z0-9]+", name)] == []
    assert {name: schema["title"] for name, schema in schemas.items() if schema.get("title", name) != name} == {}


def test_the_error_of_every_operation_is_a_problem_document(document: Json) -> None:
    assert all(operation["responses"]["4XX"] == ERROR for _, _, operation in operations(document))
    assert all(operation["responses"]["5XX"] == ERROR for _, _, operation in operations(document))
    [media_type] = document["components"]["responses"]["Error"]["content"].items()
    assert media_type == ("application/problem+json", {"schema": {"$ref": "#/components/schemas/Problem"}})


def test_every_operation_needs_a_key_but_the_health_checks(document: Json) -> None:
    assert document["security"] == [{"key": []}]
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    opened = {path for path, _, operation in operations(document) if operation.get("security") == []}
    assert opened == {"/livez", "/readyz"}


def test_every_answer_and_every_body_has_a_schema(document: Json) -> None:
    for path, method, operation in operations(document):
        answers = {status: each for status, each in operation["responses"].items() if "$ref" not in each}
        for body in (operation.get("requestBody", {}), *answers.values()):
            for content in body.get("content", {}).values():
                assert content["schema"], (method, path)
        with_content = [status for status, answer in answers.items() if answer.get("content")]
        assert [status for status in answers if status not in ("304", *with_content)] == [], (method, path)


def test_no_object_and_no_list_is_bare(document: Json) -> None:
    bare = [
        at
        for at, part in parts(document)
        if (part.get("type") == "object" and not {"properties", "additionalProperties"} & set(part))
        or (part.get("type") == "array" and "items" not in part)
    ]
    assert bare == []


def test_everything_is_described(document: Json) -> None:
    tags = {tag["name"] for tag in document["tags"]}
    for path, method, operation in operations(document):
        assert operation["summary"], (method, path)
        assert operation["description"], (method, path)
        assert set(operation["tags"]) <= tags, (method, path)
        assert [each["name"] for each in operation.get("parameters", []) if not each.get("description")] == [], path
    undescribed = [
        f"{name}.{field}"
        for name, schema in document["components"]["schemas"].items()
        for field, value in schema.get("properties", {}).items()
        if not value.get("description")
    ]
    assert undescribed == [], "describe them in server/rest/descriptions.toml"
    described = {name for name, schema in document["components"]["schemas"].items() if "description" in schema}
    assert set(document["components"]["schemas"]) - described == {"JsonValue"}


def test_every_description_is_of_something_that_exists(document: Json) -> None:
    schemas = document["components"]["schemas"]
    fields = {name: set(schema.get("properties", {})) for name, schema in schemas.items()}
    named = {
        operation["operationId"]: {each["name"].lower() for each in operation.get("parameters", [])}
        for _, _, operation in operations(document)
    }
    about = words("descriptions")
    unknown = [f"{name}.{field}" for name, own in about["schemas"].items() for field in set(own) - fields[name]]
    unknown += [f"{name}.{each}" for name, own in about["operations"].items() for each in set(own) - named[name]]
    inherited = {field for name, own in fields.items() for field in own - set(about["schemas"].get(name, {}))}
    unknown += sorted(set(about["fields"]) - inherited)
    unknown += sorted(set(about["parameters"]) - set().union(*named.values()))
    assert unknown == []


def test_descriptions_use_the_words_of_json(document: Json) -> None:
    told = [at for at, part in parts(document) if re.search(r"\b(None|True|False)\b", str(part.get("description", "")))]
    assert told == []


def test_answers_have_all_of_their_fields(document: Json) -> None:
    schemas = document["components"]["schemas"]
    for name in ("Hit", "Recalled", "SourcedMemory", "ReflectReport", "Receipt"):
        assert schemas[name]["required"] == list(schemas[name]["properties"]), name
    assert schemas["RecallIn"]["required"] == ["query"]
    assert "hint" not in schemas["Problem"]["required"]


def test_every_body_has_an_example_that_fits_its_schema(document: Json) -> None:
    schemas = document["components"]["schemas"]
    bodies = [
        content["schema"]
        for _, _, operation in operations(document)
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items()
        if media_type == "application/json"
    ]
    sent = {part["$ref"].rpartition("/")[2] for body in bodies for _, part in parts(body) if "$ref" in part}
    assert [name for name in sent if not schemas[name].get("examples")] == []
    for schema in schemas.values():
        for example in schema.get("examples", []):
            Draft202012Validator({"components": document["components"], **schema}).validate(example)
    assert set(words("examples")) <= set(schemas)
