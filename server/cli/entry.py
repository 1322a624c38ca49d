"""The program `esker`: hooks, which an agent waits for in every turn, go past all that a command line needs."""

import os
import sys
from importlib import import_module

from esker.server.agents.hooks import run_hook


def run() -> None:
    """Run a hook or a command, and exit."""
    if sys.argv[1:2] == ["hook"] and "--help" not in sys.argv:
        sys.exit(run_hook(sys.argv[2:], os.environ))
    # Half a second of imports that no hook waits for.
    import_module("esker.server.cli.main").run()


if __name__ == "__main__":
    run()
