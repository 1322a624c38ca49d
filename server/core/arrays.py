"""The vectors of embedding models, as numpy arrays."""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""A vector of length 1."""
Vectors = NDArray[np.float32]
"""Vectors of length 1, as the rows of a matrix."""
