"""The value in force of each setting, and its origin: for a person who wonders why Esker behaves as it does."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from esker.server.core.config.client_settings import ClientSettings, variable
from esker.server.core.config.exclusion_list import ExclusionList
from esker.server.core.config.kept_keys import KeptKeys
from esker.server.core.config.secret_files import FILE_SUFFIX
from esker.server.core.config.settings import WRITTEN, Settings
from esker.server.core.config.settings_file import file_values, settings_file
from esker.server.core.json_input import Json
from esker.server.core.redaction import redact_json

Origin = Literal["flag", "environment", "file", "default"]
MASKED = "**********"
"""Shown in place of a secret."""


@dataclass(frozen=True, slots=True)
class HeldSetting:
    """A setting: its name, its value without secrets, and where that comes from.

    `place` is the option, the variable or the file; None for a default.
    """

    name: str
    value: Json
    origin: Origin
    place: str | None


def held_settings(environ: Mapping[str, str], flags: Mapping[str, object]) -> list[HeldSetting]:
    """Return every setting of the server and of the client. `flags`: settings that options give, None if not given.

    Raises Misconfigured for settings that are not valid.
    """
    settings = Settings.from_environment(environ, **flags)
    client = ClientSettings.from_environment(environ)
    values = settings.model_dump(mode="json") | _written(environ)
    # pydantic masks its secrets; addresses with a password are masked here.
    of_server = [
        HeldSetting(name, redact_json(value), *_origin(name, settings, environ, flags))
        for name, value in values.items()
    ]
    return of_server + [
        HeldSetting(each.name, _shown(each.name, client), *_client_origin(each.name, client, environ))
        for each in fields(client)
    ]


def _written(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the settings with a syntax of their own as text that can be read again."""
    given = {name: environ.get(variable(name)) or file_values(environ).get(name) for name in WRITTEN}
    return {name: text for name, text in given.items() if isinstance(text, str)}


def _origin(
    name: str, settings: Settings, environ: Mapping[str, str], flags: Mapping[str, object]
) -> tuple[Origin, str | None]:
    if flags.get(name) is not None:
        return "flag", "--" + name.replace("_", "-")
    for place in (variable(name), variable(name) + FILE_SUFFIX):
        if environ.get(place):
            return "environment", place
    if name in file_values(environ):
        return "file", str(settings_file(environ))
    if name == "llm_api_key" and settings.llm_api_key is not None:
        return "environment", "OPENAI_API_KEY" if settings.llm_protocol == "chat" else "ANTHROPIC_API_KEY"
    return "default", None


def _client_origin(name: str, client: ClientSettings, environ: Mapping[str, str]) -> tuple[Origin, str | None]:
    given = variable(name) if environ.get(variable(name)) else None
    listed = ExclusionList(client.state_dir)
    if name == "exclude" and listed.patterns():
        return "file", f"{listed.path}, {given}" if given else str(listed.path)
    if given:
        return "environment", given
    if name == "key" and client.key:
        return "file", str(KeptKeys(client.state_dir).path)
    return "default", None


def _shown(name: str, client: ClientSettings) -> Json:
    value: object = getattr(client, name)
    if name == "key":
        return MASKED if value else None
    if name == "exclude":
        return [*client.exclude]
    return value if isinstance(value, float) else redact_json(str(value))
