"""The client that openapi-python-client generates from the document: complete, well typed, and working."""

import json
import re
from pathlib import Path

import httpx2
import pytest

from esker.server.rest.document import operations
from esker.server.usecases.authenticate import SCOPES, create_key
from esker.server.usecases.parts import Parts
from tests.generators.programs import ran, tool
from tests.generators.typescript import document
from tests.support.processes import ROOT

[CONFIGURATION] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.DOTALL)
AGENT = """
import sys
from io import BytesIO
from esker_client import AuthenticatedClient
from esker_client.api.memories import forget_memory, get_memory, list_memories, recall_memories, write_memory
from esker_client.api.pool import export_pool, import_pool
from esker_client.api.sessions import add_messages, get_pack, open_session
from esker_client.models import MemoryIn, MessageIn, MessagesIn, Problem, RecallIn, SessionIn
from esker_client.types import File

url, key = sys.argv[1:]
with AuthenticatedClient(base_url=url, token=key) as client:
    written = write_memory.sync(client=client, body=MemoryIn(content="The ledger lives in Postgres.", project="shop"))
    found = recall_memories.sync(client=client, body=RecallIn(query="Where does the ledger live?"))
    assert [hit.id for hit in found.hits] == [written.id], found
    assert found.hits[0].valid_until is None
    assert get_memory.sync(written.id, client=client) == written
    session = open_session.sync(client=client, body=SessionIn(client="python", external_id="s1"))
    said = MessagesIn(messages=[MessageIn(external_id="m1", role="user", content="Invoices are numbered by year.")])
    assert add_messages.sync(session.id, client=client, body=said).accepted == 1
    assert get_pack.sync(session.id, client=client, explain=True).explanation is not None
    lines = export_pool.sync(client=client).payload.read()
    assert import_pool.sync(client=client, body=File(payload=BytesIO(lines))).ended
    assert forget_memory.sync(written.id, client=client).memories == 1
    assert list_memories.sync(client=client).memories == []
    missing = get_memory.sync(written.id, client=client)
    assert isinstance(missing, Problem) and missing.status == 404 and missing.detail, missing
    wrong = recall_memories.sync(client=client, body=RecallIn(query="x", limit=0))
    assert isinstance(wrong, Problem) and wrong.errors[0].at == "limit", wrong
with AuthenticatedClient(base_url=url, token="wrong") as client:
    assert list_memories.sync(client=client).status == 401
"""


@pytest.fixture(scope="module")
async def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a generated client; a warning of the generator is an error."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(document()), encoding="utf-8")
    (folder / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    given = ("--path", "openapi.json", "--config", "config.yaml", "--output-path", "esker_client", "--meta", "none")
    code, printed = await ran(tool("openapi-python-client"), "generate", *given, "--fail-on-warning", folder=folder)
    assert code == 0, printed
    return folder


def test_every_operation_has_a_module_named_after_it(generated: Path) -> None:
    modules = {path.stem for path in (generated / "esker_client" / "api").glob("*/*.py")} - {"__init__"}
    ids = {operation["operationId"].lower() for _, _, operation in operations(document())}
    assert {name.replace("_", "") for name in modules} == ids


async def test_the_generated_client_is_well_typed(generated: Path) -> None:
    # `client.py` is the generator's own.
    checked = ("esker_client/api", "esker_client/models", "--follow-imports=silent")
    code, printed = await ran(tool("mypy"), *checked, folder=generated)
    assert code == 0, printed


async def test_the_generated_client_works(generated: Path, client: httpx2.AsyncClient, parts: Parts) -> None:
    key = await create_key(parts, name="generated", pool="default", scopes=list(SCOPES))
    (generated / "agent.py").write_text(AGENT, encoding="utf-8")
    url = str(client.base_url).rstrip("/")
    code, printed = await ran(tool("python"), "agent.py", url, key.key, folder=generated)
    assert code == 0, printed
