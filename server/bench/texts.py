"""Rows and questions to measure with: made-up sentences in which few words are frequent and most are rare."""

import random
from collections.abc import Iterator, Sequence
from itertools import cycle

from esker.server.core.text.tokens import estimate_tokens

_SYLLABLES = "ka lo mi ren tas vol ber din fes gul har jon kel mar nop pir qua sol tem wex".split()
_WORDS = 4_000
# Characters of a turn are log-normal, as a sample of real conversations showed.
_MEDIAN = 113
_SHORTEST = 40
_FREQUENT = "the we our server deploy test always never because when uses on in to and is for with".split()


class Writer:
    """Makes up sentences; a seed always gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)  # noqa: S311 - nothing here is secret
        made = {"".join(self._draw.choices(_SYLLABLES, k=self._draw.randint(2, 4))) for _ in range(_WORDS)}
        self._words = sorted(made)
        # Zipf's law: a word is used in proportion to 1 / rank.
        self._weights = [1 / rank for rank in range(1, len(self._words) + 1)]

    def sentence(self) -> str:
        """Return a sentence of eight to thirty words."""
        words = self._draw.choices(self._words, self._weights, k=self._draw.randint(5, 20))
        words += self._draw.choices(_FREQUENT, k=self._draw.randint(3, 10))
        self._draw.shuffle(words)
        return f"{' '.join(words).capitalize()}."

    def turn(self) -> str:
        """Return a text as long as a turn of a conversation: 136 characters on average, a few much longer."""
        length = max(_SHORTEST, round(self._draw.lognormvariate(0, 0.6) * _MEDIAN))
        text = self.sentence()
        while len(text) < length:
            text = f"{text} {self.sentence()}"
        return text[:length]

    def counted_sentences(self, number: int) -> list[dict[str, object]]:
        """Return sentences with their tokens."""
        sentences = [self.sentence() for _ in range(number)]
        return [{"content": content, "tokens": estimate_tokens(content)} for content in sentences]

    def questions(self, about: Sequence[str]) -> Iterator[str]:
        """Yield questions about the texts in turn, without end; repeats are rare."""
        return map(self.question, cycle(about))

    def question(self, about: str) -> str:
        """Return a question that shares some words with a text."""
        words = about.replace(".", "").lower().split()
        return " ".join(["what", "about", *self._draw.sample(words, k=min(6, len(words)))]) + "?"
