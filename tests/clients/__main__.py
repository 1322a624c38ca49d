"""Installs real agent CLIs, drives them against Esker and a scripted model, and prints what holds."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tests.clients.gateway.driving import MODES, try_through_gateway
from tests.clients.installing import CannotInstall, Clients, install, known_clients
from tests.clients.model.server import scripted_model
from tests.clients.progress import MARKS, Progress
from tests.clients.promises import Outcome, Trial
from tests.clients.surroundings import agent_at_home, seeded_server

# A client gives its hooks and servers a few seconds, which a busy machine may need for something else.
_TRIES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if a promise is not kept, 2 if a client cannot be installed."""
    options = _options(arguments)
    # Everything is ended on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    names = options.client or list(known_clients())
    try:
        clients = install(options.folder, names)
    except CannotInstall as error:
        print(f"The clients were not tried: {error}", file=sys.stderr)
        return 0 if options.optional else 2
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    with_hooks = options.only != "gateway"
    modes = [] if options.only == "hooks" or options.short else options.mode or [*MODES]
    progress = Progress(len(names) * (with_hooks + len(modes)))
    if with_hooks:
        outcomes = _try_all(clients, names, progress, short=options.short)
    if modes:
        behind = try_through_gateway(clients, names, modes, progress)
        outcomes = {name: [*outcomes[name], *behind[name]] for name in names}
    if options.json:
        print(json.dumps({name: [asdict(each) for each in tried] for name, tried in outcomes.items()}, indent=2))
    else:
        print(_table(outcomes))
    return int(any(each.kept is False for tried in outcomes.values() for each in tried))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".clients"), help="where the clients are installed")
    parser.add_argument("--client", action="append", choices=list(known_clients()), help="one client, or several")
    parser.add_argument("--only", choices=("hooks", "gateway"), help="only the clients with hooks, or only the gateway")
    parser.add_argument("--mode", action="append", choices=MODES, help="one mode of the gateway, or several")
    parser.add_argument("--short", action="store_true", help="only the pack, a prompt, a recall and uninstalling")
    parser.add_argument("--optional", action="store_true", help="exit with 0 if a client cannot be installed")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    options.folder = options.folder.absolute()
    return options


def _try_all(clients: Clients, names: list[str], progress: Progress, *, short: bool) -> dict[str, list[Outcome]]:
    outcomes: dict[str, list[Outcome]] = {}
    with scripted_model() as model, seeded_server() as server:
        for name in names:
            progress.begin(f"{name} with hooks")
            for attempt in range(_TRIES):
                if attempt:
                    progress.repeat(f"{name} with hooks")
                with agent_at_home(name, clients, model.url, server.url) as agent:
                    patient = replace(agent, environ={**agent.environ, "ESKER_HOOK_SECONDS": "60"})
                    tried = Trial(patient if short else agent, server, model).run(short=short)
                    outcomes[name] = list(progress.shown(tried))
                if all(each.kept is not False for each in outcomes[name]):
                    break
    return outcomes


def _table(outcomes: dict[str, list[Outcome]]) -> str:
    """Return a line for each promise and a column for each client, then the figures and reasons."""
    promises = list(dict.fromkeys(each.promise for tried in outcomes.values() for each in tried))
    rows = [["", *outcomes]]
    for promise in promises:
        kept = {name: [each.kept for each in tried if each.promise == promise] for name, tried in outcomes.items()}
        rows.append([promise, *(MARKS[marks[0]] if marks else "" for marks in kept.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    details = [
        f"{name}, {each.promise}: {each.detail}" for name, tried in outcomes.items() for each in tried if each.detail
    ]
    return "\n".join([*lines, "", *details])


if __name__ == "__main__":
    sys.exit(main())
