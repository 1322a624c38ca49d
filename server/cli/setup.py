"""`esker setup`: asks once what shall write memories, tries it, and writes one settings file."""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from esker.server.cli.output import AsJson, WrongUsage, note, print_json, say
from esker.server.core.config.client_settings import variable
from esker.server.core.config.settings import Settings
from esker.server.core.config.settings_file import settings_file, write_settings
from esker.server.core.errors import InvalidInput, Misconfigured
from esker.server.core.records import TokenUse
from esker.server.providers.model_choices import CHOSEN, ModelChoice, Trial, model_choices, try_choice

app = typer.Typer(add_completion=False)


@app.command()
def setup(
    use: Annotated[str | None, typer.Option("--use", help="The name of a choice; without it, you are asked.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="The model of the CLI or the server.")] = None,
    skip_trial: Annotated[bool, typer.Option("--no-try", help="Do not try a call.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Try the call, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Choose what writes memories, try one call, and write the settings file. The exit code is 1 if the call fails."""
    settings = Settings.from_environment(os.environ)
    if model is not None and use is None:
        raise WrongUsage("--model needs --use.", hint="`esker setup` lists the choices.")
    choices = asyncio.run(model_choices(settings, os.environ))
    if use is None and (as_json or not sys.stdin.isatty()):
        _list(choices, as_json)
        return
    chosen = _named(choices, use) if use else _asked(choices)
    values = _values(chosen, model)
    if chosen.is_model and not skip_trial:
        note(f"Trying one call of {chosen.name}, which may take up to {settings.llm_timeout_seconds:.0f} s …")
    trial = Trial(values, None, TokenUse()) if skip_trial else asyncio.run(try_choice(chosen, values, os.environ))
    file = settings_file(os.environ)
    if file is None:
        raise Misconfigured("HOME is not set, so there is no place for the settings file.", hint="Set HOME.")
    if trial.problem is None and not dry_run:
        write_settings(file, {**dict.fromkeys(CHOSEN), **trial.settings})
    written = str(file) if trial.problem is None and not dry_run else None
    if as_json:
        print_json({"choice": chosen.name, "problem": trial.problem, "used": trial.used, "written": written})
    else:
        _report(chosen, trial, written, tried=not skip_trial)
    if trial.problem is not None:
        raise typer.Exit(1)


def _list(choices: Sequence[ModelChoice], as_json: bool) -> None:
    if as_json:
        print_json({"choices": choices})
        return
    _show(choices)
    note("Choose one with `esker setup --use NAME`.")


def _show(choices: Sequence[ModelChoice]) -> None:
    for number, choice in enumerate(choices, start=1):
        say(f"{number}. {choice.name} – {choice.what} Cost: {choice.cost}.")


def _asked(choices: Sequence[ModelChoice]) -> ModelChoice:
    say("Which of these shall write memories?")
    _show(choices)
    number: int = typer.prompt("Number", type=int, default=2)
    if not 1 <= number <= len(choices):
        raise InvalidInput(f"The number must be between 1 and {len(choices)}.")
    return choices[number - 1]


def _named(choices: Sequence[ModelChoice], name: str) -> ModelChoice:
    found = next((choice for choice in choices if choice.name == name), None)
    if found is None:
        names = ", ".join(choice.name for choice in choices)
        raise InvalidInput(
            f"{name} is not among what was found here: {names}.", hint="Install or start it, and try again."
        )
    return found


def _values(choice: ModelChoice, model: str | None) -> dict[str, str]:
    """Return the settings of a choice. Raises WrongUsage if it needs the name of a model."""
    name = model or (choice.models[0] if choice.models else None)
    values = dict(choice.settings)
    if choice.name.startswith("cli:"):
        return values | ({"observer_model": name, "reflector_model": name} if name else {})
    if choice.name == "openai" and name is None:
        raise WrongUsage("OpenAI's API has no usual model here.", hint="Name one with --model.")
    return values | ({"llm_model": name} if name and values["observer"] == "model" else {})


def _report(choice: ModelChoice, trial: Trial, written: str | None, *, tried: bool) -> None:
    if trial.problem is not None:
        say(f"{choice.name} could not be used, so nothing was written: {trial.problem}")
        return
    used = trial.used
    if tried and used != TokenUse():
        read = used.input_tokens + used.cache_read_tokens + used.cache_write_tokens
        say(f"{choice.name} answered; the call read {read:,} tokens and wrote {used.output_tokens:,}.")
    if written:
        say(f"Written to {written}. Restart the server to use it.")
    for name in _overriding(trial.settings):
        note(f"{name} is set in this environment and takes precedence over the file.")


def _overriding(values: Mapping[str, str]) -> list[str]:
    names = (variable(name) for name in CHOSEN)
    return [
        name
        for name in names
        if name in os.environ and os.environ[name] != values.get(name.removeprefix("ESKER_").lower())
    ]
