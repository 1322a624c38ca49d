"""Cutting a text to a length, between characters as a reader sees them."""

import re
import unicodedata

from esker.server.core.counts import counted

# Characters back from the limit in which white space is preferred as the place to cut.
_NEAR = 80

_MASK = "[redacted:"

_LONGEST_MASK = 60

_JOINER = "\u200d"

_VIRAMA = 9

# What belongs to the character before it, besides marks: joiners, the colours of skin, tags of flags, parts of a
# Hangul syllable, half-width voicing, the second half of a surrogate pair.
_CONTINUES = re.compile(
    "[\u200c\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\uff9e\uff9f\udc00-\udfff]"
)


def cut(text: str, limit: int) -> str:
    """Return `text`, or a beginning of it and a note of how much is missing, in `limit` characters together.

    It ends before white space if there is some near, and never inside what is one to a reader: a letter with its
    marks, a joined emoji, a flag, the mask of a secret. `limit` has room for the note: 40 characters or more.
    """
    if len(text) <= limit:
        return text
    place = _place_to_cut(text, max(0, limit - len(_missing(len(text)))))
    return text[:place] + _missing(len(text) - place)


def _missing(count: int) -> str:
    return f" … [{counted(count, 'more character')}]"


def _place_to_cut(text: str, limit: int) -> int:
    """Return the last place up to `limit` before white space, else the last one where nothing is torn; else 0."""
    nearest = 0
    for place in range(limit, 0, -1):
        if nearest and place < limit - _NEAR:
            break
        if _tears(text, place):
            continue
        if text[place].isspace():
            return place
        nearest = nearest or place
    return nearest


def _tears(text: str, place: int) -> bool:
    """Tell whether a cut before `place` would split one character as a reader sees it, or a mask."""
    before, after = text[place - 1], text[place]
    if before == _JOINER or unicodedata.combining(before) == _VIRAMA:
        return True
    if unicodedata.category(after) in ("Mn", "Mc", "Me") or _CONTINUES.match(after):
        return True
    return _halves_flag(text, place) or _halves_mask(text, place)


def _halves_flag(text: str, place: int) -> bool:
    """Tell whether an odd number of the letters that make up flags, two each, stand before `place`, and one after."""
    start = place
    while start and _is_flag_letter(text[start - 1]):
        start -= 1
    return _is_flag_letter(text[place]) and (place - start) % 2 == 1


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _halves_mask(text: str, place: int) -> bool:
    start = text.rfind(_MASK, max(0, place - _LONGEST_MASK), place + len(_MASK) - 1)
    return start >= 0 and text.find("]", start, start + _LONGEST_MASK) >= place
