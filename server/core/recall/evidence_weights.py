"""The weights of the kinds of evidence in recall, from a file that is fitted to published questions."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_suffix(".toml")
"""The weights in force; `python -m evals ranking --write` writes them."""


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """How much each kind of evidence counts.

    `deviation` is the keyword evidence, as a share, that equals one deviation of the cosine. `neighbour_words` is the
    share of a neighbour's keyword evidence that is added to a short text.
    """

    deviation: float
    neighbour_words: float


def read_weights(file: Path) -> EvidenceWeights:
    """Return the weights of a file."""
    return EvidenceWeights(**tomllib.loads(file.read_text(encoding="utf-8")))


@cache
def evidence_weights() -> EvidenceWeights:
    """Return the weights in force."""
    return read_weights(FILE)
