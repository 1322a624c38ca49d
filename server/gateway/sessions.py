"""Which session a request belongs to, if its client does not say: the one whose history it continues."""

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from esker.server.gateway.identity import KnownTurn
from esker.server.usecases.told_twice import GATEWAY_IDS

_MOST_HISTORIES = 50_000


class Place(NamedTuple):
    """A session by its client's name for it; `is_fork` says that it begins with turns of another one."""

    session: str
    is_fork: bool = False


class Histories:
    """The histories of conversations: a hash of each one that was sent, and the session that it was sent in.

    A request that continues the latest history of a session belongs to it, and so does one that has its latest turn:
    clients write some turns in another way when they resume. One that continues an earlier history is a fork or a
    rewind, and begins a session.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._latest: dict[tuple[str, str], KnownTurn] = {}

    def place(self, owner: str, turns: Sequence[KnownTurn]) -> Place | None:
        """Return the session of the latest turns that are known, or None if no turn is.

        `owner` keeps apart what belongs to different pools and clients.
        """
        for place in range(len(turns) - 1, -1, -1):
            session = self._sessions.get((owner, turns[place].history))
            if session is None:
                continue
            latest = self._latest.get((owner, session))
            if latest and latest.said in {turn.said for turn in turns[place:]}:
                return Place(session)
            return Place(new_session(), is_fork=True)
        return None

    def note(self, owner: str, session: str, turns: Sequence[KnownTurn]) -> None:
        """Remember the history of a session as its latest."""
        if not turns:
            return
        latest = replace(turns[-1], content=())
        self._latest[owner, session] = latest
        self._sessions[owner, latest.history] = session
        self._sessions.move_to_end((owner, latest.history))
        while len(self._sessions) > _MOST_HISTORIES:
            (its_owner, history), forgotten = self._sessions.popitem(last=False)
            known = self._latest.get((its_owner, forgotten))
            if known and known.history == history:
                del self._latest[its_owner, forgotten]


def new_session() -> str:
    """Return a name for a session that has none."""
    return f"{GATEWAY_IDS}{uuid.uuid4().hex}"
