"""Plain searches beside Esker: known answers, and the figures of docs/evals.md on published data sets."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.progress import Progress

from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery, Turn, checked
from evals.retrieval.floors import BM25, DENSE, RRF, Bm25Index, bm25s, floors, fuse
from evals.retrieval.formats.beam import read_beam
from evals.retrieval.formats.madial import read_madial_en, read_madial_zh
from evals.retrieval.formats.qmsum import read_qmsum
from evals.retrieval.metrics import recall

with_bm25s = pytest.mark.skipif(bm25s() is None, reason="bm25s is not installed")


@pytest.fixture
def foreign(request: pytest.FixtureRequest) -> Path:
    """A published data set with marked evidence; its tests are skipped if it is missing."""
    folder = Path(str(request.config.getoption("--data"))) / "retrieval"
    if not folder.is_dir():
        pytest.skip(f"there are no conversations in {folder}")
    return folder


def test_a_fusion_adds_reciprocal_ranks() -> None:
    # 5 and 7 are first and second, 3 and 9 third in one list only; ties are ordered by position.
    assert fuse([[5, 7, 9], [7, 5, 3]]) == [5, 7, 3, 9]
    # 1 and 3: 1/61 + 1/63 = 0.032266. 2: 2/62 = 0.032258.
    assert fuse([[1, 2, 3], [3, 2, 1]]) == [1, 3, 2]


@with_bm25s
def test_words_are_stemmed_stop_words_dropped_and_bigrams_of_characters_matched() -> None:
    words = Bm25Index(
        ["The deployments failed.", "It is what it is.", "用 docker 部署容器", "deploying again and deployed"]
    )
    assert set(words.rank("deployment").places) == {0, 3}
    assert words.rank("what is it").places == [1]
    assert words.rank("部署").places == [2]
    assert words.rank("the a an").places == []


def test_floors_answer_every_query_and_never_abstain() -> None:
    turns = (Turn(id="1", text="We adopted a whippet."), Turn(id="2", text="The kiln broke.", speaker="Mia"))
    query = DataSetQuery(id="q", text="Which dog did they get?", evidence=("1",))
    found = floors(DataSet("d", (Conversation("c", turns, (query,)),)), Progress(disable=True))
    assert found.keys() == {"c/q"}
    assert found["c/q"].keys() == ({DENSE, BM25, RRF} if bm25s() else {DENSE})
    dense = found["c/q"][DENSE]
    assert (dense.hits, dense.abstained) == (("1", "2"), False)
    assert dense.covers == (frozenset({"1"}), frozenset({"2"}))


# Published data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "path", "conversations", "turns", "with_evidence", "unanswerable"),
    [
        pytest.param(read_beam, "beam-100k", 20, 5_094, 355, 40, marks=pytest.mark.slow),
        (read_madial_en, "madial-bench", 1, 160, 160, 0),
        (read_madial_zh, "madial-bench", 1, 171, 160, 0),
        pytest.param(read_qmsum, "qmsum", 70, 40_841, 481, 0, marks=pytest.mark.slow),
    ],
)
def test_every_turn_and_query_of_the_data_is_read(
    foreign: Path,
    read: Callable[[Path], DataSet],
    path: str,
    conversations: int,
    turns: int,
    with_evidence: int,
    unanswerable: int,
) -> None:
    data = checked(read(foreign / path))
    queries = [query for conversation in data.conversations for query in conversation.queries]
    assert (len(data.conversations), data.turns) == (conversations, turns)
    assert sum(bool(query.evidence) for query in queries) == with_evidence
    assert sum(not query.answerable for query in queries) == unanswerable


@with_bm25s
@pytest.mark.parametrize(
    ("read", "path", "expected"),
    [
        pytest.param(read_beam, "beam-100k", 0.421, marks=pytest.mark.slow),
        (read_madial_en, "madial-bench", 0.505),
        (read_madial_zh, "madial-bench", 0.521),
        pytest.param(read_qmsum, "qmsum/test.jsonl", 0.146, marks=pytest.mark.slow),
    ],
)
def test_plain_bm25_finds_the_documented_share_of_the_evidence(
    foreign: Path, read: Callable[[Path], DataSet], path: str, expected: float
) -> None:
    shares: list[float] = []
    for conversation in read(foreign / path).conversations:
        words = Bm25Index([turn.words for turn in conversation.turns])
        for query in conversation.queries:
            if query.evidence:
                places = words.rank(query.text).places
                shares.append(recall([{conversation.turns[place].id} for place in places], query.evidence, 10))
    assert np.mean(shares) == pytest.approx(expected, abs=0.002)
