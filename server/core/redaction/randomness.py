"""Tells random letters and digits from words, names and hashes by how often their classes change."""

from esker.server.core.redaction.patterns import Pattern

# Changes between small letters, capitals and digits in each character; random text has 0.6, words have 0.1 to 0.3.
_LEAST_CHANGES = 0.34
_RUN = Pattern(r"[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_MIXED = Pattern(r"(?=.{0,199}[a-z])(?=.{0,199}[A-Z]).{0,199}[0-9]")
# The part of a name of a class that its words make up; in random letters and digits it is a fifth.
_WORD = Pattern(r"[A-Z]?[a-z]{3,}")
_MOST_WORDS = 0.55
_JUDGED = 200
# Small letters and digits, or capitals and digits, are judged by more characters: half as many of them change.
_ONE_CASE = Pattern(r"(?:[a-z0-9]{28,}|[A-Z0-9]{28,})\Z")
_HEXADECIMAL = Pattern(r"(?i)(?:0x)?[0-9a-f]+\Z")
_LEAST_CHANGES_OF_ONE_CASE = 0.2


def is_random(word: str) -> bool:
    """Whether small letters, capitals and digits change as often as in random text."""
    judged = word[:_JUDGED].replace("_", "").replace("-", "")
    if not _MIXED.match(judged) or changes(judged) < _LEAST_CHANGES * len(judged):
        return False
    return sum(map(len, _WORD.findall(judged))) < _MOST_WORDS * len(judged)


def is_random_in_one_case(word: str) -> bool:
    """Whether a long word of one case and digits, which is not hexadecimal, is random."""
    judged = word[:_JUDGED]
    return (
        _ONE_CASE.match(judged) is not None
        and not is_hexadecimal(judged)
        and changes(judged) >= _LEAST_CHANGES_OF_ONE_CASE * len(judged)
    )


def is_hexadecimal(word: str) -> bool:
    """Whether all of a word are hexadecimal digits, of both cases as in an address of Ethereum."""
    return _HEXADECIMAL.match(word) is not None


def changes(word: str) -> int:
    """Return how often a small letter, a capital or a digit follows one of the others."""
    return max(0, len(_RUN.findall(word)) - 1)
