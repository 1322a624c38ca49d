"""Floors: the same questions, answered without Esker by searches of ten lines each.

Plain dense search (exact cosine of the bundled model), plain BM25 (bm25s with a Snowball stemmer, if installed) and
plain reciprocal rank fusion of the two, over the same words of the same turns.
"""

import asyncio
import importlib
import re
import time
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import Stemmer
from numpy.typing import NDArray
from rich.progress import Progress

from esker.server.core.arrays import Vectors
from esker.server.core.config.settings import Settings
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.library_model import LibraryModel
from esker.server.providers.local_embedder import LocalEmbedder
from evals.retrieval.asking import LIMIT, ArmReply
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery

DENSE, BM25, RRF = "plain dense", "plain bm25", "plain rrf"

_BATCH = 256
_RRF_K = 60
# Hits of each list that a fusion uses; lower ranks carry no information.
_RRF_DEPTH = 100
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}")
_NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class FloorRanking(NamedTuple):
    """The positions of documents, best first, and the milliseconds of the search."""

    places: list[int]
    ms: float


def bm25s() -> Any | None:
    """Return the library, which Esker itself does not need, or None if it is not installed."""
    try:
        return importlib.import_module("bm25s")
    except ImportError:
        return None


def floors(data: DataSet, shown: Progress) -> dict[str, dict[str, ArmReply]]:
    """Return the reply of each floor to each query, by the query's name."""
    threads = Settings().embed_threads
    embedder = LocalEmbedder(lambda: LibraryModel.loaded("bundled", threads, "sentence-transformers:bundled"))
    asyncio.run(embedder.load())
    task = shown.add_task("Computing floors", total=data.turns)
    found: dict[str, dict[str, ArmReply]] = {}
    for conversation in data.conversations:
        dense = Dense(embedder, [turn.words for turn in conversation.turns])
        words = Bm25Index([turn.words for turn in conversation.turns]) if bm25s() else None
        for query in conversation.queries:
            found[f"{conversation.id}/{query.id}"] = _replies(conversation, query, dense, words)
        shown.advance(task, len(conversation.turns))
    return found


def _replies(
    conversation: Conversation, query: DataSetQuery, dense: "Dense", words: "Bm25Index | None"
) -> dict[str, ArmReply]:
    by_meaning = dense.rank(query.text)
    found = {DENSE: by_meaning}
    if words:
        by_words = words.rank(query.text)
        fused = fuse([by_meaning.places[:_RRF_DEPTH], by_words.places[:_RRF_DEPTH]])
        found |= {BM25: by_words, RRF: FloorRanking(fused, by_meaning.ms + by_words.ms)}
    return {arm: _reply(conversation, ranked) for arm, ranked in found.items()}


def _reply(conversation: Conversation, ranked: FloorRanking) -> ArmReply:
    turns = [conversation.turns[place] for place in ranked.places[:LIMIT]]
    return ArmReply(
        hits=tuple(turn.id for turn in turns),
        covers=tuple(frozenset({turn.id}) for turn in turns),
        turns=tuple(turn.id for turn in turns),
        tokens=tuple(estimate_tokens(turn.words) for turn in turns),
        abstained=False,
        ms=ranked.ms,
    )


def fuse(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Return positions by the sum of 1 / (60 + rank) over rankings (Cormack and others 2009); ties: the lower one."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, start=1):
            scores[place] = scores.get(place, 0.0) + 1 / (_RRF_K + rank)
    return sorted(scores, key=lambda place: (-scores[place], place))


class Dense:
    """Documents by the cosine of their vectors to that of a query; the model truncates long ones."""

    def __init__(self, embedder: LocalEmbedder, documents: Sequence[str]) -> None:
        """Embed the documents, which must not be empty."""
        self._embedder = embedder
        batches = [documents[start : start + _BATCH] for start in range(0, len(documents), _BATCH)]
        self._vectors = np.concatenate([self._embedded(batch) for batch in batches])

    def rank(self, query: str) -> FloorRanking:
        """Return all documents, the nearest first."""
        began = time.perf_counter()
        [vector] = self._embedded([query])
        cosines: NDArray[np.float32] = self._vectors @ vector
        places = np.argsort(-cosines, kind="stable").tolist()
        return FloorRanking(places, 1_000 * (time.perf_counter() - began))

    def _embedded(self, texts: Sequence[str]) -> Vectors:
        return asyncio.run(self._embedder.embed(texts))


class Bm25Index:
    """Documents by BM25 (k1 = 1.5, b = 0.75) of their stems, without English stop words, and of CJK bigrams."""

    def __init__(self, documents: Sequence[str]) -> None:
        """Index the documents."""
        library = bm25s()
        assert library is not None  # the caller has checked
        self._stop: set[str] = set(library.tokenization.STOPWORDS_EN)
        self._stem: Callable[[str], str] = Stemmer.Stemmer("english").stemWord  # pyright: ignore
        self._index = library.BM25(k1=1.5, b=0.75)
        self._index.index([self._tokens(document) for document in documents], show_progress=False)

    def rank(self, query: str) -> FloorRanking:
        """Return the documents that share a stem with the query, the best first."""
        began = time.perf_counter()
        tokens = self._tokens(query)
        scores: NDArray[np.float32] = self._index.get_scores(tokens) if tokens else np.zeros(0, dtype=np.float32)
        places: list[int] = [int(place) for place in np.argsort(-scores, kind="stable") if scores[place] > 0]
        return FloorRanking(places, 1_000 * (time.perf_counter() - began))

    def _tokens(self, text: str) -> list[str]:
        runs = _WORD.findall(text.lower())
        return list(chain.from_iterable(map(self._of_run, runs)))

    def _of_run(self, run: str) -> list[str]:
        if _NO_SPACES.match(run):
            return [run[start : start + 2] for start in range(len(run) - 1)] or [run]
        return [] if run in self._stop else [self._stem(run)]
