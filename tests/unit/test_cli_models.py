"""Agent CLIs as language models: how they are run, what is read of their output, and how they are ended."""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from pydantic import BaseModel

from esker.server.agents.exclusion import without_excluded
from esker.server.agents.project import is_excluded
from esker.server.agents.transcript import Transcript
from esker.server.core.config.settings import Settings
from esker.server.core.errors import ContextExceeded, ModelDown, ModelFailed, ModelTooSlow
from esker.server.core.records import TokenUse
from esker.server.providers import child_run
from esker.server.providers.agent_clients import AGENT_CLIENTS
from esker.server.providers.answers import read_answer
from esker.server.providers.cli_model import CliWire
from esker.server.providers.context_size import ContextSize
from esker.server.providers.language_model import Answered, LanguageModel, ModelReply
from tests.support.scripted_clients import ScriptedClient, said_by

NAMES = [*AGENT_CLIENTS]
SECRET = "The harbour code is 4711."


class Colour(BaseModel):
    """The shape that is asked for."""

    colour: str


@dataclass
class Counted:
    """Allows every call, and keeps the token use of each."""

    used: list[TokenUse] = field(default_factory=list[TokenUse])

    async def reserve(self, model: str, most: TokenUse) -> str:
        """Allow it."""
        return ""

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Keep it."""
        if used is not None:
            self.used.append(used)


@pytest.fixture(params=NAMES)
def client(request: pytest.FixtureRequest, tmp_path: Path) -> ScriptedClient:
    """Each client in turn."""
    return ScriptedClient(tmp_path, request.param)


@pytest.fixture
def claude(tmp_path: Path) -> ScriptedClient:
    """One client."""
    return ScriptedClient(tmp_path, "claude")


def model_of(client: ScriptedClient, timeout: float = 100.0, concurrency: int = 1) -> LanguageModel:
    """Return the model behind a client."""
    wire = CliWire(
        AGENT_CLIENTS[client.name], "m-1", concurrency, client.environ | {"CLAUDECODE": "1", "GEMINI_CLI_HOME": "/g"}
    )
    return LanguageModel(f"cli:{client.name}", wire, timeout, ContextSize())


def red(reply: ModelReply) -> str:
    """Read a colour."""
    return read_answer(reply.text, Colour).colour


async def asked_for(model: LanguageModel, meter: Counted | None = None) -> Answered[str]:
    """Ask a model for a colour."""
    content = [{"type": "text", "text": SECRET}, {"type": "text", "text": "Which colour?"}]
    return await model.ask("Name a colour.", content, Colour, red, max_tokens=50, meter=meter or Counted())


# How a client is run --------------------------------------------------------------------------------------------------


async def test_the_transcript_goes_by_standard_input_alone(client: ScriptedClient) -> None:
    client.prints(said_by(client.name, '{"colour": "red"}'))
    assert (await asked_for(model_of(client))).value == "red"
    [call] = client.calls
    assert SECRET in call["text"]
    assert SECRET not in json.dumps([call["argv"], call["environ"]])
    files = [file for file in (client.folder / "state").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if SECRET in file.read_text()]


async def test_it_runs_at_low_priority_in_a_folder_of_its_own_that_no_hook_observes(client: ScriptedClient) -> None:
    client.prints(said_by(client.name, '{"colour": "red"}'))
    await asked_for(model_of(client))
    [call] = client.calls
    assert call["nice"] >= 10
    assert call["environ"]["IN_ESKER_HOOK"] == "1"
    # OpenCode takes PWD for its directory.
    assert call["environ"]["PWD"] == call["cwd"]
    # Nothing of Esker's settings, and nothing of an agent that started the server.
    assert not {name for name in call["environ"] if name.startswith("ESKER_") or name == "CLAUDECODE"}
    assert call["environ"]["GEMINI_CLI_HOME"] == "/g", "a setting of the client is not the session of another agent"
    assert is_excluded(call["cwd"], "esker-model", ())
    session = Transcript(client="codex", external_id="s", cwd=call["cwd"], project=None, entries=[])
    assert without_excluded(session, ()) is None


@pytest.mark.parametrize("name", [each.name for each in AGENT_CLIENTS.values() if each.reads_mentions])
async def test_a_path_behind_an_at_sign_is_no_mention_of_a_file(name: str, tmp_path: Path) -> None:
    client = ScriptedClient(tmp_path, name)
    client.prints(said_by(name, '{"colour": "@\u2060a/b and @\\u2060c"}'))
    content = [{"type": "text", "text": 'Look at @/etc/passwd, @"/etc/hosts" and me@example.org.'}]
    answered = await model_of(client).ask("Name a colour.", content, Colour, red, max_tokens=50, meter=Counted())
    assert answered.value == "@a/b and @c"
    assert "@" not in client.calls[0]["text"].replace("@\u2060", "")


async def test_the_instructions_and_the_schema_are_given_to_it(client: ScriptedClient) -> None:
    client.prints(said_by(client.name, '{"colour": "red"}'))
    await asked_for(model_of(client))
    [call] = client.calls
    files = {file.name: file.read_text() for file in (client.folder / "state").rglob("*") if file.is_file()}
    given = json.dumps([call["argv"], call["environ"]])
    named = [text for name, text in files.items() if name in given]
    assert [text for text in named if text.startswith("Name a colour.")]
    assert "additionalProperties" in given + "".join(named)
    assert "m-1" in call["argv"]


async def test_a_bad_answer_is_sent_back_once_with_the_first_text(client: ScriptedClient) -> None:
    client.does(
        f"good = 'That answer cannot be used' in text\n"
        f"print({said_by(client.name, 'SAID')!r}.replace('SAID', json.dumps('{{\"colour\": \"red\"}}')[1:-1]"
        f" if good else 'I think red'))"
    )
    meter = Counted()
    assert (await asked_for(model_of(client), meter)).value == "red"
    first, second = client.calls
    assert second["text"].startswith(first["text"].strip())
    assert "I think red" in second["text"]
    assert meter.used == [TokenUse(93, 20, cache_read_tokens=7)] * 2


async def test_at_most_one_runs_at_a_time_and_waiting_is_not_counted_as_its_time(claude: ScriptedClient) -> None:
    folder = claude.folder
    claude.does(
        f"running = {str(folder)!r} + '/running'\n"
        "os.mkdir(running)\n"
        "import time; time.sleep(0.3)\n"
        "os.rmdir(running)\n"
        f"print({said_by('claude', json.dumps({'colour': 'red'}))!r})"
    )
    model = model_of(claude)
    answers = await asyncio.gather(*(asked_for(model) for _ in range(4)))
    # A second one at the same time could not make the directory.
    assert [answer.value for answer in answers] == ["red"] * 4


# Its output -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "around",
    [
        "Warning: 256-color support not detected.\n{}",
        "\x1b[33mA new version is available\x1b[0m\n\n{}\nUpdate with npm i -g.\n",
        '{{"note": "experimental"}}\n{}',
        "{{ not JSON\n{}",
    ],
    ids=["before", "around", "another object", "a brace"],
)
async def test_banners_around_an_answer_are_read_over(client: ScriptedClient, around: str) -> None:
    client.prints(around.format(said_by(client.name, '{"colour": "red"}')))
    assert (await asked_for(model_of(client))).value == "red"


async def test_the_structured_output_of_claude_is_the_answer(claude: ScriptedClient) -> None:
    said = json.loads(said_by("claude", "Done.")) | {"structured_output": {"colour": "blue"}}
    claude.prints(json.dumps(said))
    assert (await asked_for(model_of(claude))).value == "blue"


FAILURES = {
    "claude": '{"type": "result", "is_error": true, "result": "PROBLEM"}',
    "codex": '{"type": "turn.started"}\n{"type": "error", "message": "PROBLEM"}\n'
    '{"type": "turn.failed", "error": {"message": "PROBLEM"}}',
    "gemini": '{"session_id": "s", "error": {"type": "Error", "message": "PROBLEM", "code": 41}}',
    "opencode": '{"type": "error", "error": {"name": "APIError", "data": {"message": "PROBLEM"}}}',
}


@pytest.mark.parametrize(
    ("problem", "kind", "state"),
    [
        ("Not logged in · Please run /login", ModelDown, "is not logged in"),
        ("unexpected status 401 Unauthorized", ModelDown, "is not logged in"),
        ("Invalid auth method selected.", ModelDown, "is not logged in"),
        ("Claude usage limit reached|1796034536", ModelDown, "is limited"),
        ("You've hit your usage limit. Try again at 5 PM.", ModelDown, "is limited"),
        ("429 Too Many Requests", ModelDown, "is limited"),
        ("Prompt is too long", ContextExceeded, "refused the request"),
        ("something else broke", ModelFailed, "gave no answer"),
    ],
)
async def test_what_a_client_says_in_place_of_an_answer_is_told_apart(
    client: ScriptedClient, problem: str, kind: type[ModelFailed], state: str
) -> None:
    client.prints(FAILURES[client.name].replace("PROBLEM", problem), code=1)
    model = model_of(client)
    with pytest.raises(ModelFailed, match=state) as raised:
        await asked_for(model)
    assert type(raised.value) is kind
    assert kind is not ModelDown or "an agent CLI is started again by itself" in (raised.value.hint or "")
    assert bool(model.problem) is (kind is ModelDown)


async def test_a_client_that_is_logged_out_rests_before_it_is_started_again(claude: ScriptedClient) -> None:
    claude.prints(FAILURES["claude"].replace("PROBLEM", "Please run /login"), code=1)
    model = model_of(claude)
    for _ in range(3):
        with pytest.raises(ModelDown, match="not logged in"):
            await asked_for(model)
    assert len(claude.calls) == 1
    model.breaker.try_again()
    with pytest.raises(ModelDown, match="not logged in"):
        await asked_for(model)
    assert len(claude.calls) == 2
    claude.prints(said_by("claude", '{"colour": "red"}'))
    model.breaker.try_again()
    assert (await asked_for(model)).value == "red"
    assert model.problem is None


async def test_a_client_that_is_not_there_is_named(tmp_path: Path) -> None:
    client = ScriptedClient(tmp_path, "codex")
    with pytest.raises(ModelDown, match="no `codex` on the server's PATH"):
        await asked_for(model_of(client))


@pytest.mark.parametrize("printed", ["", "Segmentation fault\n", "{" * 5_000, '{"result": ""}', "[1, 2]\n", "\x00\xff"])
async def test_nonsense_is_a_failure(client: ScriptedClient, printed: str) -> None:
    client.prints(printed, code=1)
    with pytest.raises(ModelFailed):
        await asked_for(model_of(client))


async def test_an_answer_that_a_client_gave_with_its_tools_and_hooks_is_not_used(tmp_path: Path) -> None:
    client = ScriptedClient(tmp_path, "gemini")
    said = said_by("gemini", '{"colour": "red"}')
    client.does(
        f"sys.stderr.write('Security Warning: Skipping system settings file /tmp/x: insecure')\nprint({said!r})"
    )
    with pytest.raises(ModelFailed, match="does not trust"):
        await asked_for(model_of(client))


async def test_an_error_on_standard_error_alone_is_understood(claude: ScriptedClient) -> None:
    claude.does("sys.stderr.write('x' * 500_000 + '\\nInvalid API key · Please run /login\\n'); sys.exit(1)")
    with pytest.raises(ModelDown, match="not logged in"):
        await asked_for(model_of(claude))


async def test_words_on_standard_error_alone_are_shown(client: ScriptedClient) -> None:
    client.does("sys.stderr.write('Warning: 256 colours\\nYou exceeded your current quota, friend.\\n'); sys.exit(1)")
    with pytest.raises(ModelDown, match=r"is limited: .*You exceeded your current quota, friend\."):
        await asked_for(model_of(client))


async def test_a_problem_that_gemini_prints_among_traces_is_shown_alone(tmp_path: Path) -> None:
    client = ScriptedClient(tmp_path, "gemini")
    problem = {"session_id": "s", "error": {"type": "Error", "message": "You exceeded your quota.", "code": 429}}
    trace = 'Attempt 1 failed: {"error": {"message": "busy"}}\n    at retry (file:///x.js:1:2) {\n  status: 429\n}\n'
    client.does(f"sys.stderr.write({trace + json.dumps(problem, indent=2)!r}); sys.exit(173)")
    with pytest.raises(ModelDown, match=r"is limited: You exceeded your quota\.$"):
        await asked_for(model_of(client))


# How it is ended ------------------------------------------------------------------------------------------------------

# Starts a child in its group and one that has left it, notes both, and then lives on.
FORKS = """
import subprocess, time
sleeping = [sys.executable, "-c", "import time; time.sleep(1000)"]
ours = [subprocess.Popen(sleeping), subprocess.Popen(sleeping, start_new_session=True)]
with open(os.path.join(here, "pids.part"), "w") as pids:
    pids.write(" ".join(map(str, [os.getpid(), *(each.pid for each in ours)])))
os.rename(os.path.join(here, "pids.part"), os.path.join(here, "pids"))
"""


async def forked(client: ScriptedClient) -> list[psutil.Process]:
    """Wait for a client that forks, and return its processes."""

    def wait() -> str:
        while not (client.folder / "pids").exists():
            time.sleep(0.01)
        return (client.folder / "pids").read_text()

    found: list[psutil.Process] = []
    for pid in map(int, (await asyncio.to_thread(wait)).split()):
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


async def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Wait up to 20 seconds for processes to end; return those that still run."""
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, 20)
    return [each for each in alive if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


async def test_a_cancelled_call_ends_the_client_with_all_that_it_started(claude: ScriptedClient) -> None:
    claude.does(FORKS + "time.sleep(1000)")
    call = asyncio.create_task(asked_for(model_of(claude)))
    processes = await forked(claude)
    assert len(processes) == 3
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await living(processes) == []


async def test_a_call_that_takes_too_long_is_ended_and_counted_at_its_most(claude: ScriptedClient) -> None:
    claude.does(FORKS + "time.sleep(1000)")
    meter = Counted()
    model = model_of(claude, timeout=3.0)
    call = asyncio.create_task(asked_for(model, meter))
    with pytest.raises(ModelTooSlow):
        await call
    assert await living(await forked(claude)) == []
    [used] = meter.used
    assert used.output_tokens == 50


async def test_a_child_that_holds_the_output_open_delays_nothing(claude: ScriptedClient) -> None:
    claude.does(FORKS + f"print({said_by('claude', json.dumps({'colour': 'red'}))!r}, flush=True)\nos._exit(0)")
    assert (await asked_for(model_of(claude))).value == "red"
    processes = await forked(claude)
    stray = int((claude.folder / "pids").read_text().split()[2])
    # A process that left the group when the client had ended is the client's own affair.
    psutil.Process(stray).kill()
    assert await living(processes) == []


async def test_fifty_megabytes_are_not_read_to_the_end(claude: ScriptedClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_run, "MOST_OUTPUT_BYTES", 1_000_000)
    claude.does("for _ in range(800): sys.stdout.write('x' * 65_536)\nopen(here + '/written', 'w').close()")
    with pytest.raises(ModelFailed, match="wrote more than"):
        await asked_for(model_of(claude))
    assert not (claude.folder / "written").exists()


async def test_a_client_that_reads_none_of_its_input_may_answer(tmp_path: Path) -> None:
    client = ScriptedClient(tmp_path, "claude")
    script = tmp_path / "claude"
    script.write_text(f"#!/bin/sh\nexec <&-\ncat <<'END'\n{said_by('claude', json.dumps({'colour': 'red'}))}END\n")
    script.chmod(0o755)
    model = model_of(client)
    long = [{"type": "text", "text": "word " * 100_000}]
    answered = await model.ask("Name it.", long, Colour, red, max_tokens=50, meter=Counted())
    assert answered.value == "red"


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_each_client_can_be_set_for_both_roles_and_costs_no_money(name: str) -> None:
    settings = Settings.from_environment({"ESKER_OBSERVER": f"cli:{name}", "ESKER_REFLECTOR": f"cli:{name}"})
    assert settings.author_of("observer") == settings.author_of("reflector") == f"cli:{name}"
    assert settings.price(f"cli:{name}")
