"""Regular expressions that are compiled on first use."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class LatePattern:
    """A regular expression that is compiled when it is first searched for.

    Expressions over the words of all languages are large: a server would start a fifth of a second later if all of them
    were compiled at once.
    """

    pattern: str
    flags: re.RegexFlag = re.NOFLAG

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern, self.flags)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        """Return the first match in a text between two places."""
        return self._compiled.search(text, start, len(text) if end is None else end)

    def match(self, text: str) -> re.Match[str] | None:
        """Return a match at the beginning of a text."""
        return self._compiled.match(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches in a text, in order, without overlaps."""
        return self._compiled.finditer(text)
