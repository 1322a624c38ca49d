"""A briefing: the memories an agent should know before it starts work, within a token budget."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from esker.server.core.conversation.records import StoredSession
from esker.server.core.pack.records import PackRow
from esker.server.core.pack.rendering import LINE_END, MARK, local_date, reservations, unknown_line
from esker.server.core.records import Kind, Priority
from esker.server.core.similar_projects import UnknownProject
from esker.server.core.text.fencing import fenced
from esker.server.core.text.folding import same_words_key
from esker.server.core.text.tokens import estimate_tokens, trim_to_tokens

TOKENS = 2_000
MIN_TOKENS = 100
# Each line about the session takes at most one part in this many of the tokens; a higher value leaves more to rows.
_SHARE = 4


@dataclass(frozen=True, slots=True)
class BriefedRow:
    """A row of a briefing; a person pinned the `pinned` ones."""

    id: str
    kind: Kind
    priority: Priority
    content: str
    project: str | None
    said_at: datetime
    tentative: bool
    pinned: bool


@dataclass(frozen=True, slots=True)
class BriefedSession:
    """The current task of a session and its suggested continuation."""

    id: str
    client: str
    project: str | None
    thread_title: str | None
    current_task: str | None
    suggested_continuation: str | None
    last_sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class Briefing:
    """Everything known about a project, or (None) about the pool, as `text` of `tokens` tokens and as records.

    `known` is False if nothing is known. `left_out` counts the rows that did not fit. If nothing belongs to the
    project, `unknown_project` describes it, and the rows come from all projects.
    """

    project: str | None
    known: bool
    text: str
    tokens: int
    session: BriefedSession | None
    rows: list[BriefedRow]
    left_out: int
    unknown_project: UnknownProject | None = None


@dataclass(slots=True)
class _BudgetedText:
    """A text while it is written; `room` is the number of tokens left."""

    room: int
    lines: list[str] = field(default_factory=list[str])

    def takes(self, *lines: str) -> bool:
        """Add lines if all of them fit; return whether they did."""
        cost = sum(estimate_tokens(line) + LINE_END for line in lines)
        if cost > self.room:
            return False
        self.room -= cost
        self.lines += lines
        return True


def brief(
    project: str | None,
    pinned: Sequence[PackRow],
    best: Sequence[PackRow],
    session: StoredSession | None,
    tokens: int,
    unknown: UnknownProject | None = None,
) -> Briefing:
    """Return a briefing: the session's task, then pinned rows, then the best rows, each wording once.

    A row that does not fit is skipped. `tokens` must be at least MIN_TOKENS. For an `unknown` project, the rows given
    are those of all projects.
    """
    where = "all projects" if unknown else f"project {fenced(project)}" if project else "this pool"
    page = _BudgetedText(tokens)
    if unknown:
        page.takes(trim_to_tokens(unknown_line(unknown), tokens // 2))
    elif not (pinned or best or session):
        page.takes(f"Nothing of high priority is known about {trim_to_tokens(where, tokens // 2)} yet.")
    if session:
        page.takes(*_about(session, project, tokens // _SHARE))
    timezone = session.timezone if session else "UTC"
    shown: list[BriefedRow] = []
    left_out, heading = 0, [f"What matters in {trim_to_tokens(where, tokens // _SHARE)}:"]
    for row, is_pinned in _once([*((row, True) for row in pinned), *((row, False) for row in best)]):
        if not page.takes(*heading, _line(row, project, timezone)):
            left_out += 1
            continue
        heading = []
        shown.append(_briefed(row, is_pinned))
    text = "\n".join(page.lines)
    known = bool(pinned or best or session)
    return Briefing(project, known, text, estimate_tokens(text), _session(session), shown, left_out, unknown)


def _once(rows: Iterable[tuple[PackRow, bool]]) -> Iterable[tuple[PackRow, bool]]:
    """Return rows without those that repeat the wording of an earlier one."""
    first: dict[str, tuple[PackRow, bool]] = {}
    for row, pinned in rows:
        first.setdefault(same_words_key(row.content), (row, pinned))
    return first.values()


def _about(session: StoredSession, project: str | None, tokens: int) -> list[str]:
    """Return the title, task and continuation of a session, a line each, of at most `tokens` tokens each."""
    day = f", {local_date(session.last_sent_at, session.timezone)}" if session.last_sent_at else ""
    elsewhere = f", project {fenced(session.project)}" if session.project and session.project != project else ""
    known = (
        (f"Latest session ({session.client}{day}{elsewhere})", session.thread_title or session.id),
        ("Current task", session.current_task),
        ("Suggested continuation", session.suggested_continuation),
    )
    return [trim_to_tokens(f"{label}: {fenced(said)}", tokens - LINE_END) for label, said in known if said]


def _line(row: PackRow, project: str | None, timezone: str) -> str:
    about = f", project {fenced(row.project)}" if row.project and row.project != project else ""
    day = local_date(row.said_at, timezone)
    return f"* {MARK[row.priority]} {day} {fenced(row.content)}{reservations(row)} [{row.id}{about}]"


def _briefed(row: PackRow, pinned: bool) -> BriefedRow:
    return BriefedRow(row.id, row.kind, row.priority, row.content, row.project, row.said_at, row.tentative, pinned)


def _session(session: StoredSession | None) -> BriefedSession | None:
    if session is None:
        return None
    return BriefedSession(
        id=session.id,
        client=session.client,
        project=session.project,
        thread_title=session.thread_title,
        current_task=session.current_task,
        suggested_continuation=session.suggested_continuation,
        last_sent_at=session.last_sent_at,
    )
