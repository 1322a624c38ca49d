"""Numbers of things, as people and models read them."""

_VOWELS = frozenset("aeiou")


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun in singular or plural: "1 memory", "2,000 memories".

    `one` is the singular and ends with the noun. If more words follow the noun ("job waits"), `many` is the plural.
    """
    return f"{count:,} {one if count == 1 else many or _several(one)}"


def _several(noun: str) -> str:
    if noun.endswith("y") and noun[-2:-1] not in _VOWELS:
        return f"{noun[:-1]}ies"
    return f"{noun}s"
