"""Why a Postgres does not start, read from its log: the reason in its own words, and what to do about it."""

from collections.abc import Sequence
from dataclasses import dataclass

_DAMAGED = (
    "Files of the database are missing or damaged: move the data directory away, and bring back a backup with"
    " `esker restore`."
)
_MEMORY = "Give it more memory; a container needs shared memory of its own (`docker run --shm-size=256m`)."
_FILE = "Mend the file: Esker itself never changes it."
# Parts of messages, in order: the first that occurs in the reason decides.
_HINTS = (
    ("shared memory", _MEMORY),
    ("Cannot allocate memory", _MEMORY),
    ("semaphores", _MEMORY),
    (" line ", _FILE),
    ("pg_hba.conf", _FILE),
    ("configuration file", _FILE),
    ("pg_control", _DAMAGED),
    ("WAL", _DAMAGED),
    ("checkpoint record", _DAMAGED),
    ("incompatible with server", _DAMAGED),
    ("invalid page", _DAMAGED),
    ("could not read", _DAMAGED),
)
_SEVERE = ("FATAL:", "PANIC:")


@dataclass(frozen=True, slots=True)
class StartFailure:
    """The reason that Postgres gives; `hint` is None for a reason that is not known here."""

    reason: str
    hint: str | None


def start_failure(lines: Sequence[str]) -> StartFailure:
    """Return the failure that the lines report which Postgres logged since its start."""
    reason = _reason([line.strip() for line in lines if line.strip()])
    return StartFailure(reason, next((hint for part, hint in _HINTS if part in reason), None))


def _reason(lines: Sequence[str]) -> str:
    severe = [n for n, line in enumerate(lines) if any(word in line for word in _SEVERE)]
    if not severe:
        # It ended before it could log as usual: the last line that says what it could not do.
        return next((line for line in reversed(lines) if "could not" in line), lines[-1] if lines else "unknown")
    last = lines[severe[-1]]
    if "contains errors" in last and severe[-1] > 0:
        last = lines[severe[-1] - 1]  # names the file, the line and the error
    return last.partition(next((w for w in (*_SEVERE, "LOG:") if w in last), ""))[2].strip() or last
