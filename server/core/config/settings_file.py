"""The settings file, `~/.config/esker/settings.toml`: settings by their names, without the prefix of the environment.

`esker setup` writes it. A variable of the environment takes precedence over it.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path

from esker.server.core.config.owner_file import write_owner_only
from esker.server.core.errors import Misconfigured


def settings_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the file is, or None in an environment without a home."""
    shared = Path(environ.get("XDG_CONFIG_HOME", ""))
    home = Path(environ.get("HOME", ""))
    if shared.is_absolute():
        return shared / "esker" / "settings.toml"
    return home / ".config" / "esker" / "settings.toml" if home.is_absolute() else None


def file_values(environ: Mapping[str, str]) -> dict[str, object]:
    """Return the settings in the file; none if there is no file. Raises Misconfigured."""
    file = settings_file(environ)
    if file is None:
        return {}
    try:
        return dict(tomllib.loads(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise Misconfigured(f"{file} cannot be read: {error}.", hint="Correct or delete it.") from error


def write_settings(file: Path, changes: Mapping[str, str | int | float | None]) -> None:
    """Set values of the file, which only its owner may read, and keep the others; None removes one.

    Raises Misconfigured.
    """
    import tomlkit  # noqa: PLC0415 - only `esker setup` writes
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    try:
        document = tomlkit.parse(file.read_text(encoding="utf-8") if file.exists() else "")
        for name, value in changes.items():
            if name in document:
                document.remove(name)
            if value is not None:
                document[name] = value
        write_owner_only(file, tomlkit.dumps(document))
    except (OSError, ValueError, TOMLKitError) as error:
        raise Misconfigured(f"{file} cannot be written: {error}.", hint="Check its directory, or delete it.") from error
