"""How each client is told to send its requests to models through the gateway: variables, or options of its command."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from esker.server.core.json_input import as_object

_ANTHROPIC, _OPENAI, _GEMINI = "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"
CLIENTS = ("claude-code", "codex", "gemini-cli", "opencode", "api")
"""The clients that one command can route through the gateway; `api` is any program that reads the usual variables."""
ADDRESSES = (_ANTHROPIC, _OPENAI, _GEMINI)
"""Variables with which a user may have pointed the client at another provider."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A command whose client sends its requests through the gateway, and the variables to set for it."""

    command: list[str]
    environment: Mapping[str, str]


def gateway_url(server: str, options: Mapping[str, str | None]) -> str:
    """Return the address of the gateway, with options for clients that send no headers of ours."""
    given = "".join(f"~{name}={quote(value, safe='')}" for name, value in options.items() if value)
    return f"{server.rstrip('/')}/gateway" + (f"/{given}" if given else "")


def behind_gateway(
    client: str, command: Sequence[str], url: str, environ: Mapping[str, str], key: str | None
) -> Behind:
    """Return the command and the variables with which a client goes through the gateway at `url`.

    With a `key` of Esker, only Claude Code and OpenCode can send it along.
    """
    program, *rest = command
    addresses = {_ANTHROPIC: f"{url}/anthropic", _OPENAI: f"{url}/openai/v1", _GEMINI: f"{url}/gemini"}
    header = {"x-esker-key": key} if key else {}
    match client:
        case "claude-code":
            own = [environ.get("ANTHROPIC_CUSTOM_HEADERS", ""), *(f"{name}: {value}" for name, value in header.items())]
            headers = "\n".join(filter(None, own))
            more = {"ANTHROPIC_CUSTOM_HEADERS": headers} if headers else {}
            return Behind([program, *rest], {_ANTHROPIC: addresses[_ANTHROPIC], **more})
        case "codex":
            return Behind([program, "-c", f"openai_base_url={json.dumps(addresses[_OPENAI])}", *rest], {})
        case "opencode":
            return Behind([program, *rest], {"OPENCODE_CONFIG_CONTENT": _opencode(environ, url, header)})
        case "gemini-cli":
            return Behind([program, *rest], {_GEMINI: addresses[_GEMINI]})
        case _:
            return Behind([program, *rest], addresses)


def _opencode(environ: Mapping[str, str], url: str, header: Mapping[str, str]) -> str:
    try:
        configuration = as_object(json.loads(environ.get("OPENCODE_CONFIG_CONTENT") or "{}"))
    except ValueError:
        configuration = {}
    providers = {**as_object(configuration.get("provider"))}
    for name, path in (("anthropic", "anthropic/v1"), ("openai", "openai/v1"), ("google", "gemini/v1beta")):
        provider = {**as_object(providers.get(name))}
        options = {**as_object(provider.get("options")), "baseURL": f"{url}/{path}"}
        if header:
            options["headers"] = {**as_object(options.get("headers")), **header}
        providers[name] = provider | {"options": options}
    return json.dumps({**configuration, "provider": providers})
