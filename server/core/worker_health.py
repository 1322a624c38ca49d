"""The health of the embedding worker of a server: what it does, whether it keeps dying, and how fast it is."""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from esker.server.core.redaction import redact

LOADING, RUNNING, WAITING, UNUSABLE = "loading its model", "running", "waiting", "cannot start"
_LONGEST_LINE = 300  # characters of a worker's output that a report repeats
_WINDOW = timedelta(minutes=5)
"""How far back the speed is measured; a higher value is steadier and slower to notice a change."""


def state_line(state: str, problem: str = "") -> str:
    """Return the line with which a worker tells its server its state, and the reason of `waiting` or `cannot start`."""
    return json.dumps({"state": state, "problem": problem})


def stored_line(pool_id: str, rows: int) -> str:
    """Return the line with which a worker tells its server how many texts of a pool have got their vectors."""
    return json.dumps({"pool": pool_id, "stored": rows})


@dataclass(slots=True)
class WorkerHealth:
    """The state that a worker told last, how often it died in a row, and the last line that it then printed."""

    state: str = LOADING
    problem: str = ""
    deaths: int = 0
    last_line: str = ""
    stored: deque[tuple[datetime, str, int]] = field(default_factory=deque[tuple[datetime, str, int]])

    def told(self, line: str, now: datetime) -> bool:
        """Take a line of a worker's output; return whether it was one of `state_line` or `stored_line`."""
        try:
            told = json.loads(line)
        except ValueError:
            return False
        match told:
            case {"state": str(state), "problem": str(problem)}:
                self.state, self.problem = state, redact(problem)[:_LONGEST_LINE]
            case {"pool": str(pool_id), "stored": int(rows)}:
                self.stored.append((now, pool_id, rows))
                while now - self.stored[0][0] > _WINDOW:
                    self.stored.popleft()
            case _:
                return False
        return True

    def died(self, printed: str) -> None:
        """Record a death; `printed` is the end of what the worker printed."""
        self.deaths += 1
        lines = [line for line in printed.splitlines() if line.strip()]
        self.last_line = redact(lines[-1].strip())[:_LONGEST_LINE] if lines else ""

    def recovered(self) -> None:
        """Forget the deaths of workers before this one."""
        self.deaths, self.last_line = 0, ""

    def rate(self, pool_id: str, now: datetime) -> float | None:
        """Return how many texts of a pool get their vectors in a second; None if too little is known."""
        seen = [(at, rows) for at, pool, rows in self.stored if pool == pool_id and now - at <= _WINDOW]
        if len(seen) < 2 or not self.is_running:
            return None
        # The work on the first of them began at an unknown time.
        seconds = (now - seen[0][0]).total_seconds()
        return sum(rows for _, rows in seen[1:]) / seconds if seconds > 0 else None

    @property
    def is_running(self) -> bool:
        """Whether it embeds, or would if there was a text."""
        return self.state == RUNNING and not self.deaths

    def __str__(self) -> str:
        if self.state == UNUSABLE:
            return f"{UNUSABLE}: {self.problem}"
        if self.deaths:
            times = "once" if self.deaths == 1 else f"{self.deaths} times in a row"
            return f"died {times}: {self.last_line or 'it printed nothing'}"
        return f"{self.state}: {self.problem}" if self.problem else self.state


def is_alive(state: str) -> bool:
    """Return whether a worker in this state, as text, will embed without anybody's help."""
    return state == "none" or state.startswith((LOADING, RUNNING, WAITING))


def explained(state: str) -> Mapping[str, str]:
    """Return the title and the help of a state, as text, in which texts get no vectors; empty if they do."""
    if state.startswith(UNUSABLE):
        return {
            "what": f"The embedding model cannot be used{state.removeprefix(UNUSABLE)}",
            "hint": "Install what is missing, or choose another model with ESKER_EMBEDDER, and restart the server.",
        }
    if state.startswith("died"):
        return {
            "what": f"The embedding worker of the server {state}",
            "hint": "Without it new rows are found by keyword only. `esker logs` or the server's standard error has the"
            " whole error.",
        }
    if state.startswith(WAITING):
        return {
            "what": f"The embedding worker is {state}",
            "hint": "It tries again every minute; new rows are found by keyword meanwhile.",
        }
    if state.startswith(LOADING):
        return {
            "what": f"The embedding worker is {state}.",
            "hint": "New rows are found by keyword until it is done; on a busy machine this takes minutes.",
        }
    return {}
