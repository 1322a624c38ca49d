"""Rules for the vectors of every embedder: the name of their space, their dimension and their length."""

import hashlib
import re

import numpy as np
from numpy.typing import NDArray

from esker.server.core.arrays import Vectors
from esker.server.core.errors import Misconfigured, TextRefused

MAX_DIMENSION = 4_000
"""Maximum dimension that pgvector's halfvec can hold and index."""
NO_DIRECTION = "The embedder returned a vector without a direction: of zeros, or of values that are not finite numbers."


def space_name(model: str, revision: str, dimension: int, prefix: str, query_prefix: str) -> str:
    """Return the readable name of a space, unique to its model, revision, dimension and prefixes.

    Rows and questions may have different prefixes.
    """
    slug = re.sub(r"[^a-z0-9]+", "_", model.lower().rstrip("/").rsplit("/", 1)[-1]).strip("_")[:28]
    identity = "\0".join((model, revision, prefix, query_prefix))
    return f"{slug or 'model'}_{hashlib.sha256(identity.encode()).hexdigest()[:8]}_{dimension}"


def storable(dimension: int) -> int:
    """Return a dimension that Postgres can hold. Raises Misconfigured for any other."""
    if not 1 <= dimension <= MAX_DIMENSION:
        raise Misconfigured(
            f"The embedding model has {dimension:,} dimensions; Postgres can hold {MAX_DIMENSION:,}.",
            hint="Choose a model with fewer.",
        )
    return dimension


def scaled(made: NDArray[np.floating]) -> Vectors:
    """Return the rows of a matrix, scaled to length 1. Raises TextRefused for a row without a direction."""
    lengths = np.sqrt(np.square(made, dtype=np.float64).sum(axis=1, keepdims=True))
    if not np.all((lengths > 0) & (lengths < np.inf)):
        raise TextRefused(NO_DIRECTION)
    return (made / lengths).astype(np.float32)
