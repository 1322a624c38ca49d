"""Truncates a text to a length without splitting a character as a reader sees it."""

import re
import unicodedata

from esker.server.core.counts import counted

# Maximum characters that are given up to cut at white space instead of at the limit.
_NEAR = 80

_MASK = "[redacted:"

_LONGEST_MASK = 60

_JOINER = "\u200d"

_VIRAMA = 9

# Characters that belong to the one before them, besides marks: joiners, skin tones, tags of flags, parts of a Hangul
# syllable, half-width voicing, the second half of a surrogate pair.
_CONTINUES = re.compile(
    "[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\uff9e\uff9f\udc00-\udfff]"
)


def cut(text: str, limit: int) -> str:
    """Return `text`, or a prefix of it and the number of missing characters, in `limit` characters altogether.

    It is cut at white space if some is near, and never inside a letter with its marks, a joined emoji, a flag or the
    mask of a secret. `limit` must be at least 40, the room for the note.
    """
    if len(text) <= limit:
        return text
    place = _place_to_cut(text, max(0, limit - len(_missing(len(text)))))
    return text[:place] + _missing(len(text) - place)


def _missing(count: int) -> str:
    return f" … [{counted(count, 'more character')}]"


def _place_to_cut(text: str, limit: int) -> int:
    """Return the last place up to `limit` at white space, else the last one that splits no character, else 0."""
    nearest = 0
    for place in range(limit, 0, -1):
        if nearest and place < limit - _NEAR:
            break
        if _splits_character(text, place):
            continue
        if text[place].isspace():
            return place
        nearest = nearest or place
    return nearest


def _splits_character(text: str, place: int) -> bool:
    """Whether a cut before `place` would split one character as a reader sees it, or a mask."""
    before, after = text[place - 1], text[place]
    if before == _JOINER or unicodedata.combining(before) == _VIRAMA:
        return True
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or _CONTINUES.match(after):
        return True
    return _halves_flag(text, place) or _halves_mask(text, place)


def _halves_flag(text: str, place: int) -> bool:
    """Whether `place` is inside a flag: an odd number of flag letters precede it, and one follows."""
    start = place
    while start and _is_flag_letter(text[start - 1]):
        start -= 1
    return _is_flag_letter(text[place]) and (place - start) % 2 == 1


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _halves_mask(text: str, place: int) -> bool:
    start = text.rfind(_MASK, max(0, place - _LONGEST_MASK), place + len(_MASK) - 1)
    return start >= 0 and text.find("]", start, start + _LONGEST_MASK) >= place
