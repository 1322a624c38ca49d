"""Chooses the rows of a pack: pinned first, then by rank, within budgets that the rendered text keeps."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from esker.server.core.budgets import budgets
from esker.server.core.conversation.records import Group, StoredSession
from esker.server.core.pack.contradicted_rows import contradicted, newer_first
from esker.server.core.pack.reasons import PackSection, RowDecision, Why
from esker.server.core.pack.records import PackRow
from esker.server.core.pack.rendering import (
    CLOSE_GROUP,
    LINE_END,
    PackLines,
    RenderedRow,
    date_line,
    label_tokens,
    local_date,
    open_group,
    own_line,
    pool_line,
)
from esker.server.core.pack.walks import sort_key
from esker.server.core.text.folding import same_words_key

# Tokens of a section's two tags.
_SECTION_TOKENS = 24
# Tokens of the shortest line: its mark, its date and a word.
_SHORTEST_LINE = 8
_CLOSING_TOKENS = label_tokens(CLOSE_GROUP) + LINE_END
_DATE_TOKENS = label_tokens(date_line("2026-01-01")) + LINE_END
# Most rows in a row that do not fit, and most rows left out at all, before a pack counts as full: higher values fill
# the last gap better, and cost a search through a pool of a million rows.
_MOST_MISSES = 32
_MOST_LEFT_OUT = 2_000
# Most left-out rows that are recorded.
_MOST_TOLD = 100


@dataclass(frozen=True, slots=True)
class PackChoice:
    """The lines of a pack, why each row is in it (`reasons`, in the order of the text), and why others are not.

    `pins_left` pinned rows did not fit. If `settled`, more candidates would change nothing.
    """

    lines: PackLines
    reasons: Sequence[RowDecision]
    left_out: Sequence[RowDecision]
    pins_left: int
    settled: bool


def choose(
    pinned: Sequence[PackRow],
    candidates: Sequence[PackRow],
    own: Sequence[PackRow],
    groups: Mapping[str, Group],
    session: StoredSession,
) -> PackChoice:
    """Return the rows of a session's pack.

    The global budget is for `pinned` (at most half of it) and then for `candidates`, which must be in rank order; the
    session's budget is for `own`, in time order. Rows are shown whole or not at all, and each wording once; a row that
    does not fit is skipped. A row that a newer one contradicts says so, and follows that one.
    """
    contradicted_by = contradicted((*pinned, *candidates, *own))
    share = budgets(session.effective_context)
    pins = _Filling("global", "pinned", share.global_pack_tokens // 2 - _SECTION_TOKENS)
    for row in pinned:
        pins.offer(pool_line(row, session, contradicted=row.id in contradicted_by))
    room = share.global_pack_tokens - _SECTION_TOKENS - pins.spent
    best = _Filling("global", "rank", room, worded=pins.worded)
    for row in candidates:
        if best.settled:
            break
        best.offer(pool_line(row, session, contradicted=row.id in contradicted_by))
    local = _Filling("local", "rank", share.observation_tokens - _SECTION_TOKENS)
    _fill_local(local, own, groups, session.timezone, contradicted_by)
    lines, ranked = local.lines, newer_first((line.row for line in best.lines.values()), contradicted_by)
    pool = [*pins.lines.values(), *(best.lines[row.id] for row in ranked)]
    return PackChoice(
        PackLines(pool, [lines[row.id] for row in own if row.id in lines], groups),
        [
            *pins.reasons.values(),
            *(best.reasons[row.id] for row in ranked),
            *(local.reasons[row.id] for row in own if row.id in lines),
        ],
        [*pins.left_out, *best.left_out, *local.left_out][:_MOST_TOLD],
        sum(reason.why == "budget" for reason in pins.left_out),
        best.settled,
    )


@dataclass(slots=True)
class _Filling:
    """A part of a pack while it fills. `worded` maps a wording to the id of its row, or to None if that did not fit."""

    section: PackSection
    why: Why
    room: int
    worded: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    lines: dict[str, RenderedRow] = field(default_factory=dict[str, RenderedRow])
    reasons: dict[str, RowDecision] = field(default_factory=dict[str, RowDecision])
    left_out: list[RowDecision] = field(default_factory=list[RowDecision])
    spent: int = 0
    _looked_at: int = 0
    _misses: int = 0

    @property
    def settled(self) -> bool:
        """Return whether no more candidates are needed."""
        full = self.room - self.spent < _SHORTEST_LINE
        return full or self._misses >= _MOST_MISSES or len(self.left_out) >= _MOST_LEFT_OUT

    def offer(self, line: RenderedRow, heading: int = 0) -> bool:
        """Add a row if it fits with its `heading` (in tokens); return whether it was added."""
        self._looked_at += 1
        words, row = same_words_key(line.row.content), line.row
        if words in self.worded:
            like = self.worded[words]
            self._leave_out(line, "same_words" if like else "budget", like)
            return False
        fits = self.spent + line.tokens + heading <= self.room
        self.worded[words] = row.id if fits else None
        if not fits:
            self._misses += 1
            self._leave_out(line, "budget", None)
            return False
        self._misses = 0
        self.spent += line.tokens + heading
        self.lines[row.id] = line
        self.reasons[row.id] = self._reason(line, self.why, None)
        return True

    def _leave_out(self, line: RenderedRow, why: Why, like: str | None) -> None:
        self.left_out.append(self._reason(line, why, like))

    def _reason(self, line: RenderedRow, why: Why, like: str | None) -> RowDecision:
        row, rank = line.row, None if self.why == "pinned" else self._looked_at
        return RowDecision(row.id, self.section, why, like, rank, row.kind, row.priority, row.last_used_at, line.tokens)


def _fill_local(
    local: _Filling, own: Sequence[PackRow], groups: Mapping[str, Group], timezone: str, contradicted_by: Container[str]
) -> None:
    """Add the session's best rows; the first row under a heading also pays for its group's tags and its date.

    Rows of a group that are not neighbours in time get separate tags, so every row that begins a run pays.
    """
    headings: set[tuple[str, str]] = set()
    runs = _runs(own)
    for row in sorted(own, key=sort_key):
        if local.settled:
            break
        heading = (runs[row.id], local_date(row.said_at, timezone))
        cost = 0
        if heading not in headings:
            group = groups.get(row.group_id or "")
            cost = _DATE_TOKENS + (label_tokens(open_group(group)) + LINE_END + _CLOSING_TOKENS if group else 0)
        if local.offer(own_line(row, timezone, contradicted=row.id in contradicted_by), cost):
            headings.add(heading)


def _runs(own: Sequence[PackRow]) -> dict[str, str]:
    """Return, for each row, the id of the first row of its run: neighbours in time that belong to one group."""
    runs: dict[str, str] = {}
    first: PackRow | None = None
    for row in own:
        if first is None or first.group_id != row.group_id:
            first = row
        runs[row.id] = first.id
    return runs
