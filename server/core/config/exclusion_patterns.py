"""What `ESKER_EXCLUDE` may name: directories with all that is below them, and projects.

A pattern that begins with `/`, `~` or a drive such as `C:\\` is a directory, any other a project. In a part, which is
what stands between slashes, `*` is any number of characters, `?` one, `[ab]` and `[a-z]` one of these and `[!ab]` one
that is none of these; `**` as a part is any number of parts, none as well. Case does not matter. What is private must
not leak because somebody wrote a pattern that means nothing, so whatever is not this is refused.
"""

import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from esker.server.core.errors import InvalidInput

PatternStep = re.Pattern[str] | None
"""What one part has to be; None is any number of parts."""

_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|$)")
_TOKEN = re.compile(r"\*+|\?|\[(?P<none>!?)(?P<these>\]?[^\[\]/]*)\]|\[|[^*?\[]+")
_RANGE = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_WILD = re.compile(r"[*?\[]")
_REFUSED = (
    (re.compile(r"[\x00-\x1f]"), "a line break or another control character is in it"),
    (re.compile(r"[{}]"), "there are no braces; name each directory by itself, and write ? for a brace in a name"),
    (
        re.compile(r"[:;]\s*[/~]|^[^/]+@[^/]+:"),
        "patterns are separated by commas, and a project is the path of its address only",
    ),
    (re.compile(r"""^["'`]"""), "a quotation mark is in it"),
    (re.compile(r"^\$"), "variables are not looked up; write the directory itself, or ~"),
    (re.compile(r"^!"), "nothing can be taken out of what is excluded"),
    (re.compile(r"^\s|\s$"), "a blank is at its end"),
)


@dataclass(frozen=True, slots=True)
class ExclusionPattern:
    """A pattern that was understood.

    Of a directory `head` is what stands before the first part with a wildcard; `steps` are the parts that follow, of a
    project all. `covers` says whether what is below goes as well.
    """

    is_directory: bool
    head: str
    steps: tuple[PatternStep, ...]
    covers: bool

    def fits(self, parts: Sequence[str], head: Sequence[str] = ()) -> bool:
        """Tell whether this names something of these parts, the first of which are to be those of `head`.

        It takes as many comparisons of one part as there are parts and steps, multiplied.
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


def understood(text: str) -> ExclusionPattern:
    """Return what a pattern means. Raises InvalidInput, with the reason, for one that means nothing."""
    return _understood(text, os.path.expanduser(text))


@lru_cache(maxsize=1_024)
def _understood(text: str, expanded: str) -> ExclusionPattern:
    for refused, reason in _REFUSED:
        if refused.search(text):
            raise InvalidInput(f"{text!r} cannot be understood: {reason}.")
    if expanded.startswith("~"):
        raise InvalidInput(f"{text!r} cannot be understood: there is no such user.")
    drive = _DRIVE.match(expanded)
    if "\\" in expanded and not drive:
        raise InvalidInput(f"{text!r} cannot be understood: parts are separated by slashes.")
    parts = parts_of(expanded)
    if not text or ".." in parts or (not parts and not expanded.startswith("/")):
        raise InvalidInput(f"{text!r} cannot be understood: a directory begins with / or ~ and has no .. in it.")
    if drive or expanded.startswith("/"):
        plain = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
        head = ("" if drive else "/") + "/".join(parts[:plain])
        return ExclusionPattern(True, head, tuple(_step(part, text) for part in parts[plain:]), covers=True)
    covers = expanded.endswith("/") or parts[-1] in ("*", "**")
    return ExclusionPattern(False, "", tuple(_step(part, text) for part in parts), covers)


def parts_of(path: str) -> list[str]:
    """Return the parts of a directory or a project; of a directory of Windows those between its backslashes, too."""
    path = path.replace("\\", "/") if _DRIVE.match(path) else path
    return [part for part in path.split("/") if part not in ("", ".")]


def _step(part: str, text: str) -> PatternStep:
    """Return what a part of a pattern asks for.

    What stands between two asterisks is looked for once, from the left, and the first place is kept (an atomic group),
    so that a name that does not fit takes no longer than its length and that of the pattern, multiplied.
    """
    if part == "**":
        return None
    pieces: list[str] = [""]
    for token in _TOKEN.finditer(part):
        if token[0] == "*":
            pieces.append("")
        elif token[0].startswith("**"):
            raise InvalidInput(f"{text!r} cannot be understood: ** stands by itself between slashes.")
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
    these = token["these"]
    if not these:
        raise InvalidInput(f"{text!r} cannot be understood: a bracket is not closed, or nothing is in it.")
    members = ""
    for first, last, single in _RANGE.findall(_composed(these)):
        if first > last:
            raise InvalidInput(f"{text!r} cannot be understood: {first}-{last} is no range.")
        members += re.escape(single) if single else f"{re.escape(first)}-{re.escape(last)}"
    return f"[{'^' if token['none'] else ''}{members}]"


def _composed(part: str) -> str:
    """Return a name as it is compared: a letter and its accent can be written as one character or as two."""
    return unicodedata.normalize("NFC", part)


def _same(part: str) -> str:
    return _composed(part).casefold()
