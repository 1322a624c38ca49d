"""What is true of vectors whoever makes them: the name of their space, and that they have length 1."""

import hashlib
import math
import re

from esker.server.core.errors import Misconfigured, TextRefused

MAX_DIMENSION = 4_000
"""What pgvector's halfvec can hold and index."""
NO_DIRECTION = "The embedder gave a vector without a direction."


def space_name(model: str, revision: str, dimension: int, prefix: str, query_prefix: str) -> str:
    """Return the name of a space: readable, and different for any other model, revision, prefix or dimension.

    Rows and questions may have prefixes of their own.
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


def checked(vector: list[float]) -> list[float]:
    """Return a vector scaled to length 1. Raises TextRefused for one that has no direction."""
    norm = math.sqrt(sum(value * value for value in vector))
    if not math.isfinite(norm) or norm == 0:
        raise TextRefused(NO_DIRECTION)
    return [value / norm for value in vector]
