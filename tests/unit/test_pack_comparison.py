"""Two versions of a pack compared: which rows came and went, and why."""

from dataclasses import replace
from datetime import timedelta

from esker.server.core.pack.comparison import VersionRows, compared
from tests.support.records import NOON, memory

LATER = NOON + timedelta(hours=1)


def test_each_row_that_came_or_went_has_its_reason() -> None:
    old = replace(memory("mem_old"), created_at=NOON - timedelta(days=1))
    rows = {
        "mem_kept": replace(old, id="mem_kept"),
        "mem_new": replace(old, id="mem_new", created_at=NOON + timedelta(minutes=1)),
        "mem_up": replace(old, id="mem_up"),
        "mem_gone": replace(old, id="mem_gone", superseded_by="mem_new", superseded_at=LATER),
        "mem_past": replace(old, id="mem_past", valid_until=LATER),
        "mem_low": replace(old, id="mem_low", superseded_by="mem_x", superseded_at=LATER + timedelta(days=1)),
    }
    before = VersionRows(1, NOON, ["mem_gone", "mem_kept", "mem_past", "mem_low", "mem_forgotten"])
    found = compared(before, VersionRows(2, LATER, ["mem_up", "mem_new", "mem_kept"]), rows)
    assert [(each.id, each.reason) for each in found.added] == [("mem_up", "moved_up"), ("mem_new", "new")]
    assert [(each.id, each.reason) for each in found.removed] == [
        ("mem_gone", "superseded"),
        ("mem_past", "expired"),
        # It was superseded only after the newer version was frozen.
        ("mem_low", "outranked"),
        ("mem_forgotten", "forgotten"),
    ]
    assert found.kept == 1
