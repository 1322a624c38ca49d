"""Figures that hold for the bundled embedding model; all tests of core that load it."""

import pytest

from esker.server.core.facts.retelling import retells, retold_print
from esker.server.core.recall.calibration import calibrate
from esker.server.providers.local_embedder import LocalEmbedder
from tests.unit.test_calibration import ANSWERS, QUESTIONS
from tests.unit.test_retelling import RETOLD_FACTS


async def test_retold_facts_are_recognised_by_the_bundled_model(minilm: LocalEmbedder) -> None:
    await minilm.load()
    vectors = iter(await minilm.embed([text for pair in RETOLD_FACTS for text in pair]))
    missed: list[tuple[str, str]] = []
    for one, other in RETOLD_FACTS:
        cosine = sum(a * b for a, b in zip(next(vectors), next(vectors), strict=True))
        if not retells(retold_print(one), retold_print(other), cosine):
            missed.append((one, other))
    assert missed == []


async def test_the_bundled_model_has_the_documented_calibration(minilm: LocalEmbedder) -> None:
    await minilm.load()
    found = calibrate(await minilm.embed(QUESTIONS), await minilm.embed(ANSWERS))
    figures = {script: (c.mean, c.deviation, c.weight) for script, c in found.items()}
    assert figures["english"] == pytest.approx((0.038, 0.077, 1.0), abs=0.02)
    assert figures["european"] == pytest.approx((0.404, 0.090, 0.0), abs=0.03)
    assert figures["cyrillic"] == pytest.approx((0.547, 0.080, 0.0), abs=0.03)
    assert figures["chinese"] == pytest.approx((0.560, 0.088, 0.0), abs=0.03)
    assert figures["japanese"] == pytest.approx((0.541, 0.070, 0.0), abs=0.03)
    assert figures["korean"] == pytest.approx((0.554, 0.156, 0.0), abs=0.03)
