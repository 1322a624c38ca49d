"""Histories of sessions without a name in the database: for a server that was started again, and for others beside it.

Only the latest of each session is there. Earlier ones, by which forks are known, are in the memory of a process.
"""

from collections.abc import Sequence

from esker.server.core.conversation.records import StoredSession
from esker.server.core.records import Principal
from esker.server.gateway.identity import KnownTurn, place_of
from esker.server.usecases.binding import parts_for
from esker.server.usecases.open_session import SessionRequest
from esker.server.usecases.parts import Parts
from esker.server.usecases.session_histories import begin_session, keep_history, session_with_history


async def stored_session(parts: Parts, who: Principal, owner: str, turns: Sequence[KnownTurn]) -> str | None:
    """Return the name of the session whose conversation some turns continue; None if none is. Raises EskerError."""
    return await session_with_history(parts_for(parts, who), who.pool_id, _continued(owner, turns))


async def store_history(parts: Parts, who: Principal, session_id: str, owner: str, turns: Sequence[KnownTurn]) -> None:
    """Store the history of a session as its latest. Raises EskerError."""
    await keep_history(parts_for(parts, who), who.pool_id, session_id, *_marks(owner, turns))


async def begin_stored_session(
    parts: Parts, who: Principal, asked: SessionRequest, owner: str, turns: Sequence[KnownTurn], *, is_fork: bool
) -> StoredSession:
    """Begin the session of some turns, unless another server has begun it meanwhile. Raises EskerError.

    A fork continues no session, and is known by its whole history alone.
    """
    latest, answered = _marks(owner, turns)
    known = [latest] if is_fork else _continued(owner, turns)
    return await begin_session(parts_for(parts, who), who.pool_id, asked, known, latest, answered)


def _continued(owner: str, turns: Sequence[KnownTurn]) -> list[str]:
    """Return the marks of all histories that some turns continue, the longest first."""
    return [place_of(owner, turn.history) for turn in reversed(turns)]


def _marks(owner: str, turns: Sequence[KnownTurn]) -> tuple[str, str]:
    """Return the mark of a whole history, and of the one up to its latest answer."""
    answered = next((turn.history for turn in reversed(turns) if turn.role == "assistant"), "")
    return place_of(owner, turns[-1].history), place_of(owner, answered)
