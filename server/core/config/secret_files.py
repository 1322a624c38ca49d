"""Secrets from files, and passwords with any characters in an address of Postgres."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from esker.server.core.config.client_settings import variable
from esker.server.core.errors import Misconfigured

FILE_SUFFIX = "_FILE"


def from_files(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return the settings among `names` that are in files, each named by the setting's variable with `_FILE` appended.
    Line ends after a secret are removed. An empty file counts as unset, as an empty variable does. Raises Misconfigured
    for a file that cannot be read, and for a setting that is also given directly.
    """
    paths = {name: path for name in names if (path := environ.get(variable(name) + FILE_SUFFIX))}
    return {name: secret for name, path in paths.items() if (secret := _read(environ, name, path))}


def is_of_file(name: str, names: Iterable[str]) -> bool:
    """Return whether the variable `name` names the file of one of the settings `names`."""
    return name.endswith(FILE_SUFFIX) and name.removesuffix(FILE_SUFFIX) in map(variable, names)


def _read(environ: Mapping[str, str], name: str, path: str) -> str:
    file = variable(name) + FILE_SUFFIX
    if environ.get(variable(name)):
        raise Misconfigured(f"{variable(name)} and {file} are both set.", hint="Unset one of them.")
    try:
        return Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Misconfigured(f"{file} names {path}, which cannot be read: {why}.") from None


def with_password(address: str, password: str) -> str:
    """Return an address of Postgres, in either form that libpq knows, with a password of any characters."""
    if "://" in address:
        return f"{address}{'&' if '?' in address else '?'}password={quote(password, safe='')}"
    escaped = password.replace("\\", "\\\\").replace("'", "\\'")
    return f"{address} password='{escaped}'"
