"""The choices that `esker setup` finds and tries, and the settings file that it writes."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from esker.server.core.config.settings import Settings
from esker.server.core.config.settings_file import settings_file, write_settings
from esker.server.core.errors import Misconfigured
from esker.server.providers import model_choices as found_here
from esker.server.providers.model_choices import model_choices, try_choice
from tests.support.model_server import ModelServer
from tests.support.scripted_clients import ScriptedClient, said_by
from tests.support.serving import serving_app


async def test_rules_and_nothing_are_always_there_and_what_else_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found_here, "LOCAL_SERVERS", {"Ollama": "http://127.0.0.1:1"})
    assert [each.name for each in await model_choices(Settings(), {"PATH": ""})] == ["nothing", "rules"]
    ScriptedClient(tmp_path, "codex").prints("")
    environ = {"PATH": str(tmp_path), "ANTHROPIC_API_KEY": "sk-a", "OPENAI_API_KEY": "sk-o"}
    found = {each.name: each for each in await model_choices(Settings(), environ)}
    assert [*found] == ["nothing", "rules", "cli:codex", "anthropic", "openai"]
    assert "100 calls" in found["cli:codex"].cost
    assert "$0.1 in" in found["anthropic"].cost


class OnlyJson(ModelServer):
    """A server that takes no schemas."""

    async def complete(self, request: Request) -> Response:
        """Refuse a schema."""
        body = json.loads(await request.body())
        if body.get("response_format", {}).get("type") == "json_schema":
            return JSONResponse({"error": {"message": "response_format json_schema is not supported"}}, 400)
        return await ModelServer.complete(self, request)


async def test_a_local_server_is_found_and_asked_for_json_in_the_way_that_it_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = OnlyJson()
    model.say({"fact": "User decided."})

    async def models(_: Request) -> JSONResponse:
        return JSONResponse({"data": [{"id": "qwen3:8b"}, {"id": "other"}, 5]})

    routes = [Route("/v1/models", models), Route("/v1/chat/completions", model.complete, methods=["POST"])]
    async with serving_app(Starlette(routes=routes)) as url:
        monkeypatch.setattr(found_here, "LOCAL_SERVERS", {"Ollama": url})
        choice = (await model_choices(Settings(), {"PATH": ""}))[-1]
        assert (choice.name, choice.models) == (f"server:{url}", ("qwen3:8b", "other"))
        trial = await try_choice(choice, {**choice.settings, "llm_model": "qwen3:8b"}, {})
    assert trial.problem is None
    assert trial.settings == {
        "observer": "model",
        "reflector": "model",
        "llm_protocol": "chat",
        "llm_base_url": url,
        "llm_model": "qwen3:8b",
        "llm_structured": "json",
    }


async def test_a_cli_that_is_logged_out_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_here, "LOCAL_SERVERS", {})
    client = ScriptedClient(tmp_path, "claude")
    client.prints(json.dumps({"type": "result", "is_error": True, "result": "Please run /login"}), code=1)
    for name, value in client.environ.items():
        monkeypatch.setenv(name, value)
    choice = (await model_choices(Settings(), client.environ))[-1]
    assert "not logged in" in str((await try_choice(choice, choice.settings, {})).problem)
    client.prints(said_by("claude", '{"fact": "x"}'))
    assert (await try_choice(choice, choice.settings, {})).problem is None


def test_the_environment_wins_over_the_settings_file_and_the_file_over_the_defaults(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path)}
    file = settings_file(environ)
    assert file
    write_settings(file, {"observer": "cli:claude", "observe_tokens": 4_000, "port": 9_999})
    write_settings(file, {"observe_tokens": None})
    assert file.stat().st_mode & 0o777 == 0o600
    settings = Settings.from_environment(environ)
    assert (settings.observer, settings.observe_tokens, settings.port) == ("cli:claude", 8_000, 9_999)
    assert Settings.from_environment(environ | {"ESKER_OBSERVER": "off"}).observer == "off"
    assert Settings.from_environment(environ, port=1).port == 1
    elsewhere = environ | {"XDG_CONFIG_HOME": str(tmp_path / "x")}
    assert Settings.from_environment(elsewhere).port == 8_377


@pytest.mark.parametrize("written", ["observer = ", "[[[", 'colour = "red"', 'observer = "cli:unknown"', "\xff"])
def test_a_settings_file_that_is_not_valid_is_an_error_that_names_it_or_the_setting(
    tmp_path: Path, written: str
) -> None:
    environ: dict[str, Any] = {"HOME": str(tmp_path)}
    file = settings_file(environ)
    assert file
    file.parent.mkdir(parents=True)
    file.write_bytes(written.encode("latin-1"))
    with pytest.raises(Misconfigured, match=r"settings\.toml|ESKER_COLOUR|ESKER_OBSERVER"):
        Settings.from_environment(environ)


def test_a_link_to_the_settings_stays_one_and_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    file, kept = tmp_path / "esker/settings.toml", tmp_path / "dotfiles/settings.toml"
    for each in (file, kept):
        each.parent.mkdir()
    kept.write_text('observer = "off"\n')
    file.symlink_to(kept)
    write_settings(file, {"observer": "extractive"})
    with pytest.raises(Misconfigured):
        write_settings(file, {"observer_model": "\udcff"})
    assert file.is_symlink()
    assert kept.read_text() == 'observer = "extractive"\n'
    assert [*kept.parent.iterdir()] == [kept]
