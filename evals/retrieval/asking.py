"""Asking: every question of a data set with each ranking, and the replies."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from esker.server.core.records import AskedTier, Ranking
from esker.server.core.text.tokens import estimate_tokens
from esker.server.usecases.recall_request import MAX_QUERY_CHARACTERS
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery
from evals.retrieval.traces import Traces
from evals.serving import Server

LIMIT = 20
"""Hits requested, as many as the deepest figure needs."""


@dataclass(frozen=True, slots=True)
class ArmReply:
    """The reply of one arm to one query: ids, covered turns and tokens of its hits, best first.

    `turns` are the covered turns, each once, in the order in which a reader of the hits meets them. `ms` is the time
    that the client waited.
    """

    hits: tuple[str, ...]
    covers: tuple[frozenset[str], ...]
    turns: tuple[str, ...]
    tokens: tuple[int, ...]
    abstained: bool
    ms: float


@dataclass(frozen=True, slots=True)
class QueryReplies:
    """A query with the reply of each arm; `cold_ms` is the time of a first recall, which is not scored."""

    conversation: str
    query: DataSetQuery
    replies: dict[str, ArmReply]
    cold_ms: float | None = None

    @property
    def id(self) -> str:
        """The name of the query in the data set."""
        return f"{self.conversation}/{self.query.id}"


@dataclass(frozen=True, slots=True)
class AskingOptions:
    """The server, arms and tier of the questions."""

    server: Server
    traces: Traces
    arms: Sequence[Ranking]
    tier: AskedTier | None = None

    def ask(self, data: DataSet) -> Iterator[QueryReplies]:
        """Yield each query with its replies. Raises Unavailable, InvalidInput."""
        for conversation in data.conversations:
            for query in conversation.queries:
                yield self._ask(conversation, query)

    def _ask(self, conversation: Conversation, query: DataSetQuery) -> QueryReplies:
        body = self._body(conversation, query)
        # Warm the caches (above all the vector of the query) first, so that they do not favour later arms.
        _, cold_ms = self._recall(body)
        said = [turn.id for turn in conversation.turns]
        replies = {arm: self._reply(body | {"ranking": arm}, said) for arm in self.arms}
        return QueryReplies(conversation.id, query, replies, cold_ms)

    def _body(self, conversation: Conversation, query: DataSetQuery) -> dict[str, Any]:
        """Return the request; of a long dialogue it has the end, which the next turn is about."""
        body = {"query": query.text[-MAX_QUERY_CHARACTERS:], "limit": LIMIT}
        body |= {"project": self.traces.projects[conversation.id], "scope": "project"}
        body |= {"tier": self.tier} if self.tier else {}
        return body | ({"as_of": query.asked_at.isoformat()} if query.asked_at else {})

    def _reply(self, body: dict[str, Any], said: Sequence[str]) -> ArmReply:
        """Return the reply to a request; `said` are the turns of the conversation in order."""
        answer, ms = self._recall(body)
        hits = answer["hits"]
        covers = tuple(self.traces.covered(self.server, hit) for hit in hits)
        return ArmReply(
            hits=tuple(hit["id"] for hit in hits),
            covers=covers,
            turns=tuple(dict.fromkeys(turn for covered in covers for turn in said if turn in covered)),
            tokens=tuple(estimate_tokens(hit["content"]) for hit in hits),
            abstained=answer["abstained"],
            ms=ms,
        )

    def _recall(self, body: dict[str, Any]) -> tuple[dict[str, Any], float]:
        """Return the answer and its milliseconds."""
        began = time.perf_counter()
        answer = self.server.post("/v1/recall", body)
        return answer, 1_000 * (time.perf_counter() - began)
