"""Histories of sessions without a name in the database: for a server that was started again, and for others beside it.

Only the latest of each session is there. Earlier ones, by which forks are known, are in the memory of a process.
"""

from collections.abc import Sequence

from esker.server.core.records import Principal
from esker.server.gateway.identity import KnownTurn, place_of
from esker.server.usecases.binding import parts_for
from esker.server.usecases.parts import Parts
from esker.server.usecases.session_histories import keep_history, session_with_history


async def stored_session(parts: Parts, who: Principal, owner: str, turns: Sequence[KnownTurn]) -> str | None:
    """Return the name of the session whose conversation some turns continue; None if none is. Raises EskerError."""
    marks = [place_of(owner, turn.history) for turn in reversed(turns)]
    return await session_with_history(parts_for(parts, who), who.pool_id, marks)


async def store_history(parts: Parts, who: Principal, session_id: str, owner: str, turns: Sequence[KnownTurn]) -> None:
    """Store the history of a session as its latest. Raises EskerError."""
    answered = next((turn.history for turn in reversed(turns) if turn.role == "assistant"), "")
    marks = place_of(owner, turns[-1].history), place_of(owner, answered)
    await keep_history(parts_for(parts, who), who.pool_id, session_id, *marks)
