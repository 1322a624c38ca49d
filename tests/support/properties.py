"""Prepares Hypothesis, which computes much before the first example of a process."""

from hypothesis import Phase, given, settings
from hypothesis import strategies as st


def draw_once() -> None:
    """Draw one text: Hypothesis then knows all characters, and the constants of the modules imported until now.

    This takes several seconds where nothing of it is on the disk, and processes that are forked afterwards inherit it.
    """
    _draw()


@settings(max_examples=1, database=None, phases=[Phase.generate])
@given(st.text())
def _draw(_: str) -> None:
    pass
