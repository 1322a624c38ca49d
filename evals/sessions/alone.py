"""Whether a reader who has only a row understands it: it names its subject and does not point back.

The check is independent of the observer, which must not be measured by its own rules.
"""

from collections.abc import Iterator
from functools import cache

from esker.server.core.text.labels import IN_ANSWER, PURPOSE, without_label
from esker.server.core.words import lists
from evals.case_files import Language
from evals.scoring.claims import located
from evals.scoring.text import by_language, normalised, words_of

_BEGINS_BACK = by_language("begins_back")
_PRONOUNS = by_language("pronouns")
_POINTS_BACK = by_language("points_back")

_LEAST_WORDS = 2
"""Content words that a row needs if it has no identifier and no number."""
_LEAST_SIGNS = 3
"""The same in Chinese and Japanese, where a word has one or two characters."""


def not_alone(text: str, language: Language) -> str | None:
    """Return why a row cannot be understood alone, or None if it can."""
    return next(_reasons(text, language), None)


def own_words(text: str) -> str:
    """Return a row's text without the request that its change fulfils."""
    return text.split(PURPOSE)[0]


def own_statement(text: str) -> str:
    """Return a row's own words without the words that they answer."""
    return own_words(text).partition(IN_ANSWER)[0]


def _reasons(text: str, language: Language) -> Iterator[str]:
    statement, _, answered = without_label(own_words(text)).partition(IN_ANSWER)
    said = normalised(statement)
    # A row that quotes what it answers may point to it.
    if not _has_content(answered, language):
        if found := _BEGINS_BACK[language].match(said) or _POINTS_BACK[language].search(said):
            yield f"{found[0]!r} points back"
        found = _PRONOUNS[language].search(said)
        if found and not _names_something(said[: found.start()], language):
            yield f"{found[0]!r} has no subject before it"
    if not _has_content(f"{statement} {answered}", language):
        yield "it has no subject"


def _has_content(text: str, language: Language) -> bool:
    return _has_identifier(text) or len(_content(text, language)) >= _least(language)


def _names_something(text: str, language: Language) -> bool:
    return _has_identifier(text) or bool(_content(text, language))


def _has_identifier(text: str) -> bool:
    return any(claim.kind == "identifier" for _, claim in located(text))


def _content(text: str, language: Language) -> frozenset[str]:
    return words_of(text, language) - _empty_words(language)


def _least(language: Language) -> int:
    return _LEAST_SIGNS if language in ("zh", "ja") else _LEAST_WORDS


@cache
def _empty_words(language: Language) -> frozenset[str]:
    return words_of(" ".join(lists.by_language("scores.empty")[language]), language)
