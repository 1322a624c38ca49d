"""A file that Esker owns as a whole."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from esker.server.core.errors import InvalidInput

MARK = "Written by `esker install "


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file with Esker's text, which contains a mark to recognise it."""

    whole: ClassVar[bool] = True
    path: Path
    text: str

    def put(self, text: str) -> str:
        """Return Esker's text. Raises InvalidInput if a file of others is in the way."""
        if text.strip() and MARK not in text:
            raise InvalidInput("a file of this name exists, and it is not Esker's")
        return self.text

    def remove(self, text: str, original: str | None) -> str | None:
        """Return the original of Esker's file, or the text of another file unchanged."""
        return original or None if MARK in text else text
