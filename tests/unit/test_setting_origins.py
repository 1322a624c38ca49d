"""`esker config` shows the value and the origin of each setting, and no secret."""

import json
from pathlib import Path

import pytest

from esker.server.core.config.client_settings import CLIENT_SETTINGS, variable
from esker.server.core.config.exclusion_list import ExclusionList
from esker.server.core.config.kept_keys import KeptKeys
from esker.server.core.config.setting_origins import HeldSetting, held_settings
from esker.server.core.config.settings import Settings


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "config/esker/settings.toml"
    file.parent.mkdir(parents=True)
    file.write_text('observer = "off"\nport = 9000\n', encoding="utf-8")
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config"), "ESKER_STATE_DIR": str(tmp_path / "s")}


def held(environ: dict[str, str], **flags: object) -> dict[str, HeldSetting]:
    return {each.name: each for each in held_settings(environ, flags)}


def test_a_setting_comes_from_the_first_place_that_has_it(environ: dict[str, str], tmp_path: Path) -> None:
    file = str(tmp_path / "config/esker/settings.toml")
    found = held(environ | {"ESKER_PORT": "9100", "ESKER_DATA_DIR": "/a"}, data_dir=Path("/b"))
    assert found["observer"] == HeldSetting("observer", "off", "file", file)
    assert found["port"] == HeldSetting("port", 9100, "environment", "ESKER_PORT")
    assert found["data_dir"] == HeldSetting("data_dir", "/b", "flag", "--data-dir")
    assert found["reflector"] == HeldSetting("reflector", "auto", "default", None)
    assert found.keys() == Settings.model_fields.keys() | CLIENT_SETTINGS


def test_a_setting_with_a_form_of_its_own_is_shown_as_it_is_written(environ: dict[str, str]) -> None:
    rules = "codex=watch, claude-code@acme/*=off"
    assert held(environ | {"ESKER_GATEWAY_RULES": rules})["gateway_rules"].value == rules


def test_settings_of_clients_tell_their_files(environ: dict[str, str], tmp_path: Path) -> None:
    state = tmp_path / "s"
    KeptKeys(state).keep("http://127.0.0.1:8377", "esk_kept")
    ExclusionList(state).add(["acme/secret"])
    found = held(environ | {"ESKER_EXCLUDE": "acme/other"})
    assert (found["key"].origin, found["key"].place) == ("file", str(state / "keys.json"))
    assert found["exclude"].value == ["acme/other", "acme/secret"]
    assert found["exclude"].place == f"{state / 'exclude'}, ESKER_EXCLUDE"


def test_the_key_of_a_vendor_is_named(environ: dict[str, str]) -> None:
    assert held(environ | {"ANTHROPIC_API_KEY": "sk-1"})["llm_api_key"].place == "ANTHROPIC_API_KEY"


def test_no_secret_is_shown(environ: dict[str, str], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2hunter2\n", encoding="utf-8")
    names = [name for name, field in Settings.model_fields.items() if "SecretStr" in str(field.annotation)]
    assert len(names) >= 7
    given = {variable(name): "hunter2hunter2" for name in names if name != "database_password"}
    given |= {"ESKER_DATABASE_PASSWORD_FILE": str(secret), "ESKER_KEY": "esk_hunter2hunter2"}
    given |= {"ESKER_LLM_BASE_URL": "http://me:hunter2hunter2@127.0.0.1:9/v1"}
    found = held(environ | given)
    shown = json.dumps([(each.name, each.value, each.place) for each in found.values()])
    assert "hunter2" not in shown
    assert found["database_password"].place == "ESKER_DATABASE_PASSWORD_FILE"
