"""The command that starts a module of ours as a child process."""

import sys


def child_command(module: str, *arguments: str) -> list[str]:
    """Return the command line for `python -m MODULE`, in safe-path mode.

    Without `-P` a `server.py` or `json.py` in the working directory would be imported in place of the real module.
    """
    return [sys.executable, "-P", "-m", module, *arguments]
