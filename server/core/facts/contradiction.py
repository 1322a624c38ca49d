"""Whether one row says the opposite of another about the same thing."""

from esker.server.core.facts.same_fact import Fingerprint

# Minimum share of their subjects, without the judging verbs, that two rows about the same thing have in common.
_SAME_THING = 0.6
_NEGATION = "not"


def negates(row: Fingerprint) -> bool:
    """Whether a row denies something."""
    return any(mark == _NEGATION for mark, _ in row.marks)


def denied(row: Fingerprint) -> frozenset[str]:
    """Return the terms that a row denies or gives up; a row that denies an action denies all of its terms."""
    follow = {follows for mark, follows in row.marks if mark == _NEGATION}
    return row.terms if follow - row.subject else frozenset(follow)


def opposed(newer: Fingerprint, older: Fingerprint) -> bool:
    """Whether two rows name opposite sides of one pair of words, such as "left" and "right"."""
    return any((pair, side) not in older.directions for pair, side in _judged_by_both(newer, older))


def contradicts(newer: Fingerprint, older: Fingerprint) -> bool:
    """Whether two rows judge the same thing in opposite ways: "loves X" and "hates X", "do Y" and "never do Y"."""
    if set(newer.exact) != set(older.exact):
        return False
    opposite = opposed(newer, older)
    if not opposite and negates(newer) == negates(older):
        return False
    shared, all_of_it = newer.subject & older.subject, newer.subject | older.subject
    # A pair of opposites ("loves", "hates") always differs, one word on each side, so it does not count here.
    differing = len(all_of_it) - (2 if opposite else 0)
    return bool(shared) and len(shared) >= _SAME_THING * max(1, differing)


def _judged_by_both(newer: Fingerprint, older: Fingerprint) -> set[tuple[int, int]]:
    pairs = {pair for pair, _ in newer.directions} & {pair for pair, _ in older.directions}
    return {(pair, side) for pair, side in newer.directions if pair in pairs}
