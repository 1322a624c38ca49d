"""Three-way merge of a synchronised folder: no side's change is lost, and nothing is guessed."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.pool.sync_line import SyncLine
from esker.server.core.pool.sync_merge import Copy, claimed, decide

A, B, C = (SyncLine(text, "medium", False) for text in ("a", "b", "c"))
LINES = st.builds(SyncLine, st.sampled_from("abc"), st.sampled_from(("high", "low")), st.booleans())
SIDES = st.none() | LINES


@pytest.mark.parametrize(
    ("base", "file", "pool", "step"),
    [
        (A, A, A, "keep"),
        (A, B, A, "correct"),
        (A, A, B, "take"),
        (A, B, B, "keep"),
        (A, B, C, "conflict"),
        (A, None, A, "forget"),
        (A, None, B, "take"),
        (A, A, None, "drop"),
        (A, B, None, "conflict"),
        (A, None, None, "keep"),
        (None, None, A, "take"),
        (None, A, A, "keep"),
        (None, A, B, "conflict"),
        (None, A, None, "foreign"),
    ],
)
def test_the_side_that_is_behind_changes(
    base: SyncLine | None, file: SyncLine | None, pool: SyncLine | None, step: str
) -> None:
    assert decide(base and base.key, file, pool).step == step


def test_changes_of_different_parts_are_both_kept() -> None:
    pinned, urgent = SyncLine("a", "medium", True), SyncLine("a", "high", False)
    assert decide(A.key, urgent, pinned).line == SyncLine("a", "high", True)
    assert decide(A.key, B, urgent).line == SyncLine("b", "high", False)


@given(SIDES, SIDES, SIDES)
def test_no_change_of_a_person_is_lost(base: SyncLine | None, file: SyncLine | None, pool: SyncLine | None) -> None:
    decision = decide(base and base.key, file, pool)
    kept = decision.line if decision.step == "correct" else pool
    if file is not None and decision.step not in ("conflict", "foreign", "drop"):
        assert kept is not None
        parts = zip(base.key if base else (None,) * 3, file.key, kept.key, strict=True)
        assert all(now == ours for before, ours, now in parts if ours != before)
    if decision.step in ("drop", "forget"):
        assert base == (file or pool), "only what one side has not changed is deleted because the other deleted it"


@given(LINES, LINES)
def test_a_second_sync_has_nothing_to_do(base: SyncLine, pool: SyncLine) -> None:
    assert decide(pool.key, pool, pool).step == "keep"
    assert decide(base.key, pool, pool).step == "keep", "a sync that was killed before it noted what it did"


def test_unicode_forms_are_one() -> None:
    assert decide(None, SyncLine("é", "low", False), SyncLine("e\u0301", "low", False)).step == "keep"


def test_a_copied_bullet_that_was_changed_is_a_new_note() -> None:
    copies = [Copy("n.md", 0, B), Copy("n.md", 1, A)]
    claim = claimed(copies, A.key)
    assert claim is not None
    assert (claim.bullet, list(claim.new), list(claim.repeats)) == (copies[1], [copies[0]], [])


def test_of_equal_copies_the_pinned_one_counts() -> None:
    pinned = SyncLine("a", "medium", True)
    for copies in ([Copy("n.md", 0, A), Copy("p.md", 0, pinned)], [Copy("p.md", 0, pinned), Copy("n.md", 0, A)]):
        claim = claimed(copies, A.key)
        assert claim is not None
        assert (claim.bullet.path, len(claim.repeats), claim.new) == ("p.md", 1, ())


def test_two_changed_copies_are_not_guessed() -> None:
    for known in (A.key, None):
        assert claimed([Copy("n.md", 0, B), Copy("n.md", 1, C)], known) is None


def test_every_combination_is_decided() -> None:
    sides = (None, A, B, C)
    assert all(decide(base and base.key, *others).step for base, *others in product(sides, repeat=3))
