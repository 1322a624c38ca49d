"""The log of failed hooks: an owner-only file in the state directory, since a hook must not fail because of memory."""

import os
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from esker.server.agents.private_folder import make_private

_FILE = "hooks.log"
_MOST_BYTES = 256 * 1024
_LINE = re.compile(r"\S+ (?P<client>[a-z][a-z-]*)\b")


class HookLog:
    """The failures of hooks, a line each."""

    def __init__(self, state_dir: Path) -> None:
        self.path = state_dir / _FILE

    def write(self, hook: str, failure: str) -> None:
        """Add a failure of a hook (client, or client and event); a log that has grown long is rotated."""
        with suppress(OSError):
            make_private(self.path.parent)
            if self.path.is_file() and self.path.stat().st_size > _MOST_BYTES:
                self.path.replace(self.path.with_suffix(".log.1"))
            with os.fdopen(
                os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                "a",
                encoding="utf-8",
                errors="backslashreplace",
            ) as file:
                file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {_one_line(f'{hook}: {failure}')}\n")

    def failures(self) -> dict[str, tuple[int, str]]:
        """Return the number of failures and the last line for each client, the most failures first. Raises OSError."""
        if not self.path.is_file():
            return {}
        counts: Counter[str] = Counter()
        last: dict[str, str] = {}
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            found = _LINE.match(line)
            client = found["client"] if found else "another client"
            counts[client] += 1
            last[client] = line
        return {client: (count, last[client]) for client, count in counts.most_common()}


def _one_line(text: str) -> str:
    """Return a text in which nothing, such as the words of a server, begins another line or acts on a terminal."""
    return "".join(character if character.isprintable() else " " for character in text)
