"""Logging of a process: one line per event on standard error, secrets masked."""

import logging
import sys

from esker.server.core.redaction import redact

_QUIET = ("apscheduler", "httpx2", "httpcore2", "mcp", "sse_starlette", "sentence_transformers", "psycopg.pool")


class _Redacting(logging.Formatter):
    """Masks secrets in the whole record, including the text of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def configure_logs(level: str) -> None:
    """Set up logging for this process; `level` is one of the names in `Settings.log_level`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
