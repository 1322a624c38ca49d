"""Whether two rows of memory state the same fact, and how far they are about the same subject.

Keeping a fact twice costs a few tokens; merging two facts loses one. So two rows are the same only when they do not
differ in a number, an identifier, a name, a negation, a direction ("enable", "disable"), a wish or a duty, the tense of
a verb, who does what to whom, or one word that takes the place of another.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from esker.server.core.sized_cache import cached_up_to
from esker.server.core.text.labels import without_label, without_notes
from esker.server.core.text.languages import ENGLISH, STOP_WORDS
from esker.server.core.text.terms import MAX_TERM, terms
from esker.server.core.words.lists import groups, words
from esker.server.core.words.scripts import CJK

SAME_WORDS = 0.8
"""Minimum share of common terms (Jaccard) for two rows to say something in nearly the same words."""

SAME_MEANING = 0.85
"""Minimum cosine for two rows to mean the same, if their words allow it.

Measured with the bundled model on 45 paraphrases and 172 near misses: statements about one subject that differ in one
point. The cosine hardly separates them: 0.81 to 0.99 for paraphrases, 0.54 to 1.00 for near misses, 115 of which have
0.85 or more. So the rules decide: they stop every near miss, whatever its cosine, and let 12 of the paraphrases pass,
which have 0.87 or more. The rules were made with these lists; of 40 near misses
written last, 8 passed, 5 since "this" and "that" are told apart, by a small word ("on the server", "of the server").
A paraphrase that is missed costs a row.
"""

SAME_SUBJECT = 0.6
"""Minimum of `same_subject` for a row to be the one that a fact says it replaces."""

_LITTLE_SHARED = 0.3
_SHORT = 3
# First words of a sentence that states its circumstances first.
_OPENERS = frozenset(words("facts.openers"))

_FIRST_CJK = "\u3040"
_NEGATIONS = (*words("negations"), *words("facts.exclusions"))
# In scripts without spaces, only these words are found; every other character counts as a word.
_CJK_WORDS = "|".join(word for word in _NEGATIONS if len(word) > 1 and word[0] >= _FIRST_CJK)
_WORD = re.compile(rf"{_CJK_WORDS}|[{CJK}]|[^\W{CJK}]+")
_WHOLE = re.compile(rf"[-+<>≤≥=~$€£¥]?[^\W{CJK}]+(?:[-._:/\\@#+]{{1,3}}[^\W{CJK}]+)*[%°]?")
_EXACT = re.compile(r"[-._:/\\@\d]")
_SHORT_FORMS = [(re.compile(short, re.IGNORECASE), long) for short, long in groups("facts.short_forms")]
# Marks beside a word that change nothing about it.
_PUNCTUATION = '.,;:!?()"'
_OPENS_SENTENCE = frozenset('.!?:;\n•→—("“„«`*')


@cached_up_to(200_000)
def _key(word: str) -> str:
    """Return the first term of a word, or the word itself if it has none."""
    return next(iter(terms(word)), word)


def _keys(some: Iterable[str]) -> frozenset[str]:
    return frozenset(map(_key, some))


def _first_words(some: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return the first word of a group for the key of each of its words."""
    return {_key(word): group[0] for group in some for word in group}


# Two rows that differ in one of these words state different facts. Words of one group are interchangeable.
_MARKS = _first_words((_NEGATIONS, *groups("facts.marks")))
_SYNONYMS = _first_words(groups("facts.synonyms"))
# Words that a row may leave out. Negations may be left out here because `_MARKS` compares them.
_LIGHT = _keys((*_NEGATIONS, *words("facts.light")))
# Words too general to be a row's subject.
_GENERAL = _keys(words("facts.general"))
# The pair of opposites that a word belongs to, and its side.
_SIDES = {
    _key(word): (pair, side)
    for pair, sides in enumerate(groups("facts.opposites"))
    for side, some in enumerate(sides)
    for word in some.split()
}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The parts of a row's text that are compared.

    `sequence` are its terms in order, `words` all of its words. `exact` are its numbers and identifiers, sorted.
    `gist` are the terms that say something, synonyms as one; `subject` are those that a row can be about, and
    `particular` the names and identifiers among them. `marks` are negations ("not") and other words that turn a
    statement, each with the word that follows. `directions` are (pair of opposites, side), `past` the verbs in -ed.
    """

    terms: frozenset[str]
    sequence: tuple[str, ...]
    words: tuple[str, ...]
    exact: tuple[str, ...]
    names: frozenset[str]
    gist: tuple[str, ...]
    subject: frozenset[str]
    particular: frozenset[str]
    marks: tuple[tuple[str, str], ...]
    directions: frozenset[tuple[int, int]]
    past: frozenset[str]


# A row is compared with many others, so its fingerprint is needed again and again; it has 130 bytes for a character.
@cached_up_to(250_000)
def fingerprint(text: str) -> Fingerprint:
    """Return the fingerprint of a row's text, without its label and its notes about older rows."""
    plain = _plain(text)
    sequence = tuple(terms(plain))
    spelled = tuple(word.casefold() for word in _WORD.findall(plain)) or (plain.strip(),)
    keys = [_key(word) for word in spelled]
    names = frozenset(_names(plain))
    gist = _gist(sequence)
    subject = frozenset(gist) - _GENERAL
    return Fingerprint(
        terms=frozenset(sequence),
        sequence=sequence,
        words=spelled,
        exact=tuple(sorted(whole.casefold() for whole in _WHOLE.findall(plain) if _EXACT.search(whole))),
        names=names,
        gist=gist,
        subject=subject,
        particular=frozenset(term for term in subject if term in names or _EXACT.search(term)),
        marks=tuple(sorted(_marks(keys))),
        directions=frozenset(_SIDES[key] for key in keys if key in _SIDES),
        past=frozenset(key for word, key in zip(spelled, keys, strict=True) if word.endswith("ed") and word != key),
    )


def terms_of(text: str) -> frozenset[str]:
    """Return the `terms` of a text's fingerprint alone, at an eighth of the time."""
    return frozenset(terms(_plain(text)))


def gist_of(text: str) -> tuple[str, ...]:
    """Return the `gist` of a text's fingerprint alone, at a quarter of the time."""
    return _gist(terms(_plain(text)))


def gist_of_plain_words(text: str) -> set[str]:
    """Return the part of `gist_of` that comes from words of plain letters, at a fifth of the time."""
    words = {word.strip(_PUNCTUATION) for word in without_notes(without_label(text)).split()}
    plain = (word for word in words if len(word) <= MAX_TERM and word.isascii() and word.isalpha())
    return {term for word in plain for term in _gist_of_word(word)}


@lru_cache(20_000)
def _gist_of_word(word: str) -> tuple[str, ...]:
    return _gist(terms(_spelled_out(word)))


def _plain(text: str) -> str:
    return _spelled_out(unicodedata.normalize("NFKC", without_notes(without_label(text))))


def _gist(sequence: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_SYNONYMS.get(term, term) for term in sequence if term not in _LIGHT))


def _spelled_out(text: str) -> str:
    """Return a text with the negations that are part of a word (don't, n'utilise) as words of their own."""
    for short, long in _SHORT_FORMS:
        text = short.sub(long, text)
    return text


def _marks(keys: Sequence[str]) -> Iterator[tuple[str, str]]:
    follows = ""
    for key in reversed(keys):
        if mark := _MARKS.get(key):
            yield mark, follows
        if key not in STOP_WORDS[ENGLISH] and key not in _LIGHT:
            follows = _SYNONYMS.get(key, key)


def _names(text: str) -> Iterator[str]:
    """Yield the capitalised words that are not the first of a sentence."""
    for match in _WORD.finditer(text):
        word = match[0]
        before = text[max(0, match.start() - 3) : match.start()].rstrip(" ")[-1:]
        opens = not before or before in _OPENS_SENTENCE
        if word[1:] != word[1:].lower() or (word[0].isupper() and len(word) > 1 and not opens):
            yield _key(word.casefold())


def same_fact(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two rows state the same fact in nearly the same words, in the same order.

    One may say a little more than the other. Two rows that each have a word of their own state different facts.
    """
    if one.exact != other.exact or one.marks != other.marks:
        return False
    if min(len(one.terms), len(other.terms)) < _SHORT:
        return one.terms == other.terms and one.words == other.words
    return (
        _jaccard(one.terms, other.terms) >= SAME_WORDS
        and not _contradict(one, other)
        and not (_own(one.terms, other.terms) and _own(other.terms, one.terms))
        and _shared(one.sequence, other.terms) == _shared(other.sequence, one.terms)
    )


def may_be_same_fact(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether rows with these terms may state the same fact; most pairs are told apart by that alone."""
    return one == other or _jaccard(one, other) >= SAME_WORDS


def same_meaning(one: Fingerprint, other: Fingerprint, cosine: float, *, least: float = SAME_MEANING) -> bool:
    """Whether one row is a paraphrase of the other; `cosine` is that of their embeddings, `least` its minimum.

    Both must consist of the same terms (small words and a few synonyms aside), in the same order, except for
    circumstances that one states first ("In spring …"), and for active and passive.
    """
    return (
        cosine >= least
        and one.exact == other.exact
        and _jaccard(one.terms, other.terms) >= _LITTLE_SHARED
        and (_is_worded_alike(one, other) or _is_passive_of(one, other) or _is_passive_of(other, one))
    )


def says_the_same(one: Fingerprint, other: Fingerprint, cosine: float | None) -> bool:
    """Whether two rows say the same, in nearly the same words or, where both have a vector, as a paraphrase."""
    return same_fact(one, other) or (cosine is not None and same_meaning(one, other, cosine))


def same_subject(newer: Fingerprint, older: Fingerprint) -> float:
    """Return from 0 to 1 how far two rows have one subject.

    The share of the older one's subject that the newer names has a weight of 2/3, the reverse 1/3; numbers, identifiers
    and names count twice.
    """
    shared = newer.subject & older.subject
    if not shared:
        return 0.0
    of_older = _weight(older, shared) / _weight(older, older.subject)
    of_newer = _weight(newer, shared) / _weight(newer, newer.subject)
    return (2 * of_older + of_newer) / 3


def _weight(row: Fingerprint, shared: frozenset[str]) -> int:
    return len(shared) + len(shared & row.particular)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / max(1, len(one) + len(other) - shared)


def _contradict(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two rows name different people or things, opposites, or different times."""
    names = one.names - other.names - other.terms and other.names - one.names - one.terms
    times = (one.past ^ other.past) & one.terms & other.terms
    return bool(names or times) or _opposite(one.directions, other.directions)


def _opposite(one: frozenset[tuple[int, int]], other: frozenset[tuple[int, int]]) -> bool:
    if one == other:
        return False
    both = {pair for pair, _ in one} & {pair for pair, _ in other}
    return any(pair in both for pair, _ in one ^ other)


def _own(one: Iterable[str], other: Iterable[str]) -> bool:
    """Whether one has terms that the other lacks; a pair of CJK characters counts only if the other lacks one of its
    characters."""
    missing = set(one).difference(other)
    characters = set("".join(other)) if missing else set[str]()
    return any(term[0] < _FIRST_CJK or not characters.issuperset(term) for term in missing)


def _shared(sequence: Iterable[str], other: Iterable[str]) -> list[str]:
    within = set(other)
    return [term for term in sequence if term in within]


def _is_worded_alike(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two rows have the same gist, negations and directions in the same order."""
    if one.marks != other.marks or _contradict(one, other):
        return False
    return one.gist == other.gist or _is_turned(one, other) or _is_turned(other, one)


def _is_turned(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether one begins with the circumstances that the other ends with."""
    if one.words[0] not in _OPENERS or other.words[0] in _OPENERS:
        return False
    return any((*one.gist[at:], *one.gist[:at]) == other.gist for at in range(1, len(one.gist)))


def _is_passive_of(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether one says "B is done by A" where the other says "A does B"."""
    extra = Counter(mark for mark, _ in one.marks if mark != "was")
    extra.subtract(mark for mark, _ in other.marks if mark != "was")
    only_by = {mark: count for mark, count in extra.items() if count} == {"by": 1}
    return only_by and not _opposite(one.directions, other.directions) and _is_swapped(one.gist, other.gist)


def _is_swapped(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two sequences are equal when the parts before and after one term are swapped."""
    return any((*one[at + 1 :], one[at], *one[:at]) == other for at in range(1, len(one) - 1))
