"""A cross-encoder of sentence-transformers in this process."""

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from esker.server.core.errors import Misconfigured, RerankerDown
from esker.server.providers.folders import require_folder
from esker.server.providers.library_model import not_installed

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

# Texts between two checks whether the call was cancelled; larger batches are hardly faster on a CPU.
_TOGETHER = 4
# Architectures of cross-encoders; any other model would be loaded with an untrained head.
_JUDGING = ("ForSequenceClassification", "ForCausalLM")


class LocalReranker:
    """A model that runs on a thread of its own, so that it does not block the event loop."""

    lanes = 1

    def __init__(self, model: str, threads: int) -> None:
        """`model` is a folder or a name. Nothing is loaded yet."""
        self.name = Path(model).name if Path(model).is_dir() else model
        self._model = model
        self._threads = threads
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="reranker")
        self._loaded: CrossEncoder | None = None
        self._work: Future[list[float]] | None = None

    @property
    def busy(self) -> bool:
        """Return whether the thread is busy; it finishes a batch even after its call was cancelled."""
        return self._work is not None and not self._work.done()

    async def load(self) -> None:
        """Load the model in a thread, which takes seconds. Raises Misconfigured."""
        if self._loaded is None:
            self._loaded = await asyncio.get_running_loop().run_in_executor(self._executor, self._load)

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return a number for each text. Raises RerankerDown.

        After a cancellation, the thread stops at the end of its batch.
        """
        if self._loaded is None:
            raise RerankerDown("The reranking model is still loading.")
        given_up = Event()
        self._work = self._executor.submit(_scores, self._loaded, query, list(texts), given_up)
        try:
            return await asyncio.wrap_future(self._work)
        finally:
            given_up.set()

    async def close(self) -> None:
        """Do nothing: the model lives as long as the process."""

    def _load(self) -> "CrossEncoder":
        try:
            require_folder(self._model)
            model = _load_model(self._model, self._threads)
        except ModuleNotFoundError as error:
            raise not_installed(f"sentence-transformers:{self._model}", error) from error
        except (OSError, ValueError, ImportError) as error:
            raise self._unusable(f"cannot be loaded: {error}") from error
        kinds: list[str] = getattr(model.config, "architectures", None) or []
        if not any(kind.endswith(_JUDGING) for kind in kinds):
            raise self._unusable(f"is not a cross-encoder ({', '.join(kinds) or 'of no known kind'}).")
        if model.num_labels != 1:
            raise self._unusable(f"gives {model.num_labels} scores for a text instead of one.")
        return model

    def _unusable(self, why: str) -> Misconfigured:
        return Misconfigured(
            f"The reranking model {self._model!r} {why}",
            hint="Give ESKER_RERANKER the path of a folder that holds a cross-encoder of sentence-transformers.",
        )


def _scores(model: Any, query: str, texts: list[str], given_up: Event) -> list[float]:
    """Return the scores of texts, or of the first ones after a cancellation. Raises RerankerDown."""
    scores: list[float] = []
    for start in range(0, len(texts), _TOGETHER):
        if given_up.is_set():
            break
        pairs = [(query, text) for text in texts[start : start + _TOGETHER]]
        try:
            scores += map(float, model.predict(pairs, batch_size=_TOGETHER, show_progress_bar=False))
        except Exception as error:  # a model may raise any error
            raise RerankerDown(f"The reranking model failed: {type(error).__name__}: {error}") from error
    if not all(map(math.isfinite, scores)):
        raise RerankerDown("The reranking model gave a score that is not a number.")
    return scores


def _load_model(name: str, threads: int) -> "CrossEncoder":
    import torch  # noqa: PLC0415 - seconds of import time, wanted only by a process that reranks
    from sentence_transformers import CrossEncoder  # noqa: PLC0415
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    # A folder must never be looked up on a hub.
    return CrossEncoder(name, device="cpu", local_files_only=Path(name).is_dir())
