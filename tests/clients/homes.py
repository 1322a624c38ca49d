"""An empty home in which every client uses the scripted model and needs no account."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

PROJECT = "acme/shop"
_KEY = "sk-scripted"
# Variables that would lead a client, or Esker, to the files, accounts and servers of the person who runs this.
_PERSONAL = (
    "ESKER_",
    "ANTHROPIC_",
    "CLAUDE",
    "CODEX_",
    "OPENAI_",
    "GEMINI_",
    "GOOGLE_",
    "OPENCODE_",
    "PI_",
    "COPILOT_",
)
_PERSONAL += ("XDG_", "GH_", "GITHUB_")


def make_home(home: Path, work: Path, model_url: str) -> None:
    """Write the configuration of every client, and a repository to work in."""
    work.mkdir(parents=True)
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com"]
    for command in (
        ["init", "-q", "-b", "main"],
        ["remote", "add", "origin", f"git@github.com:{PROJECT}.git"],
        ["commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run([*git, *command], cwd=work, check=True)
    for name, text in _files(work, model_url).items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text, indent=2), encoding="utf-8")


def environment(home: Path, model_url: str, path: str) -> dict[str, str]:
    """Return the environment of the clients."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PERSONAL)}
    return kept | {
        "HOME": str(home),
        "PATH": path,
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": _KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "SCRIPTED_KEY": _KEY,
        "GOOGLE_GEMINI_BASE_URL": model_url,
        "GEMINI_API_KEY": _KEY,
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "PI_SKIP_VERSION_CHECK": "1",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{model_url}/v1",
        "COPILOT_MODEL": "gpt-5",
    }


def _files(work: Path, model_url: str) -> dict[str, Any]:
    return {
        ".claude.json": {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [_KEY], "rejected": []},
            "projects": {str(work): {"hasTrustDialogAccepted": True}},
        },
        ".claude/settings.json": {},
        ".codex/config.toml": _codex(work, model_url),
        ".gemini/settings.json": {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False},
        },
        ".config/opencode/opencode.json": _opencode(model_url),
        ".pi/agent/models.json": _pi(model_url),
        ".pi/agent/settings.json": {"defaultProvider": "scripted", "defaultModel": "scripted"},
        ".copilot/config.json": {},
    }


def _codex(work: Path, model_url: str) -> str:
    return f"""model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{model_url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"

[projects."{work}"]
trust_level = "trusted"
"""


def _opencode(model_url: str) -> dict[str, Any]:
    model = {"name": "Scripted", "limit": {"context": 200_000, "output": 8_192}}
    options = {"baseURL": f"{model_url}/v1", "apiKey": _KEY}
    provider = {"npm": "@ai-sdk/anthropic", "name": "Scripted", "options": options, "models": {"scripted": model}}
    chosen = {"model": "scripted/scripted", "small_model": "scripted/scripted"}
    return {"autoupdate": False, **chosen, "provider": {"scripted": provider}}


def _pi(model_url: str) -> dict[str, Any]:
    model = {"id": "scripted", "name": "Scripted", "contextWindow": 200_000, "maxTokens": 8_192}
    provider = {"baseUrl": model_url, "api": "anthropic-messages", "apiKey": _KEY, "models": [model]}
    return {"providers": {"scripted": provider}}
