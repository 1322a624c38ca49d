"""The patterns of `ESKER_EXCLUDE`: directories with everything below them, and projects.

A pattern that begins with `/`, `~` or a drive such as `C:\\` is a directory, any other a project. In a part (the text
between two slashes) `*` matches any number of characters, `?` one, `[ab]` and `[a-z]` one of these and `[!ab]` any
other; `**` as a whole part matches any number of parts, also none. Case does not matter. A mistake in a pattern must
not leak private data, so every other pattern is refused.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from esker.server.core.errors import InvalidInput
from esker.server.core.project_names import project_name

PatternStep = re.Pattern[str] | None
"""A regular expression for one part; None matches any number of parts."""

_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|$)")
_TOKEN = re.compile(r"\*+|\?|\[(?P<negated>!?)(?P<members>\]?[^\[\]/]*)\]|\[|[^*?\[]+")
_RANGE = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_WILD = re.compile(r"[*?\[]")
_REFUSED = (
    (re.compile(r"[\x00-\x1f]"), "it contains a line break or another control character"),
    (
        re.compile("[\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060\ud800-\udfff\ufeff]"),
        "it contains a character that cannot be seen; write ? for it",
    ),
    (re.compile(r"^#|\s#"), "a comment is a line of its own; write [#] for a number sign in a name"),
    (re.compile(r"[{}]"), "braces are not supported; list each directory, and write ? for a brace in a name"),
    (re.compile(","), "patterns are separated by commas or lines; write ? for a comma in a name"),
    (
        re.compile(r"[:;]\s*[/~]|^[^/]+@[^/]+:"),
        "patterns are separated by commas, and a project is only the path of its address",
    ),
    (re.compile(r"""^["'`]"""), "it begins with a quotation mark"),
    (re.compile(r"^\$"), "variables are not expanded; write the directory itself, or ~"),
    (re.compile(r"^!"), "exceptions are not supported"),
    (re.compile(r"^\s|\s$"), "it begins or ends with a space"),
    (re.compile(r"^\.{1,2}(/|$)"), "a directory begins with / or ~, so write the whole path"),
)


@dataclass(frozen=True, slots=True)
class ExclusionPattern:
    """A parsed pattern.

    For a directory, `head` is the path before the first part with a wildcard and `steps` are the remaining parts; for a
    project, `steps` are all parts. `covers`: everything below matches as well.
    """

    is_directory: bool
    head: str
    steps: tuple[PatternStep, ...]
    covers: bool

    def matches(self, parts: Sequence[str], head: Sequence[str] = ()) -> bool:
        """Whether the pattern matches a path with these parts, which must begin with those of `head`.

        Compares at most len(parts) * len(steps) times.
        """
        if [_same(part) for part in parts[: len(head)]] != [_same(part) for part in head]:
            return False
        places = {len(head)}
        for step in self.steps:
            if step is None:
                places = set(range(min(places), len(parts) + 1))
            else:
                places = {
                    place + 1 for place in places if place < len(parts) and step.fullmatch(_composed(parts[place]))
                }
            if not places:
                return False
        return self.covers or len(parts) in places


def parse_pattern(text: str) -> ExclusionPattern:
    """Parse a pattern. Raises InvalidInput, with the reason, for one that is not valid."""
    return _parsed(text, os.path.expanduser(text))


@lru_cache(maxsize=1_024)
def _parsed(text: str, expanded: str) -> ExclusionPattern:
    for refused, reason in _REFUSED:
        if refused.search(text):
            raise InvalidInput(f"{text!r} is not a valid pattern: {reason}.")
    if expanded.startswith("~"):
        raise InvalidInput(f"{text!r} is not a valid pattern: its user does not exist.")
    drive = _DRIVE.match(expanded)
    if "\\" in expanded and not drive:
        raise InvalidInput(f"{text!r} is not a valid pattern: parts are separated by slashes.")
    parts = parts_of(expanded)
    if not text or ".." in parts or (not parts and not expanded.startswith("/")):
        raise InvalidInput(f"{text!r} is not a valid pattern: a directory begins with / or ~ and must not contain ..")
    if drive or expanded.startswith("/"):
        plain = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
        head = ("" if drive else "/") + "/".join(parts[:plain])
        return ExclusionPattern(True, head, tuple(_step(part, text) for part in parts[plain:]), covers=True)
    covers = expanded.endswith("/") or parts[-1] in ("*", "**")
    return ExclusionPattern(False, "", tuple(_step(project_name(part), text) for part in parts), covers)


def parts_of(path: str) -> list[str]:
    """Return the parts of a directory or a project; in a Windows directory, backslashes separate parts, too."""
    path = path.replace("\\", "/") if _DRIVE.match(path) else path
    return [part for part in path.split("/") if part not in ("", ".")]


def _step(part: str, text: str) -> PatternStep:
    """Return the regular expression for a part of a pattern; None for `**`.

    The text between two asterisks is an atomic group: the first match from the left is kept, so that a name without a
    match takes time proportional to its length times the pattern's.
    """
    if part == "**":
        return None
    pieces: list[str] = [""]
    for token in _TOKEN.finditer(part):
        if token[0] == "*":
            pieces.append("")
        elif token[0].startswith("**"):
            raise InvalidInput(f"{text!r} is not a valid pattern: ** must be a whole part between slashes.")
        else:
            pieces[-1] += _character(token, text)
    first, *others = pieces
    between = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    return re.compile(first + between + (f".*{others[-1]}" if others else ""), re.IGNORECASE | re.DOTALL)


def _character(token: re.Match[str], text: str) -> str:
    """Return the regular expression of one token but an asterisk."""
    if token[0] == "?":
        return "."
    if not token[0].startswith("["):
        return re.escape(_composed(token[0]))
    if not token["members"]:
        raise InvalidInput(f"{text!r} is not a valid pattern: a bracket is not closed, or is empty.")
    members = ""
    for first, last, single in _RANGE.findall(_composed(token["members"])):
        if first > last:
            raise InvalidInput(f"{text!r} is not a valid pattern: {first}-{last} is not a range.")
        members += re.escape(single) if single else f"{re.escape(first)}-{re.escape(last)}"
    return f"[{'^' if token['negated'] else ''}{members}]"


def _composed(part: str) -> str:
    """Return a name in NFC, since a letter with an accent can be written as one character or as two."""
    return unicodedata.normalize("NFC", part)


def _same(part: str) -> str:
    return _composed(part).casefold()
