"""The reference of settings, from the fields of their classes and the docstrings behind these."""

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import Any

from docs_site.reference.tables import code, default_of, table, type_of
from esker.server.core.config.client_settings import ClientSettings, variable
from esker.server.core.config.settings import Settings

_HEADS = ("variable", "value", "default", "meaning")


def settings_page() -> str:
    """Return the page with every setting of servers and of clients."""
    return f"""# Settings

Every setting with the values that it takes. [Configuration](../configuration.md) explains how they belong together. A
setting is an environment variable, or a line of the [settings file](../configuration.md).

## Of servers and workers

{table(_HEADS, _of_server())}
## Of clients and hooks

{table(_HEADS, _of_clients())}"""


def docstrings(of: type) -> dict[str, str]:
    """Return the docstring behind each field of a class, in the order of the fields."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    assert isinstance(definition, ast.ClassDef)  # the source of a class parses as a class
    found: dict[str, str] = {}
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                found[name] = " ".join(said.split())
            case _:
                pass
    return found


def _of_server() -> list[tuple[str, str, str, str]]:
    schemas: dict[str, dict[str, Any]] = Settings.model_json_schema()["properties"]
    return [
        (code(variable(name)), type_of(schemas[name]), default_of(schemas[name]), meaning)
        for name, meaning in docstrings(Settings).items()
    ]


def _of_clients() -> list[tuple[str, str, str, str]]:
    defaults = ClientSettings()
    return [
        (code(variable(name)), _kind(getattr(defaults, name)), _shown(getattr(defaults, name)), meaning)
        for name, meaning in docstrings(ClientSettings).items()
    ]


def _kind(default: object) -> str:
    return "number" if isinstance(default, float) else "list" if isinstance(default, tuple) else "text"


def _shown(default: object) -> str:
    return code(str(default)) if default else ""
