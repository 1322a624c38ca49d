"""Logging of a process: one line per event on standard error, secrets masked."""

import logging
import sys

from esker.server.core.redaction import redact

QUIET = ("apscheduler", "httpx2", "httpcore2", "mcp", "sse_starlette", "sentence_transformers", "psycopg.pool")
"""Libraries whose messages below a warning are never logged: some repeat what is sent."""


class _Redacting(logging.Formatter):
    """Masks secrets in the whole record, including the text of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def _without_query(record: logging.LogRecord) -> bool:
    """Leave a request's query out of the access log: it may have names of projects and tags."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            each.partition("?")[0] if isinstance(each, str) and each.startswith("/") else each for each in record.args
        )
    return True


def configure_logs(level: str) -> None:
    """Set up logging for this process; `level` is one of the names in `Settings.log_level`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Redacting("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").addFilter(_without_query)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
