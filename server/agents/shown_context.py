"""Tells whether the context of a session still contains a pack, for clients that keep it in their transcript."""

import json
import mmap
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from esker.server.agents.hook_input import HookEvent
from esker.server.agents.regular_file import opened_plain
from esker.server.core.pack.cutting import FIRST_LINE


@dataclass(frozen=True, slots=True)
class _Format:
    """The format of a client's transcript: its changes to a context, and the text that marks the line of a new context.

    That line lists what is left of the context.
    """

    changed: Callable[[str], str]
    new_context: bytes


_FORMATS = {
    "codex": _Format(lambda text: text, b'"type":"compacted"'),
    "gemini-cli": _Format(lambda text: text.replace("<", "&lt;").replace(">", "&gt;"), b'{"$set":{"messages"'),
}


def shows_pack(event: HookEvent, pack: str) -> bool:
    """Return whether the model still sees this pack; False if the client may not show it again after a resume."""
    beginning, last = _positions(event, pack)
    return last >= beginning


def has_lost_pack(event: HookEvent) -> bool:
    """Return whether the model saw a pack before the present context began, and has seen none since."""
    beginning, last = _positions(event, FIRST_LINE)
    return 0 <= last < beginning


def _positions(event: HookEvent, text: str) -> tuple[int, int]:
    """Return where the present context begins in the transcript, and where it last contains a text (-1: nowhere)."""
    style = _FORMATS.get(event.client)
    # A file that is missing, empty or not readable contains nothing.
    with suppress(OSError, ValueError):
        if style is not None and event.transcript is not None:
            written = json.dumps(style.changed(text), ensure_ascii=False)[1:-1].encode("utf-8", "replace")
            with opened_plain(event.transcript) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                line = max(whole.rfind(style.new_context), 0)
                return whole.rfind(b"\n", 0, line) + 1, whole.rfind(written)
    return 0, -1
