"""`python -m esker` is the command `esker`."""

from esker.server.cli.entry import run

run()
