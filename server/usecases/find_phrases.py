"""Find phrases in texts, some at a time; long ones in a child process, so that no other request waits."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from esker.server.core.json_input import Json, characters
from esker.server.core.text.batching import by_size
from esker.server.core.text.phrases import Phrases
from esker.server.usecases.parts import Parts

_MOST_CHARACTERS = 2_000_000
"""Characters of texts that are searched at once, so that few are copied to the child process."""
_MOST_VALUES = 500


async def saying(parts: Parts, phrases: Phrases, values: Sequence[Json]) -> list[bool]:
    """Tell for each value whether a text or a key in it contains one of some phrases."""
    return [said async for some in _in_batches(parts, phrases, values) for said in some]


async def any_saying(parts: Parts, phrases: Phrases, values: Sequence[Json]) -> bool:
    """Tell whether a text or a key in one of the values contains one of some phrases; it searches no further."""
    async with aclosing(_in_batches(parts, phrases, values)) as batches:
        async for some in batches:
            if any(some):
                return True
    return False


async def _in_batches(parts: Parts, phrases: Phrases, values: Sequence[Json]) -> AsyncGenerator[list[bool]]:
    measured = ((value, characters(value)) for value in values)
    for some in by_size(((each, each[1]) for each in measured), _MOST_VALUES, _MOST_CHARACTERS):
        long = sum(length for _, length in some)
        yield await parts.processes.run(long, _saying, phrases, [value for value, _ in some])


def _saying(phrases: Phrases, values: Sequence[Json]) -> list[bool]:
    return [phrases.found_in_json(value) for value in values]
