"""Questions before a change that cannot be undone: its effect is shown first, by a dry run of the request."""

from collections.abc import Callable
from typing import Any

import typer

from esker.server.agents.api import Api
from esker.server.cli.output import WrongUsage, print_json


def require_answerable(*, as_json: bool, is_agreed: bool) -> None:
    """Raise WrongUsage for a command with --json that would have to ask."""
    if as_json and not is_agreed:
        raise WrongUsage(
            "With --json, a command cannot ask before it changes something.", hint="Add --yes or --dry-run."
        )


def agreed(
    api: Api,
    path: str,
    body: dict[str, Any],
    show: Callable[[dict[str, Any]], str | None],
    *,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> bool:
    """Return whether to send a request, after its effect was shown, unless `yes` agrees beforehand.

    `show` prints a plan and returns the question, or None if there is nothing to do.
    """
    if yes and not dry_run:
        return True
    plan = api.post(path, {**body, "dry_run": True})
    if as_json:
        print_json(plan)
        return False
    question = show(plan)
    return question is not None and not dry_run and typer.confirm(question)
