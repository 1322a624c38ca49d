"""`esker config`: each setting, its value, and where that comes from."""

import os
from pathlib import Path
from typing import Annotated

import typer

from esker.server.cli.output import AsJson, DataDir, WrongUsage, print_json, say, table
from esker.server.core.config.client_settings import variable
from esker.server.core.config.setting_origins import HeldSetting, held_settings
from esker.server.core.config.settings_file import settings_file
from esker.server.core.errors import Misconfigured
from esker.server.core.similar_projects import nearest

app = typer.Typer(add_completion=False)

_PATH = "path"


@app.command()
def config(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Settings to show, such as observer or ESKER_OBSERVER; or `path`.", metavar="NAME…|path"),
    ] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only settings that are not the default.")] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Show each setting, its value, and where that comes from.

    Options take precedence over the environment, and the environment over the settings file. `esker config path` shows
    where that file is, or would be. Secrets are masked.
    """
    if names == [_PATH]:
        _show_path(as_json)
        return
    settings = held_settings(os.environ, {"data_dir": data_dir})
    if names:
        settings = _named(settings, names)
    if changed:
        settings = [setting for setting in settings if setting.origin != "default"]
    if as_json:
        print_json(settings)
        return
    table(
        ("setting", "value", "from"),
        [(variable(each.name), _text(each), each.place or each.origin) for each in settings],
    )


def _named(settings: list[HeldSetting], names: list[str]) -> list[HeldSetting]:
    by_name = {name.lower(): each for each in settings for name in (each.name, variable(each.name))}
    for name in names:
        if name.lower() not in by_name:
            similar = ", ".join(nearest(name.lower(), [each.name for each in settings]))
            raise WrongUsage(
                f"{name!r} is not a setting.",
                hint=f"Similar settings: {similar}." if similar else "`esker config` lists all of them.",
            )
    return [by_name[name.lower()] for name in names]


def _text(setting: HeldSetting) -> str:
    match setting.value:
        case None:
            return "–"
        case bool(value):
            return "true" if value else "false"
        case list(values):
            return ", ".join(map(str, values)) or "–"
        case dict(values):
            return ", ".join(f"{name}: {value}" for name, value in values.items()) or "–"
        case value:
            return str(value)


def _show_path(as_json: bool) -> None:
    file = settings_file(os.environ)
    if file is None:
        raise Misconfigured("HOME is not set, so there is no place for the settings file.", hint="Set HOME.")
    if as_json:
        print_json({"path": str(file), "exists": Path(file).is_file()})
    else:
        say(str(file))
