"""Search texts for phrases, some at a time; long ones in a child process, so that no other request waits."""

from collections.abc import Iterator, Sequence

from esker.server.core.json_input import Json, characters
from esker.server.core.text.phrases import Phrases
from esker.server.usecases.parts import Parts

_MOST_CHARACTERS = 2_000_000
"""Characters after which the texts so far are searched, so that few are copied to the child process at once."""
_MOST_VALUES = 500


async def saying(parts: Parts, phrases: Phrases, values: Sequence[Json]) -> list[bool]:
    """Tell for each value whether a text or a key in it contains one of some phrases."""
    said: list[bool] = []
    for long, some in _slices(values):
        said += await parts.processes.run(long, _saying, phrases, some)
    return said


def _saying(phrases: Phrases, values: Sequence[Json]) -> list[bool]:
    return [phrases.found_in_json(value) for value in values]


def _slices(values: Sequence[Json]) -> Iterator[tuple[int, list[Json]]]:
    """Yield values, some at a time, with the number of their characters."""
    long, some = 0, list[Json]()
    for value in values:
        some.append(value)
        long += characters(value)
        if long >= _MOST_CHARACTERS or len(some) >= _MOST_VALUES:
            yield long, some
            long, some = 0, []
    if some:
        yield long, some
