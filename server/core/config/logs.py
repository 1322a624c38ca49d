"""Logging of a process: one line per event on standard error, as text or as JSON, secrets masked."""

import json
import logging
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

from esker.server.core.redaction import redact

QUIET = ("httpx2", "httpcore2", "mcp", "sse_starlette", "sentence_transformers", "psycopg.pool")
"""Libraries whose messages below a warning are never logged: some repeat what is sent."""
# Its pool warns of each try to connect; server/db/reachability.py logs the reason once.
_FAILURES_ONLY = "psycopg.pool"

LOG_IDS: ContextVar[Mapping[str, str]] = ContextVar("LOG_IDS", default={})  # noqa: B039 - nobody changes it
"""The ids of the work of the present task, by kind (`request`, `job`); every line that it logs has them."""


class _Text(logging.Formatter):
    """Writes a line for people. Masks secrets in the whole record, including the text of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name is the library's
        ids = " ".join(f"{kind}={value}" for kind, value in LOG_IDS.get().items())
        return super().formatMessage(record) + (f" [{ids}]" if ids else "")


class _Json(logging.Formatter):
    """Writes an object with `time`, `level`, `logger`, `message`, the ids of the task, and the `error` if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
            **LOG_IDS.get(),
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


def _without_query(record: logging.LogRecord) -> bool:
    """Leave a request's query out of the access log: it may have names of projects and tags."""
    if isinstance(record.args, tuple):
        record.args = tuple(
            each.partition("?")[0] if isinstance(each, str) and each.startswith("/") else each for each in record.args
        )
    return True


def configure_logs(level: str, form: Literal["text", "json"] = "text") -> None:
    """Set up logging for this process; the values are those of `Settings.log_level` and `Settings.log_format`."""
    handler = logging.StreamHandler(sys.stderr)
    text = _Text("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(_Json() if form == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("uvicorn.access").addFilter(_without_query)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger(_FAILURES_ONLY).setLevel(logging.ERROR)
