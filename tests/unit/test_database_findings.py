"""`esker doctor` says of each broken invariant what to do."""

import pytest

from esker.server.cli.database_findings import invariants
from esker.server.store.invariants import OF_POOLS, OF_SPACES, Violation
from esker.server.usecases.check_invariants import Checked


@pytest.mark.parametrize("name", [*OF_POOLS, *OF_SPACES])
def test_doctor_has_an_import_repeated_only_where_its_cut_off_part_may_be_the_cause(name: str) -> None:
    violation = Violation(name, {**OF_POOLS, **OF_SPACES}[name], ["mem_1"], complete=True)
    [finding] = invariants(Checked(["own"], 1, {"own": [violation]}))
    assert finding.status == ("warning" if name in OF_SPACES else "wrong")
    repeats = "repeat it with the same file" in (finding.hint or "")
    assert repeats == (name == "superseded_by_something")
