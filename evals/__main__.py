"""`python -m evals SUITE`: each suite is a command of this program."""

import signal
import sys

import typer

from esker.server.core.errors import EskerError
from evals import catching, compare, reader_agreement, showing, written_rows
from evals.gateway import command as gateway
from evals.histories import command as histories
from evals.load import command as load
from evals.observation import command as observation
from evals.output import show_error
from evals.pack import command as pack
from evals.poison import command as poison
from evals.ranking import command as ranking
from evals.reflection import command as reflection
from evals.retrieval import command as retrieval
from evals.secrets import command as secrets
from evals.sessions import command as sessions

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Measure Esker on data sets. Nothing leaves this machine."
)
COMMANDS = {
    "retrieval": retrieval.retrieval,
    "ranking": ranking.ranking,
    "observation": observation.observation,
    "pack": pack.pack_suite,
    "poison": poison.poison,
    "reflection": reflection.reflection,
    "sessions": sessions.sessions,
    "secrets": secrets.secrets,
    "load": load.load,
    "gateway": gateway.gateway,
    "persona": histories.persona,
    "chain": histories.chain,
    "score": written_rows.score_outputs,
    "show": showing.show_case,
    "mutations": catching.mutations,
    "agreement": reader_agreement.agreement,
    "compare": compare.compare,
}
for name, command in COMMANDS.items():
    app.command(name)(command)


def run() -> None:
    """Run a command and exit: 0 when all went well, 1 for a regression or an explained error, 2 for wrong usage."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that servers end and their folders are removed
    try:
        typer.main.get_command(app)(prog_name="python -m evals")
    except EskerError as error:
        show_error(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
