"""The agreement of an approximate search with an exact one."""

import pytest

from esker.server.core.pool.index_agreement import agreement

EXACT = [0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2]


@pytest.mark.parametrize(
    ("exact", "approximate", "share"),
    [
        (EXACT, EXACT, 1.0),
        (EXACT, [score for score in EXACT if score != 0.7], 0.9),
        (EXACT, EXACT[5:], 0.5),
        (EXACT, [], 0.0),
        # Three texts, one of them not found.
        ([0.9, 0.8, 0.7], [0.9, 0.7], 2 / 3),
        # Copies of a text count for each other.
        ([0.9] * 10, [0.9] * 10 + [0.1], 1.0),
        ([], [], 1.0),
    ],
)
def test_agreement_is_the_share_of_the_nearest_that_was_found(
    exact: list[float], approximate: list[float], share: float
) -> None:
    assert agreement(exact, approximate) == pytest.approx(share)
