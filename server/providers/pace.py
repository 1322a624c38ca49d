"""How much text a model in this process is given at once, so that each call ends in seconds on a busy machine, too."""

SECONDS = 5.0
"""How long a call should take: its vectors are stored, and its priority may change, only when it has ended."""
_FIRST = 500
"""Characters of the first call: 0.2 s of processor time, but 20 s where other processes leave a hundredth of a core."""
_MOST = 1_000_000
_GROWTH = 4
"""The most times by which a call may be longer than the one before: that may have been fast by chance."""


class Pace:
    """The number of characters for the next call, from how long the last one took."""

    def __init__(self) -> None:
        self.characters = _FIRST

    def took(self, characters: int, seconds: float) -> None:
        """Note the duration of a call with this many characters."""
        fitting = int(characters * SECONDS / max(seconds, 1e-3))
        self.characters = max(1, min(fitting, self.characters * _GROWTH, _MOST))
