"""Which messages of Claude Code a person took back by going back to an earlier prompt and asking something else.

Each line names the one that it follows, and a conversation that was taken back stays in the file beside the one that
took its place. That two lines follow the same one says nothing by itself: calls that run side by side do, and hooks.
Only two prompts that follow the same message, of which the earlier has nothing more said to it once the later is there,
are a prompt that was taken back and the one instead of it. What follows the one taken back goes with it.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from esker.server.agents.lines import JsonLine


@dataclass(slots=True, eq=False)
class _BranchTurn:
    """A prompt and what follows it: the turn before it in its branch, where it begins and ends in the file, and the
    names of its messages."""

    session: str
    before: "_BranchTurn | None"
    begins: int
    ends: int
    said: list[str] = field(default_factory=list[str])
    taken_back: bool = False


class Rewinds:
    """The lines of a file, as they follow each other."""

    def __init__(self) -> None:
        self._count = 0
        # For each line the message that it is, or the last one before it, and the turn that it is in.
        self._lines: dict[str, tuple[str, _BranchTurn | None]] = {}
        self._turns: list[_BranchTurn] = []
        self._instead: defaultdict[tuple[str, str], list[_BranchTurn]] = defaultdict(list)

    def note(self, session: str, line: JsonLine, *, said: bool, asked: bool) -> None:
        """Note a line; `said` tells whether it is a message, `asked` whether it is a person's prompt."""
        self._count += 1
        name, parent = line.get("uuid"), line.get("parentUuid") or line.get("logicalParentUuid")
        if not isinstance(name, str):
            return
        known = self._lines.get(name)  # a compaction writes again what it leaves as it is
        before, turn = known or self._lines.get(parent if isinstance(parent, str) else "", ("", None))
        if known is None:
            if asked:
                turn = _BranchTurn(session, turn, self._count, self._count)
                self._turns.append(turn)
                if before:
                    self._instead[session, before].append(turn)
            self._lines[name] = (name if said or not before or _is_compaction(line) else before, turn)
            if turn and said:
                turn.said.append(name)
        if turn:
            turn.ends = self._count

    def taken_back(self) -> dict[str, set[str]]:
        """Return the names of the messages that were taken back, by session."""
        for turn in reversed(self._turns):
            if turn.before:
                turn.before.ends = max(turn.before.ends, turn.ends)
        for turns in self._instead.values():
            for turn, later in pairwise(turns):
                turn.taken_back = turn.ends < later.begins
        found: defaultdict[str, set[str]] = defaultdict(set)
        for turn in self._turns:
            turn.taken_back |= turn.before is not None and turn.before.taken_back
            if turn.taken_back:
                found[turn.session].update(turn.said)
        return found


def _is_compaction(line: JsonLine) -> bool:
    """Tell whether a line begins the conversation anew: what follows it stands instead of nothing before it."""
    return line.get("isCompactSummary") is True or line.get("subtype") == "compact_boundary"
