"""Notes with vectors that were given to them, as a worker would have left them."""

import math
import random
from collections.abc import Iterable, Sequence
from datetime import timedelta

import numpy as np

from esker.server.core.arrays import Vectors
from esker.server.core.records import Principal, Space
from esker.server.store import vectors
from esker.server.usecases.embed import register
from esker.server.usecases.parts import Parts
from esker.server.usecases.remember import Note, remember


def unit_vectors(count: int, dimension: int, seed: int) -> Vectors:
    """Return directions around a few centres, as texts about a few subjects have."""
    draw = random.Random(seed)  # noqa: S311 - the same ones every time
    centres = [[draw.gauss(0, 1) for _ in range(dimension)] for _ in range(20)]
    return matrix(_unit([value + draw.gauss(0, 0.7) for value in draw.choice(centres)]) for _ in range(count))


def matrix(rows: Iterable[Sequence[float]]) -> Vectors:
    """Return vectors as the rows of a matrix."""
    return np.array(list(rows), np.float32)


def _unit(vector: Sequence[float]) -> list[float]:
    norm = math.hypot(*vector)
    return [value / norm for value in vector]


async def note_with_vectors(
    parts: Parts, who: Principal, space: Space, made: Vectors, *, project: str | None = None
) -> None:
    """Write a note for each vector, and keep it as the note's."""
    await vectors.create_space(parts.database, space)
    await register(parts, space, or_retired=False)
    for first in range(0, len(made), 1_000):
        some = made[first : first + 1_000]
        written = [Note(f"Number {first + n} of {project} runs.", project=project) for n in range(len(some))]
        await remember(parts, who, written)
        async with parts.database.tenant(who.pool_id) as connection:
            batch = await vectors.claim(
                connection, space.name, parts.clock(), timedelta(0), tried=False, limit=len(some)
            )
            kept = [vector[None] for vector in some[: len(batch.rows)]]
            await vectors.store(connection, batch, batch.rows, kept, parts.clock())
