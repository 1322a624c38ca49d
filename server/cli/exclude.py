"""`esker exclude`: projects and directories of which hooks and commands read, send and show nothing."""

import os
from typing import Annotated

import typer

from esker.server.cli.output import AsJson, WrongUsage, note, print_json, say, table
from esker.server.core.config.client_settings import ClientSettings, state_dir, variable
from esker.server.core.config.exclusion_list import ExclusionList
from esker.server.core.config.exclusion_patterns import parse_pattern

app = typer.Typer(add_completion=False)


@app.command()
def exclude(
    patterns: Annotated[
        list[str] | None, typer.Argument(metavar="PATTERN…", help="Directories, or projects such as owner/name.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the patterns out of the list.")] = False,
    as_json: AsJson = False,
) -> None:
    """Exclude projects and directories from memory, or show what is excluded.

    The list holds for every hook and command of this user. ESKER_EXCLUDE can only add to it.
    """
    kept = ExclusionList(state_dir(os.environ))
    if remove and not patterns:
        raise WrongUsage("--remove needs a pattern.", hint="`esker exclude` shows the list.")
    if not patterns:
        _show(kept, as_json)
        return
    changed = kept.remove(patterns) if remove else kept.add(patterns)
    if as_json:
        print_json({"removed" if remove else "added": changed, "list": kept.patterns()})
        return
    for pattern in changed:
        say(f"{_described(pattern)} is {'no longer' if remove else 'now'} in {kept.path}.")
        if not remove and _looks_like_a_folder(pattern):
            note(f"Here is a folder {pattern}: to exclude the directory, write {os.path.abspath(pattern)}.")
    for pattern in patterns:
        if pattern.strip() not in changed:
            say(f"{pattern} was {'not' if remove else 'already'} in the list; nothing changed.")
    if changed and not remove:
        note("Messages that were sent before stay in memory; `esker forget` deletes them.")


def _described(pattern: str) -> str:
    kind = "directory" if parse_pattern(pattern).is_directory else "project"
    return f"The {kind} {pattern}"


def _looks_like_a_folder(pattern: str) -> bool:
    """Return whether a pattern that is read as a project is also the name of a folder here."""
    return not parse_pattern(pattern).is_directory and os.path.isdir(pattern)


def _show(kept: ExclusionList, as_json: bool) -> None:
    listed = kept.patterns()
    given = [each for each in ClientSettings.from_environment(os.environ).exclude if each not in listed]
    if as_json:
        print_json({"list": listed, "environment": given})
        return
    rows = [(each, str(kept.path)) for each in listed] + [(each, variable("exclude")) for each in given]
    table(("excluded", "by"), rows)
