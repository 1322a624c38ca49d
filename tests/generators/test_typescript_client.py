"""The TypeScript client: compiled, packed, installed as a package, and run under node against a server."""

import json
import os
import tarfile
from pathlib import Path

import httpx2
import pytest

from esker.server.usecases.authenticate import SCOPES, create_key
from esker.server.usecases.parts import Parts
from tests.generators.programs import ran
from tests.generators.typescript import FOLDER, SCHEMA, document, first_line

MODULES = ("connection", "errors", "index", "operations", "schema", "session")


@pytest.fixture(scope="module")
async def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that `npm pack` makes, which compiles the sources first."""
    folder = tmp_path_factory.mktemp("packed")
    code, printed = await ran("npm", "pack", "--silent", "--pack-destination", str(folder), folder=FOLDER)
    assert code == 0, printed
    [packed] = folder.glob("*.tgz")
    return packed


async def test_the_committed_types_are_those_of_the_generator(tmp_path: Path) -> None:
    (FOLDER / "openapi.json").write_text(json.dumps(document()), encoding="utf-8")
    fresh = tmp_path / "schema.ts"
    code, printed = await ran("npm", "run", "--silent", "types", "--", str(fresh), folder=FOLDER)
    assert code == 0, printed
    written = SCHEMA.read_text(encoding="utf-8")
    assert written.startswith(first_line(document()))
    assert without_prose(written.partition("\n")[2]) == without_prose(fresh.read_text(encoding="utf-8"))


async def test_the_types_accept_what_the_server_accepts_and_nothing_else() -> None:
    code, printed = await ran("npm", "run", "--silent", "check", folder=FOLDER)
    assert code == 0, printed


def test_the_package_has_the_client_and_nothing_else(package: Path) -> None:
    with tarfile.open(package) as packed:
        names = {name.removeprefix("package/") for name in packed.getnames()}
    modules = {f"dist/{name}{suffix}" for name in MODULES for suffix in (".js", ".d.ts")}
    assert names == {"package.json", "README.md"} | modules


async def test_the_installed_package_works_against_a_server(
    package: Path, tmp_path: Path, client: httpx2.AsyncClient, parts: Parts
) -> None:
    key = await create_key(parts, name="node", pool="default", scopes=list(SCOPES))
    installed = tmp_path / "node_modules" / "esker-client"
    with tarfile.open(package) as packed:
        packed.extractall(tmp_path, filter="data")
    installed.parent.mkdir()
    (tmp_path / "package").rename(installed)
    (tmp_path / "client.test.js").write_bytes((FOLDER / "test" / "client.test.js").read_bytes())
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    there = {"ESKER_URL": str(client.base_url), "ESKER_KEY": key.key, "PATH": os.environ["PATH"]}
    code, printed = await ran("node", "--test", "client.test.js", folder=tmp_path, **there)
    assert code == 0, printed


def without_prose(types: str) -> str:
    """Return generated types without their comments, which are the descriptions of the document."""
    return "\n".join(line for line in types.splitlines() if not line.lstrip().startswith(("/*", "*")))
