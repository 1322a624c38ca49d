"""Normalises texts for comparison, and finds one text in another."""

import re
import unicodedata

# Characters of a name; a character of another script ends a name without a space. Folding maps no other character to
# one of these, so a name ends at the same place in a text and in its folded form.
LETTERS = "0-9A-Za-z_À-ÖØ-öø-ſƠơƯưǰȘ-țḀ-ỿ"
NOT_GLUED = f"(?![{LETTERS}])"

# Invisible characters are dropped and hyphens unified: models often write such characters into names.
_ALIKE = str.maketrans("\u2010\u2011\u2212", "---", "\u00ad\u200b\u200c\u200d\u2060\ufeff")
_STRAIGHT = str.maketrans("‘’‚‛′“”„‟″«»「」『』–—―", "'" * 5 + '"' * 11 + "---")
# Unification alone would make `10⁶` 106, `8½` 81/2 and `①②` 12.
_RAISED, _LOWERED, _SINGLE = "⁰¹²³⁴-⁹", "₀-₉", "¼-¾⅐-⅟↉①-⓿❶-➓㉑-㉟㊱-㊿"
_POWER = re.compile(rf"(?<=\d)(?=[⁺⁻]?[{_RAISED}])")
_NEXT_NUMBER = re.compile(rf"(?<=[\d{_SINGLE}])(?=[{_LOWERED}{_SINGLE}])|(?<=[{_RAISED}{_LOWERED}{_SINGLE}])(?=\d)")
_FOREIGN_DIGIT = re.compile(r"[^\D0-9]")
_WORD_CHARACTER = re.compile(f"[{LETTERS}]")
_ESCAPES = ("\\n", "\\r", "\\t")
# Characters that join a digit to the letter or digit beyond them: `8,000`, `1.5`, `a-5`.
_TIES = "[-.,'_:/@#~+]"
_BEGUN_NUMBER = re.compile(rf"(?:\w|[{LETTERS}]{_TIES})\d\Z")
_UNFINISHED_NUMBER = re.compile(rf"\d(?:[^\W\d]|{_TIES}[{LETTERS}])")


def normal_form(text: str) -> str:
    """Return a text with compatible characters, digits and hyphens unified; it is split into words in this form."""
    if text.isascii():
        return text
    apart = _NEXT_NUMBER.sub(" ", _POWER.sub("^", text))
    plain = unicodedata.normalize("NFKC", apart).translate(_ALIKE)
    return _FOREIGN_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), plain)


def folded_form(normal: str) -> str:
    """Return a normal form in lower case, with single spaces, straight quotes and plain dashes, for comparison.

    Each character is folded by itself, so a folded part of a text is a part of the folded text.
    """
    return " ".join(normal.translate(_STRAIGHT).casefold().split())


def same_words_key(text: str) -> str:
    """Return a key that is equal for texts that differ only in case and white space."""
    return " ".join(text.casefold().split())


def occurs(part: str, text: str, cut_short: bool = False) -> bool:
    """Whether `part` occurs in `text` and does not begin or end inside a word; `cut_short`: it may end inside one."""
    place = text.find(part)
    while place >= 0:
        if _begins(part, text, place) and (cut_short or _ends(part, text, place + len(part))):
            return True
        place = text.find(part, place + 1)
    return False


def repeated(part: str, text: str) -> bool:
    """Whether `part` occurs in `text` and no number at its beginning or end continues outside of it."""
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
