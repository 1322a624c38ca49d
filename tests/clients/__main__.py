"""Installs real agent CLIs, drives them against Esker and a scripted model, and prints what holds."""

import argparse
import json
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from tests.clients.agent import Agent
from tests.clients.gateway.driving import MODES, try_through_gateway
from tests.clients.homes import environment, make_home
from tests.clients.installing import CannotInstall, Clients, install, known_clients
from tests.clients.memory import MemoryServer
from tests.clients.model.server import ModelAsked, scripted_model
from tests.clients.promises import Outcome, Trial, seed

_MARKS = {True: "yes", False: "NO", None: "-"}


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
    if options.only != "gateway":
        outcomes = _try_all(clients, names, short=options.short)
    if options.only != "hooks" and not options.short:
        behind = try_through_gateway(clients, names, options.mode or [*MODES])
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


def _try_all(clients: Clients, names: list[str], *, short: bool) -> dict[str, list[Outcome]]:
    outcomes: dict[str, list[Outcome]] = {}
    with scripted_model() as model, _memory_server() as server:
        for name in names:
            for _ in range(_TRIES):
                print(f"{name} …", file=sys.stderr)
                with _agent(name, clients, server, model, patient=short) as agent:
                    outcomes[name] = list(Trial(agent, server, model).run(short=short))
                if all(each.kept is not False for each in outcomes[name]):
                    break
    return outcomes


@contextmanager
def _memory_server() -> Generator[MemoryServer]:
    folder = Path(tempfile.mkdtemp(prefix="esker-clients-"))
    server = MemoryServer(folder)
    try:
        server.start()
        seed(server)
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _agent(name: str, clients: Clients, server: MemoryServer, model: ModelAsked, *, patient: bool) -> Generator[Agent]:
    # Codex refuses a home in the folder for temporary files.
    root = Path(tempfile.mkdtemp(prefix=f"home-{name}-", dir=clients.folder))
    home, work = root / "home", root / "shop"
    make_home(home, work, model.url)
    environ = environment(home, model.url, clients.path())
    # OpenCode takes PWD for its working directory.
    environ |= {"PWD": str(work), "ESKER_URL": server.url, "ESKER_STATE_DIR": str(root / "state")}
    environ |= {"ESKER_HOOK_SECONDS": "60"} if patient else {}
    agent = Agent(name, home, work, environ)
    try:
        yield agent
    finally:
        agent.end()
        shutil.rmtree(root, ignore_errors=True)


def _table(outcomes: dict[str, list[Outcome]]) -> str:
    """Return a line for each promise and a column for each client, then the figures and reasons."""
    promises = list(dict.fromkeys(each.promise for tried in outcomes.values() for each in tried))
    rows = [["", *outcomes]]
    for promise in promises:
        kept = {name: [each.kept for each in tried if each.promise == promise] for name, tried in outcomes.items()}
        rows.append([promise, *(_MARKS[marks[0]] if marks else "" for marks in kept.values())])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    details = [
        f"{name}, {each.promise}: {each.detail}" for name, tried in outcomes.items() for each in tried if each.detail
    ]
    return "\n".join([*lines, "", *details])


if __name__ == "__main__":
    sys.exit(main())
