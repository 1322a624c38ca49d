"""The pulse of the job runner: readiness tells when it has stopped moving."""

from datetime import UTC, datetime, timedelta

from esker.server.usecases.pulse import Pulse

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def stopped(pulse: Pulse, seconds: float) -> timedelta | None:
    """Return how long a runner has not moved, `seconds` later."""
    return pulse.stopped_for(NOW + timedelta(seconds=seconds))


def test_a_runner_that_has_not_moved_for_a_minute_and_a_half_has_stopped() -> None:
    pulse = Pulse()
    assert stopped(pulse, 1_000) is None, "it was never started"
    pulse.beat(NOW)
    assert (stopped(pulse, 89), stopped(pulse, 90)) == (None, timedelta(seconds=90))
    pulse.beat(NOW + timedelta(seconds=90))
    assert stopped(pulse, 100) is None


def test_a_runner_that_waits_for_a_slot_has_not_stopped() -> None:
    pulse = Pulse()
    pulse.beat(NOW, waits_for_slot=True)
    assert stopped(pulse, 10_000) is None
    pulse.beat(NOW)
    assert stopped(pulse, 10_000)
