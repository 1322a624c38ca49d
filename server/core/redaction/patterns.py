"""Regular expressions that are compiled on first use: a hook is over sooner than all of them would be compiled."""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol


class _Match(Protocol):
    def __call__(self, text: str, start: int = 0, end: int = sys.maxsize, /) -> re.Match[str] | None: ...


class _Matches(Protocol):
    def __call__(self, text: str, start: int = 0, end: int = sys.maxsize, /) -> Iterator[re.Match[str]]: ...


class Pattern:
    """A regular expression that most texts do not need.

    Its methods are those of the compiled expression, bound on first use: a text is matched thousands of times.
    """

    def __init__(self, pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)

    @cached_property
    def match(self) -> _Match:
        """Return a match that begins at a place in a text."""
        return self._compiled.match

    @cached_property
    def fullmatch(self) -> _Match:
        """Return a match of all of a text from one place to another."""
        return self._compiled.fullmatch

    @cached_property
    def search(self) -> _Match:
        """Return the first match in a text."""
        return self._compiled.search

    @cached_property
    def finditer(self) -> _Matches:
        """Yield the matches in a text, which do not overlap."""
        return self._compiled.finditer

    @cached_property
    def findall(self) -> Callable[[str], list[str]]:
        """Return the texts that match; the pattern must have no groups."""
        return self._compiled.findall

    @cached_property
    def sub(self) -> Callable[[Callable[[re.Match[str]], str], str], str]:
        """Return a text with each match replaced by what a function makes of it."""
        return self._compiled.sub

    def split(self, text: str, maxsplit: int = 0) -> list[str]:
        """Return the parts of a text between the matches."""
        return self._compiled.split(text, maxsplit)
