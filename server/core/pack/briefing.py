"""A briefing: what somebody who begins to work should know, within a number of tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from esker.server.core.conversation.records import Session
from esker.server.core.pack.records import PackRow
from esker.server.core.pack.rendering import LINE_END, MARK, TENTATIVE, fenced, local_date, unknown_line
from esker.server.core.projects import UnknownProject
from esker.server.core.records import Kind, Priority
from esker.server.core.text.folding import same_words_key
from esker.server.core.text.tokens import estimate_tokens, trim_to_tokens

TOKENS = 2_000
MIN_TOKENS = 100
# A task is told in at most this share of the tokens, and so is how to go on.
_SHARE = 4


@dataclass(frozen=True, slots=True)
class BriefedRow:
    """A row of a briefing; `pinned` ones were put there by a person."""

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
    """What a session is at, and how it goes on."""

    id: str
    client: str
    project: str | None
    thread_title: str | None
    current_task: str | None
    suggested_continuation: str | None
    last_sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class Briefing:
    """What is known of a project, or (None) of the pool, as `text` of so many tokens and in structure.

    `known` is False where there is nothing. `left_out` more rows were looked at and did not fit. Where nothing belongs
    to the project, it is the `unknown_project`, and the rows belong to none.
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
    """A text while it is written; `room` is what is left of its tokens."""

    room: int
    lines: list[str] = field(default_factory=list[str])

    def takes(self, *lines: str) -> bool:
        """Write lines if all of them fit; tell whether they do."""
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
    session: Session | None,
    tokens: int,
    unknown: UnknownProject | None = None,
) -> Briefing:
    """Return a briefing: what the session is at, then what is pinned, then the best rows, each wording once.

    A row that does not fit makes room for the next. `tokens` are at least MIN_TOKENS. Nothing belongs to a project that
    is `unknown`, so what is told is that of all projects.
    """
    where = "all projects" if unknown else f"project {fenced(project)}" if project else "this pool"
    page = _BudgetedText(tokens)
    if unknown:
        page.takes(trim_to_tokens(unknown_line(unknown), tokens // 2))
    elif not (pinned or best or session):
        page.takes(f"Nothing is known about {trim_to_tokens(where, tokens // 2)} yet.")
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


def _about(session: Session, project: str | None, tokens: int) -> list[str]:
    """Return a line for each thing that is known of a session, none of which costs more than `tokens`."""
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
    reserved = TENTATIVE if row.tentative else ""
    day = local_date(row.said_at, timezone)
    return f"* {MARK[row.priority]} {day} {fenced(row.content)}{reserved} [{row.id}{about}]"


def _briefed(row: PackRow, pinned: bool) -> BriefedRow:
    return BriefedRow(row.id, row.kind, row.priority, row.content, row.project, row.said_at, row.tentative, pinned)


def _session(session: Session | None) -> BriefedSession | None:
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
