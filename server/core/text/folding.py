"""Folded forms: how texts are written to be compared, and where one of them occurs in another."""

import re
import unicodedata

# Letters that names are made of: another script ends a name that is glued to it. No other character becomes one of
# these when it is folded, so that what ends a name in a text also ends it in the folded text.
LETTERS = "0-9A-Za-z_À-ÖØ-öø-ſƠơƯưǰȘ-țḀ-ỿ"
NOT_GLUED = f"(?![{LETTERS}])"

# Invisible characters are dropped, and hyphens that look like one are one: models like to write them into names.
_ALIKE = str.maketrans("\u2010\u2011\u2212", "---", "\u00ad\u200b\u200c\u200d\u2060\ufeff")
_STRAIGHT = str.maketrans("‘’‚‛′“”„‟″«»「」『』–—―", "'" * 5 + '"' * 11 + "---")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_WORD_CHARACTER = re.compile(f"[{LETTERS}]")
_ESCAPES = ("\\n", "\\r", "\\t")
# What ties a digit to the letters and digits beside it: `8k`, `8万`, `8,000`, `1.5`, `a-5`.
_TIES = "[-.,'_:/@#~+]"
_BEGUN_NUMBER = re.compile(rf"(?:\w|[{LETTERS}]{_TIES})\d\Z")
_UNFINISHED_NUMBER = re.compile(rf"\d(?:[^\W\d]|{_TIES}[{LETTERS}])")


def normal_form(text: str) -> str:
    """Return the form of a text in which its pieces are found: compatible characters, digits and hyphens are one."""
    plain = unicodedata.normalize("NFKC", text).translate(_ALIKE)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


def folded_form(normal: str) -> str:
    """Return the form of a normal text in which texts are compared: no case, one space, straight quotes and dashes.

    It is made character by character, so that a part of a text, folded, is a part of the folded text.
    """
    return " ".join(normal.translate(_STRAIGHT).casefold().split())


def same_words_key(text: str) -> str:
    """Return a key that is equal for texts of the same words, whatever their case and white space."""
    return " ".join(text.casefold().split())


def occurs(part: str, text: str, cut_short: bool = False) -> bool:
    """Tell whether `part` stands in `text` and does not begin or end inside a word; `cut_short`, it may end inside."""
    place = text.find(part)
    while place >= 0:
        if _begins(part, text, place) and (cut_short or _ends(part, text, place + len(part))):
            return True
        place = text.find(part, place + 1)
    return False


def repeated(part: str, text: str) -> bool:
    """Whether `part` occurs in `text` and no number at its beginning or end goes on outside of it."""
    place = text.find(part)
    while place >= 0:
        end = place + len(part)
        if _begins(part, text, place) and _ends(part, text, end) and not _divides_number(text, place, end):
            return True
        place = text.find(part, place + 1)
    return False


def _divides_number(text: str, start: int, end: int) -> bool:
    before = text[max(0, start - 2) : start]
    begun = before not in _ESCAPES and _BEGUN_NUMBER.search(before + text[start : start + 1])
    return bool(begun or _UNFINISHED_NUMBER.match(text[max(0, end - 1) : end + 2]))


def _begins(part: str, text: str, place: int) -> bool:
    before = text[place - 1 : place]
    if part[:1].isdigit():
        return not before.isdigit()
    return not (_is_word(part[:1]) and _is_word(before)) or text[max(0, place - 2) : place] in _ESCAPES


def _ends(part: str, text: str, place: int) -> bool:
    return not (_is_word(part[-1:]) and _is_word(text[place : place + 1]))


def _is_word(character: str) -> bool:
    return bool(_WORD_CHARACTER.match(character))
