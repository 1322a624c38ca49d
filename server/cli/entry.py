"""The program `esker`: a hook, for which an agent waits in every turn, does not import the command line."""

import os
import sys
from importlib import import_module


def run() -> None:
    """Run a hook or a command, and exit."""
    is_hook = sys.argv[1:2] == ["hook"] and not {"--help", "-h"}.intersection(sys.argv)
    if sys.platform == "win32":
        # Nothing of ours is imported yet: much of it needs modules that Windows lacks.
        sys.stderr.write(
            "esker: Esker does not run on Windows itself, but in WSL.\n"
            "       Install WSL with `wsl --install`, and run the same command in its terminal. The Python client\n"
            "       for a server elsewhere, `pip install esker-client`, needs no WSL.\n"
        )
        # An agent must not fail because of its memory.
        sys.exit(0 if is_hook else 1)
    if is_hook:
        sys.exit(import_module("esker.server.agents.hooks").run_hook(sys.argv[2:], os.environ))
    # These imports take half a second, so a hook does without them.
    import_module("esker.server.cli.main").run()


if __name__ == "__main__":
    run()
