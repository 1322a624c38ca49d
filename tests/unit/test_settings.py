"""Settings: one frozen object, read once; a mistake is explained."""

from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from esker.server.core.config.settings import ModelRole, Settings
from esker.server.core.errors import Misconfigured


def test_an_empty_environment_gives_the_stated_defaults() -> None:
    settings = Settings.from_environment({})
    assert (settings.host, settings.port, settings.database_url) == ("127.0.0.1", 8377, None)
    assert (settings.observe_tokens, settings.observe_idle_seconds) == (8_000, 120)
    assert (settings.observer, settings.reflector) == ("auto", "auto")


def test_the_command_line_takes_precedence_over_the_environment() -> None:
    environment = {"ESKER_PORT": "9000", "ESKER_HOST": "::1", "ESKER_ALLOWED_HOSTS": "a.example, b.example"}
    settings = Settings.from_environment(environment, port=9001, data_dir=Path("/x"), host=None)
    assert (settings.port, settings.host, settings.data_dir) == (9001, "::1", Path("/x"))
    assert settings.allowed_hosts == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("name", "value"),
    [("ESKER_PORT", "many"), ("ESKER_OBSERVER", "magic"), ("ESKER_OBSERVR", "auto"), ("ESKER_OBSERVE_TOKENS", "0")],
)
def test_a_wrong_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(Misconfigured, match=name):
        Settings.from_environment({name: value})


def test_proxies_are_addresses_and_networks_and_nothing_that_never_matches() -> None:
    proxies = Settings.from_environment(
        {"ESKER_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8,2001:db8::/32"}
    ).trusted_proxies
    assert [str(network) for network in proxies] == ["127.0.0.1/32", "10.0.0.0/8", "2001:db8::/32"]
    for wrong in ("10.0.0.1/8", "proxy.example", "10.0.0", "::ffff:10.0.0.1", "10.0.0.0/8 127.0.0.1"):
        with pytest.raises(Misconfigured, match=r"ESKER_TRUSTED_PROXIES\b"):
            Settings.from_environment({"ESKER_TRUSTED_PROXIES": wrong})


def test_a_wrong_value_is_not_repeated_because_it_may_be_secret() -> None:
    with pytest.raises(Misconfigured) as raised:
        Settings.from_environment({"ESKER_PORT": "hunter22"})
    assert "hunter22" not in str(raised.value)


def test_repr_shows_no_secret() -> None:
    settings = Settings.from_environment(
        {"ESKER_DATABASE_URL": "postgres://u:hunter22@h/d", "ANTHROPIC_API_KEY": "sk-1"}
    )
    assert "hunter22" not in repr(settings)
    assert settings.llm_api_key is not None
    assert settings.llm_api_key.get_secret_value() == "sk-1"
    assert "sk-1" not in repr(settings)


@pytest.mark.parametrize(
    ("unknown", "similar"),
    [
        ("ESKER_OBSERVE_TOKEN", r" \(similar: ESKER_OBSERVE_TOKENS, "),
        ("ESKER_API_KEY", r" \(similar: .*\bESKER_KEY\b"),
        ("ESKER_FOO", r"\."),
    ],
)
def test_an_unknown_variable_is_shown_with_those_of_similar_names(unknown: str, similar: str) -> None:
    with pytest.raises(Misconfigured, match=f"{unknown} is not a setting{similar}"):
        Settings.from_environment({unknown: "1"})


def test_an_empty_variable_counts_as_unset() -> None:
    assert Settings.from_environment({"ESKER_DATABASE_URL": "", "ESKER_PORT": ""}).port == 8377


def test_openais_key_in_the_environment_is_for_openais_own_server_alone() -> None:
    chat = {"ESKER_LLM_PROTOCOL": "chat", "OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a"}
    own = Settings.from_environment(chat).llm_api_key
    assert own
    assert own.get_secret_value() == "sk-o"
    elsewhere = Settings.from_environment(chat | {"ESKER_LLM_BASE_URL": "http://localhost:11434"})
    assert elsewhere.llm_api_key is None


def test_one_setting_names_the_model_of_every_role_and_a_role_may_have_its_own() -> None:
    roles: tuple[ModelRole, ...] = ("observer", "reflector", "paraphraser")
    chat = Settings(llm_protocol="chat")
    assert [chat.model_of(role) for role in roles] == [None, None, None]
    one = Settings(llm_protocol="chat", llm_model="m", reflector_model="large")
    assert [one.model_of(role) for role in roles] == ["m", "large", "m"]
    assert Settings().model_of("observer") == "claude-haiku-5-5"


def test_a_secret_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("p@ss:/ 'w\\rd%2F\n")
    given = {"ESKER_LLM_API_KEY_FILE": str(file), "ESKER_PORT": "9000"}
    key = Settings.from_environment(given).llm_api_key
    assert key
    assert key.get_secret_value() == "p@ss:/ 'w\\rd%2F"
    with pytest.raises(Misconfigured, match="ESKER_LLM_API_KEY and ESKER_LLM_API_KEY_FILE"):
        Settings.from_environment(given | {"ESKER_LLM_API_KEY": "another"})
    with pytest.raises(Misconfigured, match="ESKER_PORT_FILE is not a setting"):
        Settings.from_environment({"ESKER_PORT_FILE": str(file)})


def test_an_empty_file_counts_as_unset_and_a_missing_one_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    with pytest.raises(Misconfigured, match=str(file)):
        Settings.from_environment({"ESKER_LLM_API_KEY_FILE": str(file)})
    file.write_text("\n")
    assert Settings.from_environment({"ESKER_LLM_API_KEY_FILE": str(file)}).llm_api_key is None


@pytest.mark.parametrize("address", ["postgresql://app@db/esker", "postgresql://db/esker?user=app", "host=db user=app"])
def test_a_password_of_any_characters_reaches_postgres(address: str) -> None:
    password = "p@ss:/?#&= 'w\\rd%2F\"$é"
    settings = Settings.from_environment({"ESKER_DATABASE_URL": address, "ESKER_DATABASE_PASSWORD": password})
    assert settings.direct_database
    parts = conninfo_to_dict(settings.direct_database)
    assert (parts["host"], parts["user"], parts["password"]) == ("db", "app", password)
    assert password not in repr(settings)
