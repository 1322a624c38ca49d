"""The program `esker`: a hook, for which an agent waits in every turn, does not import the command line."""

import os
import sys
from importlib import import_module

from esker.server.agents.hooks import run_hook


def run() -> None:
    """Run a hook or a command, and exit."""
    if sys.argv[1:2] == ["hook"] and "--help" not in sys.argv:
        sys.exit(run_hook(sys.argv[2:], os.environ))
    # These imports take half a second, so a hook does without them.
    import_module("esker.server.cli.main").run()


if __name__ == "__main__":
    run()
