"""How each agent CLI is run as a language model, without its tools, hooks and MCP servers, and what it prints."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from esker.server.core.json_input import as_object
from esker.server.core.records import TokenUse
from esker.server.providers.language_model import Stop, WireAnswer, counted

ClientName = Literal["claude", "codex", "gemini", "opencode"]
Json = Mapping[str, Any]

_STOPS: dict[object, Stop] = {
    "max_tokens": "cut_off",
    "model_context_window_exceeded": "cut_off",
    "refusal": "refused",
    "length": "cut_off",
    "content-filter": "refused",
}
# Attempts of one request. By itself a client repeats it for minutes before it says that it is limited.
_MOST_ATTEMPTS = 2
# Gemini CLI reads this as the settings of the machine's administrator, which outrank those of the user.
_GEMINI = {
    "tools": {"core": ["none"]},
    "hooksConfig": {"enabled": False},
    "mcp": {"allowed": ["none"]},
    "general": {"enableAutoUpdate": False, "maxAttempts": _MOST_ATTEMPTS},
}
# Tools that Codex would offer beside the answer.
_CODEX_OFF = ("shell_tool", "unified_exec", "hooks", "plugins", "apps", "multi_agent", "goals", "image_generation")


class ClientProblem(Exception):
    """A client said something in place of an answer."""


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call: the folder that it runs in, and the files there with the instructions, the schema and the settings."""

    folder: Path
    instructions: Path
    schema: Path
    settings: Path
    model: str | None


@dataclass(frozen=True, slots=True)
class AgentClient:
    """An agent CLI. `usual` is the model of each role if none is set; None is the client's own choice.

    `with_schema`: the client takes a schema. `reads_mentions`: it reads a file that the prompt mentions as
    `@path`. `ignores`: its words on standard error if it does not use our settings.
    """

    name: ClientName
    login: str
    command: Callable[[ClientCall], list[str]]
    read: Callable[[str], WireAnswer]
    environ: Callable[[ClientCall], dict[str, str]] = lambda _: {}
    settings: Json = field(default_factory=dict[str, Any])
    usual: Mapping[str, str] = field(default_factory=dict[str, str])
    with_schema: bool = False
    reads_mentions: bool = False
    ignores: str | None = None


def _claude(call: ClientCall) -> list[str]:
    schema = call.schema.read_text(encoding="utf-8")
    quiet = '{"disableAllHooks":true}'
    return [
        *("claude", "-p", "--output-format", "json", "--json-schema", schema),
        *("--system-prompt-file", str(call.instructions), "--tools", "", "--strict-mcp-config"),
        *("--setting-sources", "", "--settings", quiet, "--no-session-persistence", "--disable-slash-commands"),
        *(("--model", call.model) if call.model else ()),
    ]


def _codex(call: ClientCall) -> list[str]:
    off = [part for name in _CODEX_OFF for part in ("-c", f"features.{name}=false")]
    return [
        *("codex", "exec", "--json", "--output-schema", str(call.schema), "--skip-git-repo-check", "--ephemeral"),
        *("--ignore-user-config", "--ignore-rules", "-s", "read-only", *off, "-c", 'web_search="disabled"'),
        *("-c", f"model_instructions_file={json.dumps(str(call.instructions))}"),
        *(("-m", call.model) if call.model else ()),
        "-",
    ]


def _gemini(call: ClientCall) -> list[str]:
    fixed = ["gemini", "--skip-trust", "-o", "json", "--approval-mode", "default", "-e", "none"]
    return [*fixed, *(("-m", call.model) if call.model else ())]


def _opencode(call: ClientCall) -> list[str]:
    fixed = ["opencode", "run", "--pure", "--format", "json", "--agent", "esker", "--title", "esker"]
    return [*fixed, *(("-m", call.model) if call.model else ())]


def _opencode_environ(call: ClientCall) -> dict[str, str]:
    agent = {"mode": "primary", "prompt": f"{{file:{call.instructions}}}", "tools": {"*": False}}
    config = {
        "autoupdate": False,
        "share": "disabled",
        "tools": {"*": False},
        "permission": {"*": "deny"},
        "agent": {"esker": agent},
    }
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1"}


def _read_claude(output: str) -> WireAnswer:
    said = _object_with(output, "result", "structured_output")
    result = said.get("result")
    text = result if isinstance(result, str) else ""
    if said.get("is_error"):
        raise ClientProblem(text or str(said.get("subtype")))
    if isinstance(structured := said.get("structured_output"), dict):
        text = json.dumps(structured, ensure_ascii=False)
    used = as_object(said.get("usage"))
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [counted(used.get(name)) for name in names] if used else []
    return WireAnswer(text, _STOPS.get(said.get("stop_reason"), "end"), TokenUse(*counts))


def _read_codex(output: str) -> WireAnswer:
    text, problem, used = "", "", TokenUse()
    for event in _events(output):
        match event.get("type"):
            case "item.completed":
                item = _inner(event, "item")
                text = item.get("text") or "" if item.get("type") == "agent_message" else text
            case "turn.completed":
                usage = _inner(event, "usage")
                cached = counted(usage.get("cached_input_tokens"))
                read = counted(usage.get("input_tokens"))
                used = TokenUse(max(0, read - cached), counted(usage.get("output_tokens")), cache_read_tokens=cached)
                problem = ""
            case "error":
                problem = str(event.get("message"))
            case "turn.failed":
                problem = str(_inner(event, "error").get("message"))
            case _:
                continue
    return _answer(text, problem, "end", used)


def _read_gemini(output: str) -> WireAnswer:
    said = _object_with(output, "response", "error")
    if error := said.get("error"):
        raise ClientProblem(str(_inner(said, "error").get("message") or error))
    models = _inner(_inner(said, "stats"), "models").values()
    tokens = [_inner(cast(Json, each), "tokens") for each in models if isinstance(each, dict)]
    read = sum(counted(each.get("prompt")) for each in tokens)
    cached = min(read, sum(counted(each.get("cached")) for each in tokens))
    written = sum(counted(each.get("candidates")) + counted(each.get("thoughts")) for each in tokens)
    return _answer(str(said.get("response") or ""), "", "end", TokenUse(read - cached, written, 0, cached))


def _read_opencode(output: str) -> WireAnswer:
    text, problem, read, written, cached, stop = "", "", 0, 0, 0, "end"
    for event in _events(output):
        part = _inner(event, "part")
        match event.get("type"):
            case "text":
                text += str(part.get("text") or "")
            case "step_finish":
                tokens = _inner(part, "tokens")
                read += counted(tokens.get("input"))
                written += counted(tokens.get("output")) + counted(tokens.get("reasoning"))
                cached += counted(_inner(tokens, "cache").get("read"))
                stop = _STOPS.get(part.get("reason"), "end")
            case "error":
                error = _inner(event, "error")
                problem = str(_inner(error, "data").get("message") or error.get("name") or event.get("error"))
            case _:
                continue
    return _answer(text, problem, stop, TokenUse(read, written, cache_read_tokens=cached))


def _answer(text: str, problem: str, stop: Stop, used: TokenUse) -> WireAnswer:
    if problem:
        raise ClientProblem(problem)
    return WireAnswer(text, stop, used)


def _object_with(output: str, *names: str) -> Json:
    """Return the last object in an output that has one of these fields; banners may be around it."""
    decoder, found, place = json.JSONDecoder(), cast(Json, {}), output.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(output, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            if isinstance(value, dict) and value.keys() & set(names):
                found = cast(Json, value)
        # An object begins at the beginning of a line.
        place = output.find("\n{", max(0, end - 1)) + 1 or -1
    if not found:
        raise ClientProblem(output.strip()[-500:] or "it printed nothing")
    return found


def _events(output: str) -> Iterator[Json]:
    """Yield the objects among the lines of an output."""
    for line in output.splitlines():
        if line.startswith("{"):
            try:
                value: object = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield cast(Json, value)


def _inner(given: Json, name: str) -> Json:
    value = given.get(name)
    return cast(Json, value) if isinstance(value, dict) else {}


_ALL = (
    AgentClient(
        "claude",
        "run `claude` and /login",
        _claude,
        _read_claude,
        # Thinking is billed, too.
        lambda _: {
            "MAX_THINKING_TOKENS": "0",
            "CLAUDE_CODE_MAX_RETRIES": str(_MOST_ATTEMPTS - 1),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
        },
        usual={"observer": "haiku", "reflector": "sonnet"},
        with_schema=True,
        reads_mentions=True,
    ),
    AgentClient("codex", "run `codex login`", _codex, _read_codex, with_schema=True),
    AgentClient(
        "gemini",
        "run `gemini` and choose how to sign in",
        _gemini,
        _read_gemini,
        lambda call: {
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(call.settings),
            "GEMINI_SYSTEM_MD": str(call.instructions),
        },
        _GEMINI,
        reads_mentions=True,
        ignores="Skipping system settings file",
    ),
    AgentClient("opencode", "run `opencode auth login`", _opencode, _read_opencode, _opencode_environ),
)
AGENT_CLIENTS: Mapping[str, AgentClient] = {client.name: client for client in _ALL}
