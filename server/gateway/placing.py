"""The sessions of requests: as their clients name them, else those whose conversations they continue.

A session without a name is in the database before its first request is sent on, since its second one may come to
another server.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from esker.server.core.errors import EskerError
from esker.server.core.records import Principal
from esker.server.gateway.backlog import key_of
from esker.server.gateway.identity import KnownTurn
from esker.server.gateway.keeping import Keeper, kept_here
from esker.server.gateway.reading import ModelRequest
from esker.server.gateway.records import Caller, Turn
from esker.server.gateway.sessions import Histories, Place, new_session, owner_of
from esker.server.gateway.stored_histories import begin_stored_session, stored_session
from esker.server.usecases.binding import bound_project, check_client
from esker.server.usecases.open_session import SessionRequest
from esker.server.usecases.parts import Parts

log = logging.getLogger(__name__)

# Seconds that a request waits for its session.
_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PlacedRequest:
    """The session of a request, and its turns if they were needed to find it."""

    session: SessionRequest
    is_fork: bool
    turns: Sequence[KnownTurn]


class Placing:
    """Finds the sessions of requests, and begins new ones."""

    def __init__(self, parts: Parts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper
        self._histories = Histories()
        # Conversations that are looked up now, by their owner and history: a client may repeat a request.
        self._looking: dict[tuple[str, str], asyncio.Task[Place]] = {}

    async def close(self) -> None:
        """Wait for sessions that begin."""
        await asyncio.gather(*self._looking.values(), return_exceptions=True)

    async def placed(self, who: Principal, read: ModelRequest) -> PlacedRequest:
        """Return the session of a request. Raises Forbidden for a client or project that the key is not for."""
        caller = read.caller
        check_client(who, caller.client)
        turns: Sequence[KnownTurn] = ()
        place = Place(caller.session_name) if caller.session_name else None
        if place is None or read.mode == "manage":
            turns = await asyncio.to_thread(read.known_turns)
        if place is None:
            place = await self._found(who, read, turns)
        return PlacedRequest(_session(who, caller, place.session), place.is_fork, turns)

    def note(self, who: Principal, read: ModelRequest, session: str, turns: Sequence[KnownTurn]) -> None:
        """Remember the history of a session as its latest; `turns` are those of a request and of its answer."""
        self._histories.note(_owner(who, read.caller), session, turns)

    def note_summary(self, who: Principal, read: ModelRequest, session: str, summary: Sequence[Turn]) -> None:
        """Remember a summary of a session, with which its client goes on instead of the history."""
        self._histories.note_summary(_owner(who, read.caller), session, summary)

    async def _found(self, who: Principal, read: ModelRequest, turns: Sequence[KnownTurn]) -> Place:
        if not turns:
            return Place(new_session())
        owner = _owner(who, read.caller)
        place = self._histories.place(owner, turns, read.conversation.turns)
        if place and not place.is_fork:
            self._histories.note(owner, place.session, turns)
            return place
        key = owner, turns[-1].history
        looking = self._looking.get(key)
        if looking is None:
            looking = self._looking[key] = asyncio.create_task(self._begun(who, read, turns, place))
            looking.add_done_callback(lambda _: self._looking.pop(key, None))
        # A client that goes away ends its request alone.
        return await asyncio.shield(looking)

    async def _begun(self, who: Principal, read: ModelRequest, turns: Sequence[KnownTurn], fork: Place | None) -> Place:
        """Return the stored session of a conversation that this process does not know, or begin one."""
        owner = _owner(who, read.caller)
        place = fork
        try:
            async with asyncio.timeout(_SECONDS):
                known = None if fork else await stored_session(self._parts, who, owner, turns)
                place = place or Place(known or new_session())
                if known is None:
                    place = await self._stored(who, read, turns, place)
        except (EskerError, TimeoutError) as error:
            log.warning("A conversation is known to this process alone: %s", error or "the database did not answer")
        place = place or Place(new_session())
        self._histories.note(owner, place.session, turns)
        return place

    async def _stored(self, who: Principal, read: ModelRequest, turns: Sequence[KnownTurn], place: Place) -> Place:
        """Begin the session of a place in the database; return the place of the one that another server has begun."""
        asked, owner = _session(who, read.caller, place.session), _owner(who, read.caller)
        session = await begin_stored_session(self._parts, who, kept_here(asked), owner, turns, is_fork=place.is_fork)
        self._keeper.know(key_of(who, replace(asked, external_id=session.external_id)), session)
        return place._replace(session=session.external_id)


def _session(who: Principal, caller: Caller, name: str) -> SessionRequest:
    return SessionRequest(caller.client, name, project=bound_project(who, caller.project), cwd=caller.cwd)


def _owner(who: Principal, caller: Caller) -> str:
    return owner_of(who, caller.client, who.project or caller.project)
