"""The configuration, the variables and the command with which each client goes through the gateway."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.clients.homes import PROJECT
from tests.clients.memory import PROGRAM

# Clients that `esker gateway` leads; the others have the address of the gateway in their own configuration.
LED = ("claude-code", "codex", "gemini-cli", "opencode")
# Variables by which the clients would go to the scripted model, and past the gateway.
_PAST_IT = ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "COPILOT_PROVIDER_BASE_URL")
# Tokens of a model's context for the clients that compact by themselves, and those that it reports to make them do it.
CONTEXT = 200_000
FULL = 196_000


def prefix(name: str, mode: str) -> tuple[str, ...]:
    """Return what comes before a client's command."""
    return (str(PROGRAM), "gateway", "--for", name, "--mode", mode, "--") if name in LED else ()


def through_gateway(name: str, home: Path, work: Path, url: str, mode: str, key: str) -> None:
    """Write the configuration with which a client goes through the gateway at a server."""
    own = f"{url}/gateway/{_options(name, work, mode)}"
    for file, text in _files(work, own, key).items():
        (home / file).write_text(text if isinstance(text, str) else json.dumps(text, indent=2), encoding="utf-8")


def variables(name: str, environ: dict[str, str], work: Path, url: str, mode: str, key: str) -> dict[str, str]:
    """Return the variables of a client that goes through the gateway with a key of a provider."""
    kept = {each: value for each, value in environ.items() if each not in _PAST_IT}
    keys = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "GEMINI_API_KEY"), key)
    copilot = {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/gateway/{_options(name, work, mode)}/openai/v1",
        "COPILOT_PROVIDER_API_KEY": key,
    }
    return kept | keys | (copilot if name == "copilot" else {})


def _options(name: str, work: Path, mode: str) -> str:
    options = {"client": name, "project": PROJECT, "cwd": str(work), "mode": mode}
    return "".join(f"~{option}={quote(value, safe='')}" for option, value in options.items())


def _files(work: Path, url: str, key: str) -> dict[str, Any]:
    limit = {"context": CONTEXT, "output": 8_192}
    model = {"id": "claude-sonnet-5", "name": "Scripted", "contextWindow": CONTEXT, "maxTokens": 8_192}
    pi = {"baseUrl": f"{url}/anthropic", "api": "anthropic-messages", "apiKey": key, "models": [model]}
    opencode = {"options": {"apiKey": key}, "models": {"claude-sonnet-5": {"name": "Scripted", "limit": limit}}}
    chosen = {"model": "anthropic/claude-sonnet-5", "small_model": "anthropic/claude-sonnet-5"}
    return {
        ".codex/config.toml": _codex(work),
        ".config/opencode/opencode.json": {"autoupdate": False, **chosen, "provider": {"anthropic": opencode}},
        ".pi/agent/models.json": {"providers": {"scripted": pi}},
        ".pi/agent/settings.json": {
            "defaultProvider": "scripted",
            "defaultModel": "claude-sonnet-5",
            # It compacts nothing of what is younger.
            "compaction": {"enabled": True, "keepRecentTokens": 1_000},
        },
    }


def _codex(work: Path) -> str:
    return f"""model = "gpt-5.5"
approval_policy = "never"
sandbox_mode = "danger-full-access"
model_auto_compact_token_limit = {FULL - 10_000}

[projects."{work}"]
trust_level = "trusted"
"""
