"""Numbers of things, as people and models read them."""

_VOWELS = frozenset("aeiou")


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return how many there are of something, in words that fit the number: "1 memory", "2,000 memories".

    `one` is a noun, alone or behind other words. Where more follows the noun ("job waits"), `many` says it of several.
    """
    return f"{count:,} {one if count == 1 else many or _several(one)}"


def _several(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return f"{noun[:-1]}ies"
    return f"{noun}s"
