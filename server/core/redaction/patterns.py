"""Regular expressions that are compiled on first use: a hook is over sooner than all of them would be compiled."""

import re
import sys
from collections.abc import Iterator
from functools import cached_property


class Pattern:
    """A regular expression that most texts do not need."""

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    def match(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return a match that begins at `start`."""
        return self._compiled.match(text, start, end)

    def fullmatch(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return a match of all from `start` to `end`."""
        return self._compiled.fullmatch(text, start, end)

    def search(self, text: str, start: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        """Return the first match."""
        return self._compiled.search(text, start, end)

    def finditer(self, text: str, start: int = 0, end: int = sys.maxsize) -> Iterator[re.Match[str]]:
        """Yield the matches, which do not overlap."""
        return self._compiled.finditer(text, start, end)

    def findall(self, text: str) -> list[str]:
        """Return the texts that match; the pattern must have no groups."""
        return self._compiled.findall(text)

    def split(self, text: str, maxsplit: int = 0) -> list[str]:
        """Return the parts of a text between the matches."""
        return self._compiled.split(text, maxsplit)
