"""Rewinds in Claude Code: the messages that the user discarded by going back to an earlier prompt and asking anew.

Each line names its parent, and a discarded branch stays in the file beside the one that replaced it. Two lines with one
parent are not enough: parallel calls and hooks have that, too. Only if two prompts follow the same message, and the
earlier branch ends before the later begins, was the earlier one rewound, with everything after it.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from esker.server.agents.lines import JsonLine


@dataclass(slots=True, eq=False)
class _BranchTurn:
    """A prompt with what follows it: its parent, its first and last line, and the ids of its messages."""

    session: str
    parent_turn: "_BranchTurn | None"
    begins: int
    ends: int
    messages: list[str] = field(default_factory=list[str])
    rewound: bool = False


class Rewinds:
    """The tree of the lines of a file."""

    def __init__(self) -> None:
        self._count = 0
        # Line id → (its own id if it is a message, else that of the message before it; the turn it is in).
        self._lines: dict[str, tuple[str, _BranchTurn | None]] = {}
        self._turns: list[_BranchTurn] = []
        self._siblings: defaultdict[tuple[str, str], list[_BranchTurn]] = defaultdict(list)

    def note(self, session: str, line: JsonLine, *, has_content: bool, is_prompt: bool) -> None:
        """Record a line; `has_content`: it is a message, `is_prompt`: it is a prompt of the user."""
        self._count += 1
        name, parent = line.get("uuid"), line.get("parentUuid") or line.get("logicalParentUuid")
        if not isinstance(name, str):
            return
        known = self._lines.get(name)  # a compaction repeats the lines it keeps
        message, turn = known or self._lines.get(parent if isinstance(parent, str) else "", ("", None))
        if known is None:
            if is_prompt:
                turn = _BranchTurn(session, turn, self._count, self._count)
                self._turns.append(turn)
                if message:
                    self._siblings[session, message].append(turn)
            self._lines[name] = (name if has_content or not message or _is_compaction(line) else message, turn)
            if turn and has_content:
                turn.messages.append(name)
        if turn:
            turn.ends = self._count

    def rewound(self) -> dict[str, set[str]]:
        """Return the ids of the rewound messages, by session."""
        for turn in reversed(self._turns):
            if turn.parent_turn:
                turn.parent_turn.ends = max(turn.parent_turn.ends, turn.ends)
        for turns in self._siblings.values():
            for turn, later in pairwise(turns):
                turn.rewound = turn.ends < later.begins
        found: defaultdict[str, set[str]] = defaultdict(set)
        for turn in self._turns:
            turn.rewound |= turn.parent_turn is not None and turn.parent_turn.rewound
            if turn.rewound:
                found[turn.session].update(turn.messages)
        return found


def _is_compaction(line: JsonLine) -> bool:
    """Return whether a line restarts the conversation, so that nothing after it replaces anything before it."""
    return line.get("isCompactSummary") is True or line.get("subtype") == "compact_boundary"
