"""The evidence for each candidate of a question, as the server's own explanation of a recall has it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.server.core.recall.calibration import calibration_for
from esker.server.core.recall.relevance import MOST_WORDS, share_of_neighbours
from esker.server.core.records import Calibration, Calibrations
from esker.server.core.text.tokens import estimate_tokens
from esker.server.usecases.recall_request import MAX_LIMIT, MAX_QUERY_CHARACTERS
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery
from evals.retrieval.storing import StoredDataSet
from evals.serving import Server

FEATURES = ("words", "meaning", "words of neighbours")
"""The columns of a question's evidence. Meaning is in deviations, times the calibrated weight of the text's script."""


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with the evidence of its candidates: a row for each, with a column for each of FEATURES.

    `turns` are the candidates, `right` marks those that answer it, and `evidence` are all turns that do. Questions of
    one `group` are never divided between training and testing.
    """

    data: str
    group: str
    evidence: tuple[str, ...]
    turns: tuple[str, ...]
    right: NDArray[np.bool_]
    features: NDArray[np.float64]


def questions(
    server: Server, data: DataSet, stored: StoredDataSet, known: Calibrations, fewest: int
) -> Iterator[AskedQuestion]:
    """Ask each question that has evidence, and yield it with the evidence of its candidates.

    A set with fewer than `fewest` conversations is divided by its questions. Raises Unavailable, InvalidInput.
    """
    by_conversation = len(data.conversations) >= fewest
    for conversation in data.conversations:
        places = {turn.id: place for place, turn in enumerate(conversation.turns)}
        for query in conversation.queries:
            if not query.evidence:
                continue
            parts = _parts(server, stored, conversation, query)
            turns = tuple(turn for turn in places if turn in parts)
            yield AskedQuestion(
                data=data.name,
                group=f"{data.name}/{conversation.id}" + ("" if by_conversation else f"/{query.id}"),
                evidence=query.evidence,
                turns=turns,
                right=np.array([turn in query.evidence for turn in turns], dtype=np.bool_),
                features=_features(conversation, places, parts, calibration_for(query.text, known)),
            )


def _parts(
    server: Server, stored: StoredDataSet, conversation: Conversation, query: DataSetQuery
) -> dict[str, Mapping[str, Any]]:
    """Return the parts of the score of every candidate, by its turn."""
    body: dict[str, Any] = {"query": query.text[-MAX_QUERY_CHARACTERS:], "limit": MAX_LIMIT, "explain": True}
    body |= {"project": stored.traces.projects[conversation.id], "scope": "project"}
    answer = server.post("/v1/recall", body)
    found: dict[str, Mapping[str, Any]] = {}
    for one in (*answer["hits"], *answer["left_out"]):
        for turn in stored.traces.memories.get(one["id"], ()):
            found[turn] = one["parts"]
    return found


def _features(
    conversation: Conversation,
    places: Mapping[str, int],
    parts: Mapping[str, Mapping[str, Any]],
    calibration: Calibration,
) -> NDArray[np.float64]:
    own = {turn: _own(each, calibration) for turn, each in parts.items()}
    rows = [_with_neighbours(conversation, place, own) for turn, place in places.items() if turn in own]
    return np.array(rows, dtype=np.float64).reshape(-1, len(FEATURES))


def _own(parts: Mapping[str, Any], calibration: Calibration) -> tuple[float, float]:
    cosine = parts["cosine"]
    meaning = 0.0 if cosine is None else calibration.weight * calibration.standing_out(cosine)
    return min(parts["keyword"], MOST_WORDS), meaning


def _with_neighbours(conversation: Conversation, place: int, own: Mapping[str, tuple[float, float]]) -> Sequence[float]:
    """Return the evidence of a turn and of the turns beside it in its sitting."""
    turn = conversation.turns[place]
    beside = [conversation.turns[other] for other in (place - 1, place + 1) if 0 <= other < len(conversation.turns)]
    near = [own[other.id][0] for other in beside if other.session == turn.session and other.id in own]
    share = share_of_neighbours(estimate_tokens(turn.words))
    return *own[turn.id], share * sum(near)
