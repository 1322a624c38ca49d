"""Which session a request belongs to, if its client does not say: the one whose history it continues."""

import json
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from esker.server.core.ids import GATEWAY_IDS
from esker.server.core.records import Principal
from esker.server.gateway.compactions import known_part, words_of
from esker.server.gateway.identity import KnownTurn
from esker.server.gateway.records import Turn

_MOST_HISTORIES = 50_000
# Turns in a row by which a conversation is known again whose beginning is left out.
_IN_A_ROW = 6
# Turns at the beginning of a conversation among which its summary is.
_MOST_BEFORE_SUMMARY = 3
_MOST_SUMMARIES = 1_000


class Place(NamedTuple):
    """A session by its client's name for it; `is_fork` says that it begins with turns of another one."""

    session: str
    is_fork: bool = False


class Histories:
    """The histories of conversations: a hash of each one that was sent, and the session that it was sent in.

    A request that continues the latest history of a session belongs to it, and so does one that has its latest turn:
    clients write some turns in another way when they resume. One that continues an earlier history is a fork or a
    rewind, and begins a session, unless all that it leaves out is a prompt that got no answer. One without a known
    history belongs to the session whose latest turns or whose summary it has.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._latest: dict[tuple[str, str], KnownTurn] = {}
        # The history up to the latest answer of each session, and the sessions by their latest turns in a row.
        self._answered: dict[tuple[str, str], str] = {}
        self._ends: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._summaries: OrderedDict[tuple[str, str], str] = OrderedDict()

    def place(self, owner: str, turns: Sequence[KnownTurn], said: Sequence[Turn] = ()) -> Place | None:
        """Return the session of the latest turns that are known, or of a summary in what was `said`; None without one.

        `owner` keeps apart what belongs to different pools, projects and clients.
        """
        if summarised := self._summarised(owner, said[:_MOST_BEFORE_SUMMARY]):
            # The prompt behind it may be that of another session, too, such as "go on".
            return summarised
        for place in range(len(turns) - 1, -1, -1):
            session = self._sessions.get((owner, turns[place].history))
            if session is None:
                continue
            latest = self._latest.get((owner, session))
            if latest and latest.said in {turn.said for turn in turns[place:]}:
                return Place(session)
            if self._answered.get((owner, session)) == turns[place].history:
                return Place(session)
            return Place(new_session(), is_fork=True)
        ends = (self._ends.get((owner, end)) for end in reversed(_ends(turns)))
        session = next(filter(None, ends), None)
        return Place(session) if session else None

    def note(self, owner: str, session: str, turns: Sequence[KnownTurn]) -> None:
        """Remember the history of a session as its latest."""
        if not turns:
            return
        latest = replace(turns[-1], content=())
        self._latest[owner, session] = latest
        answers = (turn.history for turn in reversed(turns) if turn.role == "assistant")
        self._answered[owner, session] = next(answers, "")
        for end in _ends(turns)[-1:]:
            self._ends[owner, end] = session
            self._ends.move_to_end((owner, end))
        if len(self._ends) > _MOST_HISTORIES:
            self._ends.popitem(last=False)
        self._sessions[owner, latest.history] = session
        self._sessions.move_to_end((owner, latest.history))
        while len(self._sessions) > _MOST_HISTORIES:
            (its_owner, history), forgotten = self._sessions.popitem(last=False)
            known = self._latest.get((its_owner, forgotten))
            if known and known.history == history:
                del self._latest[its_owner, forgotten]
                self._answered.pop((its_owner, forgotten), None)

    def _summarised(self, owner: str, turns: Sequence[Turn]) -> Place | None:
        """Return the session of which the user's turns repeat a summary, or None."""
        words = "\n".join(words_of(turn) for turn in turns if turn.role == "user")
        for (its_owner, part), session in reversed(self._summaries.items()):
            if its_owner == owner and part in words:
                return Place(session)
        return None

    def note_summary(self, owner: str, session: str, summary: Sequence[Turn]) -> None:
        """Remember a summary of a session, with which its client goes on instead of the history."""
        if part := known_part(summary):
            self._summaries[owner, part] = session
            self._summaries.move_to_end((owner, part))
        if len(self._summaries) > _MOST_SUMMARIES:
            self._summaries.popitem(last=False)


def _ends(turns: Sequence[KnownTurn]) -> list[str]:
    """Return what each few turns in a row are known by."""
    said = [turn.said for turn in turns]
    return [" ".join(said[place - _IN_A_ROW : place]) for place in range(_IN_A_ROW, len(said) + 1)]


def owner_of(who: Principal, client: str, project: str | None) -> str:
    """Return what keeps the conversations of different pools, projects and clients apart."""
    return json.dumps([who.pool_id, project, client])


def new_session() -> str:
    """Return a name for a session that has none."""
    return f"{GATEWAY_IDS}{uuid.uuid4().hex}"
