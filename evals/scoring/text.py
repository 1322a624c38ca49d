"""Texts in the form in which they are compared: one case, width, Unicode composition and spacing."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from esker.server.core.text.languages import ENGLISH, STEMMERS
from esker.server.core.text.terms import terms
from esker.server.core.words import lists
from esker.server.core.words.lists import any_of, words
from evals.case_files import LANGUAGES, Language

Patterns = Mapping[Language, re.Pattern[str]]

_SPACE = re.compile(r"\s+")
# A wide comma is never part of a number, so a space follows it.
_UNIFIED = str.maketrans(
    {"–": "-", "—": "-", "‑": "-", "−": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "`": None, "，": ", ", "、": ", "}
)
# A letter with a full stop abbreviates a name; after a number it is a unit at the end of a sentence.
_ABBREVIATION = (
    "".join(rf"(?<!\b{re.escape(each)})" for each in words("scores.abbreviations")) + r"(?<!(?<![0-9] )\b[A-Za-z]\.)"
)
# As in `6. August`.
_NO_MONTH = rf"(?!(?:{'|'.join(sorted({name[:3] for name in words('dates.months', 'de')}))})[a-zä]*\b)"
_SENTENCE = re.compile(
    rf"{_ABBREVIATION}(?<=[.!?])\s+(?=[^a-zäöüß0-9]|[a-z]+[-_]\w*[0-9]){_NO_MONTH}|(?<=[。！？])|\n+|\s→\s"
)
_BETWEEN_CLAUSES = r",\s+|[，、：；]\s*|;\s+|:\s+|\s+-\s+|[()（）]\s*"


def _clause(language: Language) -> re.Pattern[str]:
    """Return a pattern for clause boundaries. A phrase after a word of `other_than` is a clause, too: it is denied."""
    other_than = any_of(words("scores.other_than", language))
    if language == "ja":
        return re.compile("|".join((_BETWEEN_CLAUSES, *(f"(?<={each})" for each in words("scores.other_than", "ja")))))
    if language == "zh":
        return re.compile(rf"{_BETWEEN_CLAUSES}|(?={other_than})")
    conjunctions = any_of(words("scores.conjunctions", language))
    return re.compile(rf"{_BETWEEN_CLAUSES}|\s+{conjunctions}\s+|\s+(?={other_than}\b)", re.IGNORECASE)


_CLAUSE = {language: _clause(language) for language in LANGUAGES}
_CJK_RANGES = r"\u3040-\u30ff\u3400-\u9fff"
_LETTER = rf"[^\W{_CJK_RANGES}]"
_IS_LETTER = re.compile(_LETTER)
_DIGITS = frozenset("0123456789")
_WORD_BEGINS, _WORD_ENDS = re.compile(rf"(?<!{_LETTER})"), re.compile(rf"(?!{_LETTER})(?![.,][0-9])")
_NUMBER_BEGINS = re.compile(rf"(?<!{_LETTER})(?<![0-9][.,])")
_ANYWHERE = re.compile("")  # scripts without spaces between words have no boundary to keep
_PLAIN = re.compile(r"[^\W\d_]{4,}(?: [^\W\d_]{3,})*")
_STEMMED_AS = {language: STEMMERS.get(language, ENGLISH) for language in LANGUAGES}


def by_language(name: str) -> Patterns:
    """Return the patterns of a score list, by language."""
    entries = lists.by_language(f"scores.{name}")
    return {language: of_words(entries[language], language) for language in LANGUAGES if language in entries}


def of_words(entries: Iterable[str], language: Language) -> re.Pattern[str]:
    """Return a pattern for any of the entries in normalised text; of whole words in scripts with spaces."""
    either = "|".join(entries)
    match language:
        case "zh" | "ja":
            return re.compile(either)
        case "de":
            return re.compile(rf"(?<!\w)(?:{either})(?!\w)".replace("ß", "ss"))  # as case folding writes it
        case "en":
            return re.compile(rf"\b(?:{either})\b")
        case "es":
            return re.compile(rf"(?<!\w)(?:{either})(?!\w)")


@lru_cache(maxsize=65_536)
def normalised(text: str) -> str:
    """Return a text in one form: NFKC, case folded, one kind of dash and quote, no backquotes, single spaces."""
    plain = unicodedata.normalize("NFKC", text.translate(_UNIFIED)).translate(_UNIFIED)
    return _SPACE.sub(" ", plain.casefold()).strip()


@lru_cache(maxsize=65_536)
def holds(text: str, words: str, language: Language) -> bool:
    """Whether a text contains words literally, and not as a part of a longer word or number.

    `5` is not in `15` or `5.2`, `auth.ts` not in `auth.tsx`. Plain words may be inflected: `Fridays` holds `Friday`.
    """
    wanted = normalised(words)
    if _contains(wanted, normalised(text)):
        return True
    return bool(_PLAIN.fullmatch(wanted)) and _has_sequence(stems(wanted, language), stems(text, language))


def holds_all(text: str, words: Iterable[str], language: Language) -> bool:
    """Whether a text contains each of these words."""
    return all(holds(text, each, language) for each in words)


def _contains(words: str, text: str) -> bool:
    # Compiling a pattern for each `words` would take longer than the search itself.
    before = (_NUMBER_BEGINS if words[:1] in _DIGITS else _WORD_BEGINS) if _IS_LETTER.match(words[:1]) else _ANYWHERE
    after = _WORD_ENDS if _IS_LETTER.match(words[-1:]) else _ANYWHERE
    at = text.find(words)
    while at >= 0:
        if before.match(text, at) and after.match(text, at + len(words)):
            return True
        at = text.find(words, at + 1)
    return False


def _has_sequence(wanted: tuple[str, ...], there: tuple[str, ...]) -> bool:
    return bool(wanted) and any(there[at : at + len(wanted)] == wanted for at in range(len(there) - len(wanted) + 1))


@lru_cache(maxsize=65_536)
def stems(text: str, language: Language) -> tuple[str, ...]:
    """Return the stemmed words of a text in order, without stop words; pairs of characters in CJK."""
    return tuple(terms(unicodedata.normalize("NFKC", text), _STEMMED_AS[language]))


@lru_cache(maxsize=16_384)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text; the steps of a sequence (`a → b`) are separate."""
    return tuple(part.strip() for part in _SENTENCE.split(text) if part and part.strip())


def parts(sentence: str) -> list[str]:
    """Return a sentence and its parts between semicolons."""
    return list(dict.fromkeys((sentence, *(part.strip() for part in re.split("[;；]", sentence) if part.strip()))))


def clauses(text: str, language: Language) -> list[str]:
    """Return the clauses of a text; a denied phrase (`not npm`) is a clause of its own."""
    parts = (part for sentence in sentences(text) for part in _CLAUSE[language].split(sentence))
    return [part.strip() for part in parts if part and part.strip()]


_CJK = re.compile(rf"[{_CJK_RANGES}]")
_SMALL: Mapping[Language, frozenset[str]] = {
    "zh": frozenset(words("scores.small_signs")),
    "ja": frozenset(chr(code) for code in range(0x3040, 0x30A0)),  # endings and particles are written in hiragana
}


@lru_cache(maxsize=65_536)
def words_of(text: str, language: Language) -> frozenset[str]:
    """Return the stemmed content words of a text; single characters of Chinese and Japanese.

    Pairs of characters, which recall uses, rarely match between paraphrases.
    """
    if language not in ("zh", "ja"):
        return frozenset(stems(text, language))
    plain = normalised(text)
    signs = frozenset(_CJK.findall(plain)) - _SMALL[language]
    return signs | frozenset(stems(_CJK.sub(" ", plain), "en"))


def share(of: str, within: str, language: Language) -> float:
    """Return the share of the words of one text that are in another, from 0 to 1."""
    wanted = words_of(of, language)
    return len(wanted & words_of(within, language)) / len(wanted) if wanted else 0.0
