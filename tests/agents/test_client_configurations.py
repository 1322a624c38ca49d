"""The installed files have the format that each client documents, and the right values."""

import json
import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from esker.server import VERSION
from esker.server.agents import hooks
from esker.server.agents.hook_input import STEPS as HOOK_STEPS
from esker.server.agents.install.client import check_address
from esker.server.agents.install.clients import CLIENTS
from esker.server.core.config.client_settings import INSIDE_HOOK as INSIDE
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.errors import Misconfigured
from tests.support.homes import FILES, PROGRAM, URL, Home
from tests.support.processes import ROOT

KEY = "esker_0123456789abcdefghijklmnopqrstuvwxyz"
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^/]+/mcp\?hooks=yes$")]
Command = Annotated[str, StringConstraints(min_length=1)]


class Strict(BaseModel):
    """A schema without additional fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class CommandHook(Strict):
    """A command hook of Claude Code; the timeout is in seconds."""

    type: Literal["command"]
    command: Command
    timeout: Annotated[int, Field(ge=1, le=600)] | None = None
    run_async: bool | None = Field(default=None, alias="async")


class ClaudeGroup(Strict):
    """Handlers for the cases that a matcher names."""

    matcher: str | None = None
    hooks: Annotated[list[CommandHook], Field(min_length=1)]


class ClaudeEvents(Strict):
    """The events that Esker uses, of Claude Code's 34."""

    SessionStart: list[ClaudeGroup]
    UserPromptSubmit: list[ClaudeGroup]
    Stop: list[ClaudeGroup]
    SubagentStop: list[ClaudeGroup]
    PreCompact: list[ClaudeGroup]
    SessionEnd: list[ClaudeGroup]


class ClaudeSettings(Strict):
    """The contents of settings.json."""

    hooks: ClaudeEvents


class ClaudeServer(Strict):
    """A server over HTTP; the type is required with a url. The timeout of calls is in milliseconds."""

    type: Literal["http"]
    url: Url
    timeout: Annotated[int, Field(ge=1000, le=30_000)]
    headers: dict[str, str] | None = None


class ClaudeServers(Strict):
    """.claude.json and .mcp.json."""

    mcpServers: dict[str, ClaudeServer]


class CodexHandler(Strict):
    """A command hook of Codex; the timeout is in seconds."""

    type: Literal["command"]
    command: Command
    timeout: Annotated[int, Field(ge=1, le=600)]


class CodexGroup(Strict):
    """Handlers."""

    hooks: Annotated[list[CodexHandler], Field(min_length=1)]


class CodexEvents(Strict):
    """The events that Esker uses, of Codex's 12."""

    SessionStart: list[CodexGroup]
    UserPromptSubmit: list[CodexGroup]
    Stop: list[CodexGroup]
    SubagentStop: list[CodexGroup]
    PreCompact: list[CodexGroup]
    SessionEnd: list[CodexGroup]


class CodexHooks(Strict):
    """The contents of hooks.json."""

    hooks: CodexEvents


class CodexServer(Strict):
    """A server over HTTP; both timeouts are in seconds."""

    url: Url
    startup_timeout_sec: Annotated[int, Field(ge=1, le=5)]
    tool_timeout_sec: Annotated[int, Field(ge=1, le=30)]
    bearer_token_env_var: str | None = None


class CodexConfig(Strict):
    """config.toml."""

    mcp_servers: dict[str, CodexServer]


class GeminiHandler(Strict):
    """A command hook of Gemini CLI; the timeout is in milliseconds."""

    type: Literal["command"]
    command: Command
    timeout: Annotated[int, Field(ge=1000, le=60_000)]


class GeminiGroup(Strict):
    """Handlers."""

    hooks: Annotated[list[GeminiHandler], Field(min_length=1)]


class GeminiEvents(Strict):
    """The events that Esker uses, of Gemini CLI's 11."""

    SessionStart: list[GeminiGroup]
    BeforeAgent: list[GeminiGroup]
    AfterAgent: list[GeminiGroup]
    SessionEnd: list[GeminiGroup]


class GeminiServer(Strict):
    """A server over streamable HTTP; `url` would mean server-sent events. The timeout is in milliseconds."""

    httpUrl: Url
    timeout: Annotated[int, Field(ge=1000, le=5000)]
    headers: dict[str, str] | None = None


class GeminiSettings(Strict):
    """The contents of settings.json."""

    mcpServers: dict[str, GeminiServer]
    hooks: GeminiEvents


class CursorHandler(Strict):
    """A hook of Cursor."""

    command: Command
    timeout: Annotated[int, Field(ge=1, le=600)]


class CursorEvents(Strict):
    """The events that Esker uses, in camel case."""

    sessionStart: list[CursorHandler]
    stop: list[CursorHandler]
    preCompact: list[CursorHandler]
    sessionEnd: list[CursorHandler]


class CursorHooks(Strict):
    """The contents of hooks.json."""

    version: Literal[1]
    hooks: CursorEvents


class CursorServer(Strict):
    """A server of Cursor, which takes no timeout."""

    url: Url
    headers: dict[str, str] | None = None


class CursorServers(Strict):
    """The contents of mcp.json."""

    mcpServers: dict[str, CursorServer]


Exposure = Literal["codemode", "deferred", "direct", "hidden"]


class PiServer(Strict):
    """A server of pi; the timeout is in seconds."""

    url: Url
    exposure: Exposure
    toolExposure: dict[str, Exposure]
    timeout: Annotated[int, Field(ge=1, le=5)]
    headers: dict[str, str] | None = None


class PiServers(Strict):
    """The contents of mcp.json."""

    mcpServers: dict[str, PiServer]


class CopilotServer(Strict):
    """A server that Copilot CLI starts as a process; the timeout is in milliseconds."""

    type: Literal["local"]
    command: Command
    args: list[str]
    env: dict[str, str]
    tools: list[str]
    timeout: Annotated[int, Field(ge=1000, le=30_000)]


class CopilotServers(Strict):
    """The contents of mcp-config.json."""

    mcpServers: dict[str, CopilotServer]


class CopilotHandler(Strict):
    """A command hook of Copilot CLI."""

    type: Literal["command"]
    command: Command
    timeoutSec: Annotated[int, Field(ge=1, le=60)]


class CopilotEvents(Strict):
    """The events that Esker uses."""

    sessionStart: list[CopilotHandler]
    userPromptSubmitted: list[CopilotHandler]
    agentStop: list[CopilotHandler]
    preCompact: list[CopilotHandler]
    sessionEnd: list[CopilotHandler]


class CopilotHooks(Strict):
    """A file in the folder `hooks`."""

    version: Literal[1]
    hooks: CopilotEvents


class OpenCodeServer(Strict):
    """A remote server; the timeout is in milliseconds."""

    type: Literal["remote"]
    url: Url
    enabled: Literal[True]
    timeout: Annotated[int, Field(ge=1000, le=5000)]
    headers: dict[str, str] | None = None


class OpenCodeConfig(Strict):
    """The contents of opencode.json."""

    mcp: dict[str, OpenCodeServer]


SCHEMAS: dict[str, type[BaseModel]] = {
    ".claude.json": ClaudeServers,
    ".claude/settings.json": ClaudeSettings,
    ".codex/config.toml": CodexConfig,
    ".codex/hooks.json": CodexHooks,
    ".gemini/settings.json": GeminiSettings,
    ".config/opencode/opencode.json": OpenCodeConfig,
    ".pi/agent/mcp.json": PiServers,
    ".cursor/mcp.json": CursorServers,
    ".cursor/hooks.json": CursorHooks,
    ".copilot/mcp-config.json": CopilotServers,
    ".copilot/hooks/esker.json": CopilotHooks,
}
# How each client refers to the value of a variable.
KEYS = {
    ".claude.json": "Bearer ${ESKER_KEY}",
    ".codex/config.toml": "ESKER_KEY",
    ".gemini/settings.json": "Bearer ${ESKER_KEY}",
    ".config/opencode/opencode.json": "Bearer {env:ESKER_KEY}",
    ".pi/agent/mcp.json": "Bearer ${ESKER_KEY}",
    ".cursor/mcp.json": "Bearer ${env:ESKER_KEY}",
}
STEPS = {
    "claude-code": "SessionStart UserPromptSubmit Stop SubagentStop PreCompact SessionEnd",
    "codex": "SessionStart UserPromptSubmit Stop SubagentStop PreCompact SessionEnd",
    "gemini-cli": "SessionStart BeforeAgent AfterAgent SessionEnd",
    "cursor": "sessionStart stop preCompact sessionEnd",
    "copilot": "sessionStart userPromptSubmitted agentStop preCompact sessionEnd",
}
PLUGINS = {"opencode": ".config/opencode/plugins/esker.ts", "pi": ".pi/agent/extensions/esker.ts"}


def read(home: Home, name: str) -> Any:
    """Return the parsed file; Esker writes no comments into these."""
    text = home.read(name)
    return tomllib.loads(text) if name.endswith(".toml") else json.loads(text)


def is_hooks(name: str) -> bool:
    """Return whether a file of a client contains its hooks."""
    return name.endswith(("settings.json", "hooks.json", "hooks/esker.json"))


def commands(value: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return every command in a configuration, with its handler."""
    if isinstance(value, dict):
        own = [(str(value["command"]), value)] if isinstance(value.get("command"), str) else []
        return own + [each for item in value.values() for each in commands(item)]
    return [each for item in value for each in commands(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("with_key", [False, True])
@pytest.mark.parametrize("name", SCHEMAS)
def test_an_installed_file_has_the_format_that_its_client_documents(tmp_path: Path, name: str, with_key: bool) -> None:
    home = Home(tmp_path, with_key=with_key)
    home.install(*CLIENTS)
    SCHEMAS[name].model_validate(read(home, name))


def test_every_file_has_a_schema_or_is_a_program() -> None:
    names = {name for names in FILES.values() for name in names}
    assert {name for name in names if not name.endswith(".ts")} == set(SCHEMAS)


@pytest.mark.parametrize("client", STEPS)
def test_every_event_runs_the_program_with_the_client_and_the_event(tmp_path: Path, client: str) -> None:
    home = Home(tmp_path, program="/with a space/esker")
    home.install(client)
    [name] = [name for name in FILES[client] if is_hooks(name)]
    installed = read(home, name)["hooks"]
    assert list(installed) == STEPS[client].split()
    for event, entries in installed.items():
        [(command, _)] = commands(entries)
        assert shlex.split(command) == ["/with a space/esker", "hook", *home.options, client, event]


@pytest.mark.parametrize("client", STEPS)
def test_a_hook_answers_before_its_client_stops_waiting(tmp_path: Path, client: str) -> None:
    home = Home(tmp_path)
    home.install(client)
    [name] = [name for name in FILES[client] if is_hooks(name)]
    unit = 1000 if client == "gemini-cli" else 1
    member = "timeoutSec" if client == "copilot" else "timeout"
    for event, entries in read(home, name)["hooks"].items():
        for _, handler in commands(entries):
            if not handler.get("async"):
                # The hook's interpreter starts within the rest of the time.
                longest = ClientSettings().hook_seconds + hooks._PATIENCE.get(HOOK_STEPS[client][event], 0.0)
                assert longest <= handler[member] / unit - 1, event


def test_no_timeout_exceeds_its_clients_limit_and_sending_is_asynchronous(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.install("claude-code", "codex", "gemini-cli")
    claude = {command.split()[-1]: handler for command, handler in commands(read(home, ".claude/settings.json"))}
    assert claude["Stop"]["async"] is True
    assert claude["SubagentStop"]["async"] is True
    assert claude["UserPromptSubmit"]["timeout"] <= 30
    assert claude["SessionEnd"]["timeout"] <= 60
    assert read(home, ".claude/settings.json")["hooks"]["SessionStart"][0]["matcher"].split("|") == [
        "startup",
        "resume",
        "clear",
        "compact",
        "fork",
    ]
    codex = {command.split()[-1]: handler for command, handler in commands(read(home, ".codex/hooks.json"))}
    assert codex["SessionEnd"]["timeout"] <= 3
    assert all(handler["timeout"] >= 1000 for _, handler in commands(read(home, ".gemini/settings.json")))


@pytest.mark.parametrize("name", KEYS)
def test_the_key_is_read_from_the_environment_only_if_it_is_used(tmp_path: Path, name: str) -> None:
    home = Home(tmp_path)
    home.install(*CLIENTS)
    assert KEYS[name] not in home.read(name)
    assert "uthorization" not in home.read(name)
    home.with_key = True
    home.install(*CLIENTS)
    assert f'"{KEYS[name]}"' in home.read(name)


def test_no_installed_file_contains_the_key(tmp_path: Path) -> None:
    home = Home(tmp_path, with_key=True, environ={"ESKER_KEY": KEY})
    home.install(*CLIENTS)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_a_server_that_hangs_holds_up_no_client_that_takes_a_limit(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.install(*CLIENTS)
    for name in set(KEYS) - {".cursor/mcp.json"}:
        entry = next(iter(read(home, name).values()))["esker"]
        assert any("timeout" in member for member in entry), name


def test_copilot_connects_through_a_process_since_it_waits_for_a_server_that_hangs(tmp_path: Path) -> None:
    home = Home(tmp_path, url="https://memory.lan/esker/", with_key=True, environ={"ESKER_KEY": KEY})
    home.install("copilot")
    entry = read(home, ".copilot/mcp-config.json")["mcpServers"]["esker"]
    assert [entry["command"], *entry["args"]] == [PROGRAM, "mcp"]
    assert entry["env"]["ESKER_URL"] == "https://memory.lan/esker"
    assert KEY not in json.dumps(entry)


def test_pi_declares_recall_to_its_model(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.install("pi")
    assert read(home, ".pi/agent/mcp.json")["mcpServers"]["esker"]["toolExposure"] == {"recall_memory": "direct"}


def test_the_mcp_entry_has_the_configured_address(tmp_path: Path) -> None:
    home = Home(tmp_path, url="https://memory.lan/esker/")
    home.install(*CLIENTS)
    for name in KEYS:
        assert '"https://memory.lan/esker/mcp?hooks=yes"' in home.read(name)


ADDRESSES = ["http://other:1234", "https://memory.lan/it's;touch x&/$(y)(z)", 'http://o/"q" `r` | s']


@pytest.mark.parametrize("url", ADDRESSES)
@pytest.mark.parametrize("client", STEPS)
def test_hooks_have_the_servers_address_quoted_for_the_shell(tmp_path: Path, client: str, url: str) -> None:
    program = tmp_path / "esker"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    home = Home(tmp_path / "home", program=str(program), url=f"{url}/")
    home.install(client)
    [name] = [name for name in FILES[client] if is_hooks(name)]
    for event, entries in read(home, name)["hooks"].items():
        [(command, _)] = commands(entries)
        said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        assert said.splitlines() == ["hook", *home.options, client, event]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["esker", "home"]


def test_hooks_and_plugins_name_their_server_and_state_also_if_these_are_the_usual_ones(tmp_path: Path) -> None:
    home = Home(tmp_path, url=f"{URL}/")
    home.install(*CLIENTS)
    options = json.dumps(["--url", URL, *home.options[2:]])
    assert all(f"const OPTIONS: string[] = {options}\n" in home.read(name) for name in PLUGINS.values())


@pytest.mark.parametrize("url", ADDRESSES)
def test_hooks_for_another_server_are_recognised_however_they_are_written(tmp_path: Path, url: str) -> None:
    home = Home(tmp_path, url=url)
    home.install(*CLIENTS)
    home.forget_state()
    home.url = URL
    home.install(*STEPS)
    for client in STEPS:
        [name] = [name for name in FILES[client] if is_hooks(name)]
        assert url not in home.read(name)
        assert home.read(name).count(" hook ") == len(STEPS[client].split())
    by_hand = {"hooks": {"stop": [{"command": "esker hook --url=http://x cursor stop"}, {"command": "esker hook"}]}}
    home.write(".cursor/hooks.json", json.dumps(by_hand))
    home.uninstall("cursor")
    assert read(home, ".cursor/hooks.json") == {"hooks": {"stop": [{"command": "esker hook"}]}}


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://me:secret@memory.lan", "contains a name or a password"),
        ("http://me@memory.lan/x", "contains a name or a password"),
        ("http://a/$HOME", "cannot contain '\\$'"),
        ("http://a/${ESKER_KEY}", "cannot contain"),
        ("http://a/{env:X}", "cannot contain"),
        ("http://a\nb", "cannot contain"),
        ("http://a b", "cannot contain"),
        ("http://a?key=1", "cannot contain"),
        ("http://a/#x", "cannot contain"),
        ("http://a/\u2028", "cannot contain"),
    ],
)
def test_an_address_that_a_client_might_expand_or_that_has_a_password_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(Misconfigured, match=complaint) as caught:
        check_address(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", [URL, "https://m.lan/a~b/c%20d", "http://[::1]:8377", "http://bücher.example/x@y"])
def test_other_addresses_are_not_refused(url: str) -> None:
    check_address(url)


def test_plugins_run_the_program_whatever_its_path(tmp_path: Path) -> None:
    program = '/with "quotes" and \\ and ü/esker'
    home = Home(tmp_path, program=program)
    home.install("opencode", "pi")
    for name in PLUGINS.values():
        text = home.read(name)
        [literal] = re.findall(r"^const ESKER = (.*)$", text, re.MULTILINE)
        assert json.loads(literal) == program
        assert "{{" not in text
        assert "./ask" not in text


def test_every_installed_event_is_known_to_hooks(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.install(*CLIENTS)
    for client, events in STEPS.items():
        assert set(events.split()) <= set(HOOK_STEPS[client])
    for client, name in PLUGINS.items():
        asked = set(re.findall(r'(?:send|ask)\("([a-z_.]+)"', home.read(name))) - {client}
        assert asked == set(HOOK_STEPS[client])


def test_plugins_recognise_an_agent_started_by_a_hook(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.install(*PLUGINS)
    for name in PLUGINS.values():
        assert f'const MARK = "{INSIDE}"' in home.read(name)


# The plugin of Claude Code, which Claude Code installs itself --------------------------------------------------------


def page(name: str) -> Any:
    """Return a JSON file of this repository."""
    return json.loads((ROOT / name).read_text(encoding="utf-8"))


def test_claude_codes_plugin_differs_from_the_installation_only_by_what_is_fixed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.install("claude-code")
    options = shlex.join(home.options)
    written = json.loads(home.read(".claude/settings.json").replace(f"{PROGRAM} hook {options}", "esker hook"))
    end = written["hooks"]["SessionEnd"][0]["hooks"][0]
    end["command"] = f"exec 3<&0; {end['command']} <&3 3<&- >/dev/null 2>&1 &"
    assert page("plugins/claude-code/hooks/hooks.json") == written
    # Its hooks use ESKER_URL, and so does its server.
    servers = (ROOT / "plugins/claude-code/.mcp.json").read_text(encoding="utf-8")
    assert json.loads(servers.replace(f"${{ESKER_URL:-{URL}}}", URL)) == read(home, ".claude.json")
    assert "${ESKER_URL:-" in servers


def test_the_plugins_end_of_a_session_outlives_claude_code(tmp_path: Path) -> None:
    """Claude Code cancels a plugin's hook at the end of a session after 1.5 seconds, whatever timeout it names."""
    [command] = [each for each, _ in commands(page("plugins/claude-code/hooks/hooks.json")["hooks"]["SessionEnd"])]
    program, gate, done = tmp_path / "esker", tmp_path / "gate", tmp_path / "done"
    os.mkfifo(gate)
    os.mkfifo(done)
    program.write_text(f'#!/bin/sh\nread open < {gate}\n{{ echo "$@"; cat; }} > {done}\n')
    program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    # The command ends, and its output is closed, while the hook still waits for the gate.
    ended = subprocess.run(
        ["sh", "-c", command], input="{}\n", env={"PATH": path}, capture_output=True, text=True, check=True
    )
    assert (ended.stdout, ended.stderr) == ("", "")
    gate.write_text("open\n")
    assert done.read_text() == "hook claude-code SessionEnd\n{}\n"


def test_the_marketplace_leads_to_the_plugin() -> None:
    market = page(".claude-plugin/marketplace.json")
    assert re.fullmatch(r"[a-z-]+", market["name"])
    assert market["owner"]["name"]
    [plugin] = market["plugins"]
    folder = Path(plugin["source"])
    manifest = page(f"{folder}/.claude-plugin/plugin.json")
    assert manifest["name"] == plugin["name"] == "esker"
    assert manifest["version"] == plugin["version"] == VERSION
    assert (ROOT / folder / "hooks/hooks.json").is_file()
    assert (ROOT / folder / ".mcp.json").is_file()
