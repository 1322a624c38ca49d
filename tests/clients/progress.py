"""Shows on stderr where a run is: each trial as it begins, and each promise as soon as it was tried, with its time."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator

from tests.clients.promises import Outcome

MARKS = {True: "yes", False: "NO", None: "-"}


class Progress:
    """Counts the trials of a run."""

    def __init__(self, trials: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` tells seconds."""
        self._trials = trials
        self._clock = clock
        self._began = clock()
        self._number = 0

    def begin(self, trial: str) -> None:
        """Show that the next trial begins."""
        self._number += 1
        minutes, seconds = divmod(round(self._clock() - self._began), 60)
        _show(f"{self._number} of {self._trials}, after {minutes} min {seconds} s: {trial}")

    def repeat(self, trial: str) -> None:
        """Show that a trial whose promise was not kept is made again."""
        _show(f"Again: {trial}")

    def shown(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes of a trial, and show each one as it comes."""
        since = self._clock()
        for outcome in outcomes:
            now = self._clock()
            detail = f" ({outcome.detail})" if outcome.detail else ""
            _show(f"  {now - since:5.1f} s  {outcome.promise}: {MARKS[outcome.kept]}{detail}")
            since = now
            yield outcome


def _show(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
