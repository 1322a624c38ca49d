"""How much speaks for a text as an answer to a query.

Two searches each say something: BM25, as a share of what the most telling words of the query could give at most, and
the cosine, as the deviations by which it stands out from what unrelated texts have in this model and script. They are
added: on four sets of other people's conversations the sum found up to 11 points more of the evidence among the first
ten than reciprocal ranks did (docs/decisions/ranking.md), which forget by how much one text is better than the next.
What stands around a text in its conversation speaks for it, too: an answer often makes sense only with what it answers.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from esker.server.core.records import Calibration

TELLING_WORDS = 6
"""So many of a query's rarest words are enough to be about it; long queries hold more words than any answer has."""

MOST_UNHEARD = 2
# How many texts a pool has in which ordinary words have been said, so that an unheard one tells something. Of the
# questions of `esker eval` to 120 short rows all with made-up words were refused; a pool of some rows knows few words.
ENOUGH_TEXTS = 100
"""So many words of a query that nobody has ever said are counted: people have other words for a thing, and misspell."""
# How steeply known words count less where unheard ones weigh more. At 1.5 one word beside two unheard ones is enough if
# it is rare and the text short. At 1 common ones were, too; at 2 a question of two words must not misspell either.
_UNHEARD = 1.5

FEW_HOLD_A_NAME = 20
"""An identifier that so many parts of texts hold at most is asked for itself."""

# A deviation of the cosine counts as much as this share of the words.
_DEVIATION = 0.08
PARTS_BY_CHANCE = 0.7
"""By how many deviations the nearest of e times as many parts is nearer by chance.

Without it long texts come before short ones that say the same: of three long chats with an assistant the nearest part
alone found 55 of 100 pieces of evidence among the first ten, the first part alone 61, and this 64.
"""
# A text that repeats the words is not more of an answer.
_MOST_WORDS = 1.5
# Without vectors, the share of the words from which on a text is about the query.
_ENOUGH_WORDS = 0.07
# By how many deviations the best of n unrelated texts stands out. Of questions about one set of conversations that were
# asked of another, three in four stay below _BY_CHANCE + _A_FOLD · ln n, from 25 texts to 6,000.
_BY_CHANCE = 1.0
_A_FOLD = 0.46
# An answer stands out by this much even among a few.
_LEAST_OUT = 2.6
# What a neighbour adds of its own evidence by keyword and by meaning. Neighbours of neighbours added nothing.
_NEIGHBOUR_WORDS = 0.5
_NEIGHBOUR_MEANING = 0.15
# Neighbours count in full for a text of so many tokens, and half for one of twice as many: what is short makes sense
# only with what it answers, and a long answer is near to many questions.
_SHORT = 50
# A score of ½ is the floor; two floors are 0.88, three 0.98.
_STEEPNESS = 2.0


@dataclass(frozen=True, slots=True)
class Signals:
    """What both searches say of one text: `keyword` is 0 where no word is shared, `cosine` None without a vector.

    `named` says that it holds an identifier of the query that few others hold.
    """

    keyword: float
    cosine: float | None
    named: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """What evidence is measured by: what a cosine is worth for the query, and among how many texts was searched.

    `by_meaning` says whether the search by meaning took part. `told` is how much of what words give counts where they
    decide alone (`share_told`).
    """

    calibration: Calibration
    texts: int
    by_meaning: bool = True
    told: float = 1.0

    def relevance(self, own: Signals, around: float = 0.0) -> float:
        """Return the evidence for a text as a multiple of what is enough; the best of unrelated texts stays below 1.

        What stands around it counts at most as much as the text itself, so nothing is one by its place alone. Whatever
        holds an identifier that the query names is an answer, and stands before others by that.
        """
        return self._by_evidence(own, around) + (1.0 if own.named else 0.0)

    def _by_evidence(self, own: Signals, around: float) -> float:
        alone = self._words(own) + self._meaning(own)
        evidence = alone + min(around, max(alone, 0.0))
        by_words = self.told * evidence / _ENOUGH_WORDS
        if not self.by_meaning:
            return by_words
        relevance = evidence / self._floor()
        # What has no vector yet can be an answer by its words alone, but no better than they make it beside others.
        return relevance if own.cosine is not None else max(relevance, min(1.0, by_words))

    def around(self, neighbours: Iterable[Signals], tokens: int) -> float:
        """Return what the neighbours of a text of so many tokens add to the evidence for it."""
        return min(1.0, _SHORT / max(1, tokens)) * sum(
            _NEIGHBOUR_WORDS * self._words(signals) + _NEIGHBOUR_MEANING * max(0.0, self._meaning(signals))
            for signals in neighbours
        )

    def _words(self, signals: Signals) -> float:
        # Where meaning has its full say, a shared word is no answer without it anyway.
        unsure = 1 - self.calibration.weight if self.by_meaning else 0.0
        return (1 - unsure * (1 - self.told)) * min(signals.keyword, _MOST_WORDS)

    def _meaning(self, signals: Signals) -> float:
        if signals.cosine is None:
            return 0.0
        return self.calibration.weight * _DEVIATION * self.calibration.standing_out(signals.cosine)

    def _floor(self) -> float:
        weight = self.calibration.weight
        by_chance = max(_LEAST_OUT, _BY_CHANCE + _A_FOLD * math.log(self.texts + 1))
        return weight * _DEVIATION * by_chance + (1 - weight) * _ENOUGH_WORDS


def share_told(known: float, unheard: float) -> float:
    """Return how much of what the words of a text give counts where a query has words that nobody has ever said.

    `known` is what those words of the query weigh that somebody has said, `unheard` what the others do, of which
    MOST_UNHEARD count. It is 1 while the known ones weigh at least as much: a text with a common word of a question
    is no answer when what the question is about was never spoken of.
    """
    return (known / unheard) ** _UNHEARD if known < unheard else 1.0


def told_among(told: float, texts: int) -> float:
    """Return how much words count (`share_told`) in a pool of so many texts.

    In a small pool most words were never said, ordinary ones (`decide`, `last`) as well as names; that they are not
    known says little there. From ENOUGH_TEXTS on it counts in full.
    """
    return told ** min(1.0, texts / ENOUGH_TEXTS)


def score(relevance: float) -> float:
    """Return a relevance as a score from 0 to 1, which is ½ where there is just enough of it."""
    return 1 / (1 + math.exp(-_STEEPNESS * (relevance - 1)))
