"""Real agent CLIs as language models, against the scripted model; `make clients` installs them."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from esker.server.core.errors import ModelDown
from esker.server.providers.agent_clients import AGENT_CLIENTS
from esker.server.providers.answers import read_answer
from esker.server.providers.cli_model import CliWire
from esker.server.providers.context_size import ContextSize
from esker.server.providers.language_model import LanguageModel, ModelRequest
from tests.clients.homes import environment, make_home
from tests.clients.installing import Clients, known_clients
from tests.clients.model.server import Failure, ModelAsked, scripted_model
from tests.support.model_server import Unmetered
from tests.support.processes import ROOT

INSTALLED = Path(os.environ.get("CLIENTS_FOLDER", ROOT / ".clients"))
MODELS = {"claude": "claude-haiku-4-5", "codex": "gpt-5.5", "gemini": "gemini-2.5-flash", "opencode": None}
SECRET = "The harbour code is 4711. "


class Facts(BaseModel):
    """The shape that is asked for."""

    facts: list[str]


@pytest.fixture
def asked() -> Iterator[ModelAsked]:
    """The scripted model."""
    with scripted_model() as model:
        yield model


def hooked(home: Path, marker: Path) -> None:
    """Let every client run a hook at its start."""
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {marker}"}]}]}
    (home / ".codex/hooks.json").write_text(json.dumps({"hooks": hooks}))
    for name in (".claude/settings.json", ".gemini/settings.json"):
        file = home / name
        given = json.loads(file.read_text()) if file.exists() else {}
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(given | {"hooks": hooks}))


def with_scripted_provider(folder: Path, program: str, url: str) -> str:
    """Write a `codex` that knows the scripted model: the user's own providers are not read."""
    provider = f'model_providers.s={{name="s",base_url="{url}/v1",wire_api="responses",env_key="SCRIPTED_KEY"}}'
    script = folder / "codex"
    script.write_text(f"#!/bin/sh\nshift\nexec {program} exec -c 'model_provider=\"s\"' -c '{provider}' \"$@\"\n")
    script.chmod(0o755)
    return str(folder)


def wire_of(name: str, asked: ModelAsked, tmp_path: Path, request: pytest.FixtureRequest) -> CliWire:
    """Return how a real client is called, in a home where it uses the scripted model."""
    path = Clients(INSTALLED, known_clients()).path()
    program = shutil.which(name, path=path)
    if program is None or not program.startswith(str(INSTALLED)):
        pytest.skip(f"{name} is not in {INSTALLED}; `make clients` installs it")
    home = tmp_path / "home"
    make_home(home, tmp_path / "work", asked.url)
    hooked(home, tmp_path / "hooked")
    if name == "codex":
        path = f"{with_scripted_provider(tmp_path, program, asked.url)}:{path}"
    # Gemini CLI trusts no settings below a directory that others may write into, such as /tmp.
    state = Path(tempfile.mkdtemp(prefix=".esker-test-", dir=Path.home()))
    request.addfinalizer(lambda: shutil.rmtree(state))
    environ = environment(home, asked.url, path) | {"ESKER_STATE_DIR": str(state)}
    return CliWire(AGENT_CLIENTS[name], MODELS[name], 1, environ)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", AGENT_CLIENTS)
async def test_a_real_client_answers_without_its_tools_and_hooks(
    name: str, asked: ModelAsked, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model = LanguageModel(f"cli:{name}", wire_of(name, asked, tmp_path, request), 300, ContextSize())
    said = [{"type": "text", "text": SECRET * 5_000}, {"type": "text", "text": 'SAY {"facts": ["a"]}'}]
    try:
        answered = await model.ask(
            "You keep the memory.",
            said,
            Facts,
            lambda reply: read_answer(reply.text, Facts).facts,
            max_tokens=100,
            meter=Unmetered(),
        )
    finally:
        await model.close()
    # A client that sends the schema to the model itself gets an empty answer from the script.
    assert answered.value in (["a"], [])
    assert answered.used.input_tokens >= 100
    body = asked.bodies[-1]
    assert SECRET in "\n".join(asked.texts_since(len(asked.bodies) - 1))
    assert "You keep the memory." in "\n".join(asked.texts_since(len(asked.bodies) - 1))
    tools = {tool.get("name") for tool in body.get("tools") or [] if isinstance(tool, dict)} - {None}
    assert tools <= {"StructuredOutput", "request_user_input", "apply_patch", "view_image"}
    assert not (tmp_path / "hooked").exists()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", AGENT_CLIENTS)
async def test_a_real_client_that_is_limited_says_so_after_a_few_requests(
    name: str, asked: ModelAsked, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    asked.refuses = Failure(429)
    wire = wire_of(name, asked, tmp_path, request)
    said = [{"role": "user", "content": [{"type": "text", "text": "We chose pnpm."}]}]
    try:
        with pytest.raises(ModelDown, match=r"is limited: .*(rate limit|429)"):
            await wire.send(ModelRequest("You keep the memory.", said, Facts, 100))
    finally:
        await wire.close()
    # OpenCode repeats a request five times, and no setting says less.
    assert 0 < len([each for each in asked.exchanges if each.method == "POST"]) <= 6
