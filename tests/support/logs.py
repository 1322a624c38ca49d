"""Everything that is logged while a block runs: as records, or as text to look for a word that only memory has."""

import logging
from collections.abc import Generator
from contextlib import contextmanager

from esker.server.core.config.logs import QUIET

CANARY = "quokkaberry"
"""A word that only memory has."""


@contextmanager
def kept_records() -> Generator[list[logging.LogRecord]]:
    """Yield every record that is logged at its logger's usual level."""
    records: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    keeper = Keeper()
    logging.getLogger().addHandler(keeper)
    try:
        yield records
    finally:
        logging.getLogger().removeHandler(keeper)


@contextmanager
def kept_log() -> Generator[list[str]]:
    """Yield everything that is logged at debug level, formatted with its traceback."""
    lines: list[str] = []
    formatter = logging.Formatter()

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING or not record.name.startswith(QUIET):
                lines.append(f"{record.name}: {formatter.format(record)}")

    root, keeper = logging.getLogger(), Keeper(logging.DEBUG)
    before = {name: logging.getLogger(name).level for name in ("", *logging.root.manager.loggerDict)}
    root.addHandler(keeper)
    for name in before:
        # The server keeps these quiet at any level; here they also log what the test's own client sends.
        if not name.startswith(QUIET):
            logging.getLogger(name).setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(keeper)
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
