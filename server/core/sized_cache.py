"""A cache whose size is the text that it was made from, so that long texts do not make it large."""

from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TypeVar

_T = TypeVar("_T")


def cached_up_to(characters: int) -> Callable[[Callable[[str], _T]], Callable[[str], _T]]:
    """Cache a pure function of one text, for texts of at most `characters` characters in total.

    The least recently used texts are dropped; a text that is longer by itself is not cached. Threads may call the
    function at the same time.
    """

    def decorate(work: Callable[[str], _T]) -> Callable[[str], _T]:
        known: OrderedDict[str, _T] = OrderedDict()
        lock, room = Lock(), characters

        @wraps(work)
        def cached(text: str) -> _T:
            nonlocal room
            with lock:
                if text in known:
                    known.move_to_end(text)
                    return known[text]
            made = work(text)
            with lock:
                if text not in known and len(text) <= characters:
                    known[text] = made
                    room -= len(text)
                while room < 0:
                    room += len(known.popitem(last=False)[0])
            return made

        return cached

    return decorate
