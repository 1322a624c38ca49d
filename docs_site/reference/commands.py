"""The reference of the command line, from its own definition."""

from collections.abc import Iterator
from typing import Any

import typer

from docs_site.reference.tables import code, prose, table
from esker.server.cli.late_imports import imported
from esker.server.cli.verbs import VERBS


def commands_page() -> str:
    """Return the page with every verb, its arguments and its options."""
    parts = [_part(name, command) for verb in VERBS for name, command in commands_of(verb)]
    return f"""# Commands and options

Every command with all that it takes. [Commands](../cli.md) explains what they do, and how times and sessions are named.
`--json` is on every command that prints something: the answer, or the error with its hint, is then one JSON document on
standard output. The exit code is 0 for success, 1 for an error and 2 for wrong usage.

{"".join(parts)}"""


def commands_of(verb: str) -> Iterator[tuple[str, Any]]:
    """Yield the commands of a verb with their names: itself, or those of its group."""
    module, _ = VERBS[verb]
    group: Any = typer.main.get_command(imported(f"esker.server.cli.{module}").app)
    yield from _commands(f"esker {verb}", getattr(group, "commands", {}).get(verb, group))


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    below: dict[str, Any] = getattr(command, "commands", {})
    if not below or command.params or command.callback:
        yield name, command
    for each, sub in below.items():
        yield from _commands(f"{name} {each}", sub)


def _part(name: str, command: Any) -> str:
    shown = [each for each in command.params if not each.hidden]
    taken = [_argument(each) for each in shown if each.param_type_name == "argument"]
    if len(taken) < len(shown):
        taken.append("[OPTIONS]")
    rows = [(_names(each), _default(each), each.help or "") for each in shown]
    return f"""## {name}

{_paragraphs(command.help or "")}

```text
{" ".join((name, *taken))}
```

{table(("argument or option", "default", "meaning"), rows)}
"""


def _paragraphs(text: str) -> str:
    return prose("\n".join(line.strip() for line in text.splitlines()))


def _argument(parameter: Any) -> str:
    name = parameter.name.upper() + ("…" if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return code(parameter.name.upper())
    return ", ".join(map(code, (*parameter.opts, *parameter.secondary_opts)))


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    default = parameter.default
    return "" if default in (None, False, True) or callable(default) else code(str(default))
