"""Known answers: questions made from a text of memory, so that the right answer is known.

A question is a few words of its text, in their order, sometimes with a date, as a person asks who remembers a little of
it. A question in other words is harder to answer: these questions measure whether memory can be found at all, not how
well it understands.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from esker.server.core.records import Tier
from esker.server.core.text.labels import without_label
from esker.server.core.text.terms import Word, telling_words
from esker.server.core.words.scripts import CJK

QuestionKind = Literal["identifier", "name", "date", "rare"]
WAYS: tuple[QuestionKind, ...] = ("identifier", "name", "date", "rare")
"""How a question is made: around an identifier or a proper name, with a date, or of the rarest words."""

_MOST_WORDS: Mapping[QuestionKind, int] = {"identifier": 2, "name": 3, "date": 2, "rare": 3}
_FEWEST_WORDS = 4
# A word distinguishes a text if at most this many texts, or this share of all, contain it.
_FEW = 3
_SMALL_SHARE = 0.01
MOST_FEW = 1_000
"""Maximum number of texts that a distinguishing word occurs in, whatever the size of the pool."""
_LONGEST_WORD = 40
_SHORTEST_WORD = 3
# Characters of a text that are shown beside its question.
_SHOWN = 160
# Hashes, bare numbers and remains of escaped line ends, which users do not ask about.
_NEVER_ASKED = re.compile(r"(?=.*\d)[0-9a-f-]{8,}|[\d._:/-]+|.*[0-9a-f]{12,}.*|.*\\.*", re.IGNORECASE)
# In a script without spaces a word begins and ends at any character.
_BEGINS, _ENDS = rf"(?:(?<![^\W{CJK}])|(?=[{CJK}]))", rf"(?:(?![^\W{CJK}])|(?<=[{CJK}]))"
_OPENS_SENTENCE = frozenset('.!?:;\n•→—("“„«`*#')


@dataclass(frozen=True, slots=True)
class MemoryText:
    """The text of a row or passage, and when it was said."""

    id: str
    tier: Tier
    content: str
    said_at: datetime


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """A question, the way it was made, and the id and excerpt of the text that answers it."""

    query: str
    way: QuestionKind
    id: str
    tier: Tier
    text: str


def known_answers(
    texts: Sequence[MemoryText],
    frequencies: Mapping[Tier, Mapping[str, int]],
    sizes: Mapping[Tier, int],
    *,
    limit: int,
    seed: int,
) -> list[KnownAnswer]:
    """Return at most `limit` questions about these texts, in their order; each is made in the least used way possible.

    `frequencies` has the number of texts of a tier that contain a term, counted to at least `MOST_FEW + 1`, `sizes` the
    number of texts. A text that is too short or has no distinguishing word makes no question. The same texts and seed
    make the same questions.
    """
    made: list[KnownAnswer] = []
    made_so = Counter[QuestionKind]()
    for text in texts:
        if len(made) >= limit:
            break
        few = min(MOST_FEW, max(_FEW, round(_SMALL_SHARE * sizes.get(text.tier, 0))))
        words = _candidates(text.content, frequencies.get(text.tier, {}))
        found = _first_query(text, words, sorted(WAYS, key=lambda way: made_so[way]), few, seed)
        if found:
            made.append(found)
            made_so[found.way] += 1
    return made


def in_one_line(content: str, words: Sequence[str]) -> str:
    """Return a text on one line: all of it, or an excerpt around the first of these words.

    They match whole words in any case: "on" does not match "conversation".
    """
    line = " ".join(content.split())
    if len(line) <= _SHOWN:
        return line
    any_word = "|".join(map(re.escape, words))
    found = re.search(f"{_BEGINS}(?:{any_word}){_ENDS}", line, re.IGNORECASE) if words else None
    first = found.start() if found else 0
    start = max(0, first - _SHOWN // 4)
    # Begin with a whole word if possible.
    start = line.find(" ", start, first) + 1 or start if start else 0
    end = start + _SHOWN
    return f"{'…' if start else ''}{line[start:end].strip()}{'…' if end < len(line) else ''}"


def _first_query(
    text: MemoryText, words: Sequence["_CandidateWord"], ways: Sequence[QuestionKind], few: int, seed: int
) -> KnownAnswer | None:
    for way in ways:
        draw = random.Random(f"{seed} {text.id}")  # noqa: S311 - not a secret
        if chosen := _chosen(words, way, few, draw):
            query = " ".join([*chosen, f"on {_day(text.said_at)}"] if way == "date" else chosen)
            return KnownAnswer(query, way, text.id, text.tier, in_one_line(text.content, chosen))
    return None


def terms_of(texts: Sequence[MemoryText]) -> dict[Tier, set[str]]:
    """Return, by tier, the terms whose number of texts `known_answers` needs."""
    found: dict[Tier, set[str]] = {"memory": set(), "passage": set()}
    for text in texts:
        found[text.tier].update(term for word in telling_words(without_label(text.content)) for term in word.terms)
    return found


@dataclass(frozen=True, slots=True)
class _CandidateWord:
    """A word of a text, how many texts contain it, and whether it is a proper name."""

    word: Word
    frequency: int
    is_proper: bool


def _candidates(content: str, frequencies: Mapping[str, int]) -> list[_CandidateWord]:
    plain = without_label(content)
    return [
        _CandidateWord(word, max(1, min(frequencies.get(term, 1) for term in word.terms)), _is_proper(plain, word))
        for word in telling_words(plain)
    ]


def _can_be_asked(each: _CandidateWord) -> bool:
    spelled, is_word = each.word.spelled, len(each.word.terms) == 1
    if is_word and len(spelled) < _SHORTEST_WORD:
        return False
    return len(spelled) <= _LONGEST_WORD and not _NEVER_ASKED.fullmatch(spelled)


def _is_proper(text: str, word: Word) -> bool:
    """Return whether a word is capitalised without beginning a sentence."""
    before = text[max(0, word.start - 3) : word.start].rstrip(" ")[-1:]
    capital = word.spelled[:1].isupper() and word.spelled[1:].islower()
    return capital and bool(before) and before not in _OPENS_SENTENCE


def _chosen(words: Sequence[_CandidateWord], way: QuestionKind, few: int, draw: random.Random) -> list[str]:
    """Return the words of a question that a text answers, in its order; empty if it allows no such question.

    They are at most half of the text's words, and at most `few` texts contain the rarest of them.
    """
    most = min(_MOST_WORDS[way], len(words) // 2)
    rarest = sorted(filter(_can_be_asked, words), key=lambda each: (each.frequency, each.word.start))
    first = next((each for each in rarest if _can_lead(each, way)), None)
    if len(words) < _FEWEST_WORDS or first is None or rarest[0].frequency > few:
        return []
    # Draw from more than the rarest words, which are often odd ones.
    others = [each for each in rarest[: max(most + 1, len(rarest) // 3)] if each is not first]
    chosen = [first, *draw.sample(others, min(most - 1, len(others)))]
    if min(each.frequency for each in chosen) > few:
        chosen[-1] = rarest[0]
    return [each.word.spelled for each in sorted(chosen, key=lambda each: each.word.start)]


def _can_lead(each: _CandidateWord, way: QuestionKind) -> bool:
    """Return whether a question of this way can be made around a word."""
    if way == "identifier":
        return each.word.is_name
    return each.is_proper and not each.word.is_name if way == "name" else True


def _day(moment: datetime) -> str:
    day = moment.astimezone(UTC)
    return f"{day.day} {day:%B %Y}"


# Made-up words -------------------------------------------------------------------------------------------------------

_OPENINGS = ("br", "d", "dr", "f", "fl", "g", "gl", "j", "k", "kr", "m", "n", "pl", "qu", "sk", "t", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u", "oo", "ai")
_ENDINGS = ("b", "ck", "ft", "lm", "mp", "nd", "rg", "sk", "x", "zz")
# Bare words, identifiers, and questions whose other words are ordinary.
_QUESTIONS = (
    "{0} {1}",
    "Where does {0} keep the {1}?",
    "{0}-{number}",
    "Who repaired the {1} of {Name}?",
    "{0} {1}",
    "How often is the {0} {1} checked?",
    "{0}-{number}",
    "Which colour has the {1} in {Name}?",
    "{0} {1}",
    "What did {Name} decide about {1}?",
    "{0}-{number}",
    "Why was {Name} late for the {1}?",
)


def made_up_words(seed: int) -> Iterator[str]:
    """Yield made-up words without end; the same ones for a seed."""
    draw = random.Random(f"words {seed}")  # noqa: S311 - not a secret
    while True:
        syllables = [draw.choice(_OPENINGS) + draw.choice(_VOWELS) for _ in range(2)]
        yield "".join(syllables) + draw.choice(_ENDINGS)


def unanswerable(words: Sequence[str], seed: int) -> list[str]:
    """Return a question about each pair of these words, which no text contains."""
    draw = random.Random(f"questions {seed}")  # noqa: S311 - not a secret
    return [
        _QUESTIONS[n % len(_QUESTIONS)].format(*pair, Name=pair[0].capitalize(), number=draw.randrange(1_000, 9_999))
        for n, pair in enumerate(zip(words[::2], words[1::2], strict=False))
    ]
