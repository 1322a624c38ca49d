"""The relevance of a text to a query, from keyword search, vector search and its neighbours.

Keyword evidence is BM25 as a share of the highest possible score for the query's rarest words; vector evidence is the
z-score of the cosine among unrelated texts in this model and script. They are added: on four public sets of
conversations the sum found up to 11 points more of the evidence among the first ten than reciprocal ranks did
(docs/decisions/ranking.md), which ignore by how much one text is better than the next. The neighbours of a text in its
conversation add evidence, since an answer often makes sense only beside its question.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from statistics import fmean

from esker.server.core.recall.calibration import z_score_of_right
from esker.server.core.recall.evidence_weights import evidence_weights
from esker.server.core.records import Calibration

RAREST_WORDS = 6
"""How many of a query's rarest words make the highest possible score; no answer contains all words of a long query."""

MAX_UNKNOWN_WORDS = 2
"""The most query words without any occurrence in the pool that count: people use synonyms, and misspell."""
ENOUGH_TEXTS = 100
"""The fewest texts of a pool in which ordinary words occur, so that an unknown word is evidence of an unknown subject.

With 120 short rows, all questions of `esker eval` with made-up words were refused; smaller pools know too few words.
"""
# Exponent of the penalty for query words that occur nowhere in the pool. Chosen at 1.5, where one rare word in a short
# text is enough beside two unknown ones; with 1 a common word was enough, with 2 one misspelt word in a two-word query
# hides every answer.
_UNKNOWN_EXPONENT = 1.5

MAX_PARTS_OF_RARE_NAME = 20
"""An identifier in at most this many parts of texts is rare, and a text that contains it is an answer."""

CHANCE_PER_E_FOLD = 0.7
"""By chance, the nearest part of a text with e times as many parts is closer by this many deviations.

Without it long texts rank above short ones that say the same: in three long chats with an assistant the nearest part
alone found 55 of 100 pieces of evidence among the first ten, the first part alone 61, and this 64.
"""
MOST_WORDS = 1.5
"""The most keyword evidence for one text, as a share: repeating the words does not make it more of an answer."""
# The floor of keyword evidence (a share) without vector search.
_WORDS_FLOOR = 0.07
# The z-score of the best of n unrelated texts. For questions about one set of conversations that were asked of another,
# three in four stay below _CHANCE + _CHANCE_PER_LOG · ln n, from 25 texts to 6,000.
_CHANCE = 1.0
_CHANCE_PER_LOG = 0.46
# The lowest floor, even among a few texts, as a share of the z-score of right answers; higher: fewer answers.
_LEAST_OF_RIGHT = 0.65
# The floor of a weaker model among few texts, as the same share; it rises with the number of texts.
_BASE_OF_RIGHT = 0.45
# Tokens of a text for which neighbours count in full; for one twice as long they count half. A short text makes sense
# only beside its question, and a long one is similar to many questions.
_SHORT = 50
# A score of ½ is the floor; two floors are 0.88, three 0.98.
_STEEPNESS = 2.0
_WEIGHTS = evidence_weights()


@dataclass(frozen=True, slots=True)
class Signals:
    """The results of both searches for one text: `keyword` is 0 if no word is shared, `cosine` None without a vector.

    `named`: the text contains a rare identifier of the query.
    """

    keyword: float
    cosine: float | None
    named: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """Turns signals into relevance: the calibration for the query, and the number of texts that were searched.

    `by_meaning`: vector search took part. `word_factor`, 0 to 1, scales keyword evidence without vector evidence.
    `with_vectors` is the share of the texts with words of the query that have a vector, and `usual` the mean cosine of
    those. While vectors are missing, meaning counts less by this share, and a text without a vector has the usual
    cosine: otherwise it would rank below all others, and recall would find less than keyword search alone.
    """

    calibration: Calibration
    texts: int
    by_meaning: bool = True
    word_factor: float = 1.0
    with_vectors: float = 1.0
    usual: float | None = None
    _floor: float = field(init=False)

    def __post_init__(self) -> None:
        """Compute the floor, which is the same for all texts."""
        object.__setattr__(self, "_floor", self._floor_of_evidence())

    def knowing(self, signals: Collection[Signals]) -> "Scale":
        """Return the scale for the results of a query, of which some have no vector yet."""
        cosines = [each.cosine for each in signals if each.keyword > 0]
        known = [cosine for cosine in cosines if cosine is not None]
        if len(known) == len(cosines):
            return self
        return replace(self, with_vectors=len(known) / len(cosines), usual=fmean(known) if known else None)

    def relevance(self, own: Signals, around: float = 0.0) -> float:
        """Return the evidence for a text as a multiple of the floor; most often the best unrelated text stays below 1.

        The evidence `around` it counts at most as much as its own, so neighbours alone never make an answer. A rare
        identifier of the query adds 1, so that a text which contains it is an answer and ranks above others.
        """
        return self._by_evidence(own, around) + (1.0 if own.named else 0.0)

    def _by_evidence(self, own: Signals, around: float) -> float:
        alone = self._words(own) + self._meaning(own)
        evidence = alone + min(around, max(alone, 0.0))
        by_words = self.word_factor * evidence / _WORDS_FLOOR
        if not self.by_meaning:
            return by_words
        relevance = evidence / self._floor
        # A text without a vector can reach the floor by its words alone, but no more than the floor.
        return relevance if own.cosine is not None else max(relevance, min(1.0, by_words))

    def around(self, neighbours: Iterable[Signals], tokens: int) -> float:
        """Return the evidence that the words of neighbours add to a text of `tokens` tokens.

        Their meaning adds none: what is said next is near the question too, and so pushed up the turns beside it.
        """
        words = sum(map(self._words, neighbours))
        return share_of_neighbours(tokens) * _WEIGHTS.neighbour_words * words

    @property
    def _weight(self) -> float:
        """The weight of vector search, 0 to 1."""
        return self.calibration.weight * self.with_vectors

    def _words(self, signals: Signals) -> float:
        # With the full weight of vector search, a shared word alone never reaches the floor.
        doubt = 1 - self._weight if self.by_meaning else 0.0
        return (1 - doubt * (1 - self.word_factor)) * min(signals.keyword, MOST_WORDS)

    def _meaning(self, signals: Signals) -> float:
        if signals.cosine is not None:
            return self._weight * _WEIGHTS.deviation * self.calibration.standing_out(signals.cosine)
        if self.usual is None or not signals.keyword:
            return 0.0
        return self._weight * _WEIGHTS.deviation * max(0.0, self.calibration.standing_out(self.usual))

    def _floor_of_evidence(self) -> float:
        weight = self._weight
        least = _LEAST_OF_RIGHT * z_score_of_right(self.calibration)
        chance = _CHANCE + _CHANCE_PER_LOG * math.log(self.texts + 1)
        # A weaker model scores right answers lower, so its floor rises less with the number of texts.
        base = _BASE_OF_RIGHT * z_score_of_right(self.calibration)
        z_score = max(least, base + weight**2 * max(0.0, chance - base))
        return max(weight * _WEIGHTS.deviation * z_score, _WORDS_FLOOR)


def share_of_neighbours(tokens: int) -> float:
    """Return how much neighbours count for a text of `tokens` tokens, 1 for a short one."""
    return min(1.0, _SHORT / max(1, tokens))


def word_factor(known: float, unknown: float) -> float:
    """Return the factor, 0 to 1, of keyword evidence for a query with words that occur nowhere in the pool.

    `known` and `unknown` are the weights of the query's words of either kind; at most MAX_UNKNOWN_WORDS unknown ones
    count. The factor is below 1 if the unknown words weigh more: a text that shares only a common word with the
    question is not an answer if the pool never mentions the question's subject.
    """
    return (known / unknown) ** _UNKNOWN_EXPONENT if known < unknown else 1.0


def word_factor_in(factor: float, texts: int) -> float:
    """Return `factor`, closer to 1 if the pool has fewer than ENOUGH_TEXTS texts.

    In a small pool most words are unknown, ordinary ones (`decide`, `last`) as well as names, so an unknown word says
    little.
    """
    return factor ** min(1.0, texts / ENOUGH_TEXTS)


def score(relevance: float) -> float:
    """Return a relevance as a score from 0 to 1; the floor is ½."""
    return 1 / (1 + math.exp(-_STEEPNESS * (relevance - 1)))
