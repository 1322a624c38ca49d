"""Pages from templates, with the headers that keep a browser from running or loading anything of others."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from esker.server import VERSION
from esker.server.core.clock import age
from esker.server.core.conversation.observer_text import TOOL_CHARACTERS
from esker.server.core.conversation.readable_calls import call_words, readable
from esker.server.core.counts import counted
from esker.server.core.records import Principal
from esker.server.usecases.parts import Parts
from esker.server.web.marked_words import marked_words
from esker.server.web.shown_blocks import part_text, picture, result_parts

_MOST_CHARACTERS = 20_000
_COMMAND = re.compile(r"`[^`]+`")
_MEMORY_ID = re.compile(r"\bmem_[0-9a-z]{26}\b")
_MARKED = re.compile(f"({_COMMAND.pattern}|{_MEMORY_ID.pattern})")
# No inline script or style runs, so that a memory which gets through the escaping still does nothing.
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, a browser would not say which page a form comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The headers of every page."""


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page made from a template, with `values` and the caller of the request."""
    principal: Principal | None = getattr(request.state, "principal", None)
    parts: Parts = request.app.state.parts
    given = {"who": principal, "path": request.url.path, "now": parts.clock(), **values}
    shown = _TEMPLATES.get_template(template).render(given)
    return HTMLResponse(shown, status, HEADERS)


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def milliseconds(moment: datetime) -> int:
    """Return the milliseconds from 1970 to a moment, as a page's stream of events counts them."""
    return int(moment.timestamp() * 1_000)


def _ago(moment: datetime, now: datetime) -> str:
    return age(now - moment)


def _number(value: float) -> str:
    return f"{value:,.0f}" if isinstance(value, int) else f"{value:,.2f}"


def _shortened(text: str) -> str:
    """Return a text, or its beginning: a browser shows sixty messages at once, of which one may be a whole file."""
    left = len(text) - _MOST_CHARACTERS
    return text if left <= 0 else f"{text[:_MOST_CHARACTERS]} … ({left:,} more characters)"


def _parts_of_message(text: str) -> list[tuple[str, str]]:
    """Return a message in parts: commands, which stand between backticks, ids of memories, and other words."""
    found: list[tuple[str, str]] = []
    for part in filter(None, _MARKED.split(text)):
        is_command, is_memory = _COMMAND.fullmatch(part), _MEMORY_ID.fullmatch(part)
        found.append(("command", part[1:-1]) if is_command else ("memory" if is_memory else "words", part))
    return found


def _shown_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Callable[..., object]] = {
        "moment": _moment,
        "milliseconds": milliseconds,
        "ago": _ago,
        "number": _number,
        "shortened": _shortened,
        "parts_of_message": _parts_of_message,
        "counted": counted,
        "marked_words": marked_words,
        "readable": readable,
        "call_words": call_words,
        "picture": picture,
        "part_text": part_text,
        "result_parts": result_parts,
    }
    made.filters.update(filters, shown_json=_shown_json)  # pyright: ignore[reportUnknownMemberType]
    made.globals.update(version=VERSION, tool_characters=TOOL_CHARACTERS)  # pyright: ignore[reportUnknownMemberType]
    return made


_TEMPLATES = _environment()
