"""A file that is ours altogether."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from esker.server.core.errors import InvalidInput

MARK = "Written by `esker install "


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file with a text of ours, which says so itself."""

    whole: ClassVar[bool] = True
    path: Path
    text: str

    def put(self, text: str) -> str:
        """Return our text. Raises InvalidInput where somebody else's file is in the way."""
        if text.strip() and MARK not in text:
            raise InvalidInput("a file of this name is there, and it is not Esker's")
        return self.text

    def take(self, text: str, original: str | None) -> str | None:
        """Return nothing, or what is not ours as it is."""
        return original or None if MARK in text else text
