"""Why rows are in a pack or not, as it was when the pack was frozen."""

import json
import math
from datetime import timedelta

import pytest

from esker.server.core.pack.reasons import RowDecision, as_stored, explained
from esker.server.core.pack.records import Pack
from esker.server.core.ranking import pack_score
from esker.server.core.records import Kind, Priority
from tests.support.records import NOON

PACK = Pack("", "", 0, [], 0, "initial", NOON, 1)


def decision(kind: Kind = "note", priority: Priority = "high") -> RowDecision:
    """Return why a row that was last used two days before noon is in a pack."""
    return RowDecision("mem_1", "global", "rank", None, 3, kind, priority, NOON - timedelta(days=2), 21)


def test_reasons_come_back_from_storage_as_they_were() -> None:
    given = [
        decision(),
        RowDecision("mem_2", "local", "same_words", "mem_1", 4, "observation", "low", NOON, 9),
        RowDecision("mem_3", "global", "pinned", None, None, "manual", "medium", NOON, 12),
    ]
    stored = json.loads(json.dumps(as_stored(given)))
    found = explained(PACK, [one.id for one in given], stored)
    same = ("id", "section", "why", "like", "rank", "kind", "priority", "last_used_at", "tokens")
    assert [[getattr(row, name) for name in same] for row in found] == [[*one] for one in given]


@pytest.mark.parametrize(("kind", "bias"), [("note", 1.5), ("reflection", 1.3), ("observation", 1.0)])
@pytest.mark.parametrize(("priority", "weight"), [("high", 3), ("medium", 2), ("low", 1)])
def test_the_parts_of_a_score_add_up_to_the_score(kind: Kind, bias: float, priority: Priority, weight: float) -> None:
    [row] = explained(PACK, ["mem_1"], as_stored([decision(kind, priority)]))
    assert row.parts
    assert row.score is not None
    assert row.score == pack_score(kind, priority, row.last_used_at)
    assert (row.parts.priority, row.parts.kind) == (math.log(weight), math.log(bias))
    assert math.isclose(row.parts.priority + row.parts.kind + row.parts.last_use, row.score)
    assert row.parts.last_use == pytest.approx(math.log(2) * row.last_used_at.timestamp() / (7 * 86_400))


def test_a_pinned_row_has_no_score() -> None:
    [row] = explained(PACK, ["mem_1"], as_stored([decision("manual")]))
    assert (row.score, row.parts) == (None, None)


def test_the_age_of_a_row_is_counted_in_days_up_to_the_freezing_of_the_pack() -> None:
    [row] = explained(PACK, ["mem_1"], as_stored([decision()]))
    assert row.age_days == 2.0


def test_ids_and_stored_reasons_must_have_the_same_count() -> None:
    with pytest.raises(ValueError, match="shorter"):
        explained(PACK, ["mem_1", "mem_2"], as_stored([decision()]))
