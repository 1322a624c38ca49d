"""Keeping what passed through the gateway: the turns of a conversation, and the tokens that each call used.

It happens behind the request. A session's exchanges are kept in their order; while the database is away they wait.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from esker.server.core.conversation.records import IdScope, StoredSession
from esker.server.core.errors import EskerError, InvalidInput, NotFound, Unavailable
from esker.server.core.ids import GATEWAY_IDS
from esker.server.core.json_input import clean_json
from esker.server.core.records import Principal
from esker.server.gateway.backlog import Backlog, Exchange, Key, key_of
from esker.server.gateway.identity import KnownTurn
from esker.server.gateway.sessions import owner_of
from esker.server.gateway.stored_histories import store_history
from esker.server.gateway.stored_turns import stored_ids
from esker.server.usecases.binding import parts_for
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.kept_messages import kept_messages
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.record_usage import UsageRequest, record_usage

log = logging.getLogger(__name__)

_BATCH = 500
# Seconds between tries while the database is away; the last pause is repeated.
_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)
_MOST_SESSIONS = 5_000
# Seconds that the end of the server waits for what is not kept yet.
_LAST_SECONDS = 5.0


@dataclass(slots=True)
class KnownSession:
    """A session that exchanges were kept in. `kept` is the history up to which its turns are stored.

    `stored` are the ids of turns that are stored under other ids, and those.
    """

    id: str
    is_ours: bool
    kept: str = ""
    stored: dict[str, str] = field(default_factory=dict[str, str])


class Keeper:
    """Keeps exchanges in the background."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sessions: OrderedDict[Key, KnownSession] = OrderedDict()
        self._backlog = Backlog()
        self._has_dropped = False
        self._tasks: dict[Key, asyncio.Task[None]] = {}

    async def session(self, who: Principal, asked: SessionRequest) -> KnownSession:
        """Find or open a session. Raises EskerError."""
        key = key_of(who, asked)
        known = self._sessions.get(key)
        if known is None:
            known = self.know(key, await open_session(parts_for(self._parts, who), who.pool_id, kept_here(asked)))
        self._sessions.move_to_end(key)
        return known

    def know(self, key: Key, stored: StoredSession) -> KnownSession:
        """Remember a session of the database, and return it as it is remembered."""
        known = self._sessions.setdefault(key, KnownSession(stored.id, stored.kept_by == "gateway"))
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return known

    def forget(self, key: Key) -> None:
        """Forget a session, which is then looked up again."""
        self._sessions.pop(key, None)

    def keep(self, exchange: Exchange) -> None:
        """Keep an exchange after those of its session that came before it."""
        if dropped := self._backlog.add(exchange):
            self._count(dropped)
            if not self._has_dropped:
                self._has_dropped = True
                log.warning("More exchanges wait to be stored than fit into memory: the oldest ones are not kept")
        if exchange.key not in self._tasks:
            self._tasks[exchange.key] = asyncio.create_task(self._keep_all(exchange.key))

    async def close(self) -> None:
        """Wait a little for what is not kept yet."""
        tasks = list(self._tasks.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_LAST_SECONDS)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        if len(self._backlog):
            log.warning("%d exchanges could not be stored before the end of the server", len(self._backlog))

    async def _keep_all(self, key: Key) -> None:
        """Store the exchanges of a session in their order; while the database is away they wait."""
        failures = 0
        try:
            while first := self._backlog.first(key):
                if await self._is_done(first.exchange):
                    self._backlog.remove(first.number)
                    failures = 0
                    continue
                # An exchange that the next one continues loses its turns while it waits, unless they are held here.
                del first
                await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
        finally:
            del self._tasks[key]
        self._has_dropped = self._has_dropped and len(self._backlog) > 0

    async def _is_done(self, exchange: Exchange) -> bool:
        """Store an exchange; False means that the database is away. One that Esker refuses is done, too."""
        try:
            await self._keep(exchange)
        except NotFound:
            # The session was deleted. Its next request begins it again.
            self.forget(exchange.key)
        except Unavailable:
            return False
        except EskerError as error:
            log.warning("An exchange of %s was not kept: %s", exchange.session.client, error)
            self._count()
        except Exception:
            log.exception("An exchange of %s was not kept", exchange.session.client)
            self._count()
        return True

    def _count(self, exchanges: int = 1) -> None:
        self._parts.instruments.gateway_requests.labels("not kept").inc(exchanges)

    async def _keep(self, exchange: Exchange) -> None:
        who, answer = exchange.who, exchange.answer
        parts = parts_for(self._parts, who)
        session = await self.session(who, exchange.session)
        if session.is_ours:
            scope: IdScope = "client" if exchange.is_fork else "session"
            new = _after(exchange.turns, session.kept)
            if len(new) == len(exchange.turns):
                # The history is not the one that was stored: it is the first one here, or the client has rewritten it.
                kept = await kept_messages(parts, who.pool_id, session.id)
                session.stored |= await asyncio.to_thread(stored_ids, new, kept)
                new = [turn for turn in new if turn.id not in session.stored]
            for start in range(0, len(new), _BATCH):
                await self._store(parts, who, session.id, new[start : start + _BATCH], scope)
            if exchange.turns:
                session.kept = exchange.turns[-1].history
        asked = exchange.session
        if exchange.turns and asked.external_id.startswith(GATEWAY_IDS):
            owner = owner_of(who, asked.client, asked.project)
            await store_history(self._parts, who, session.id, owner, exchange.turns)
        if answer and answer.used:
            used = UsageRequest(answer.used, answer.model, answer.id, exchange.change)
            await record_usage(parts, who.pool_id, session.id, used)

    async def _store(
        self, parts: Parts, who: Principal, session_id: str, turns: Sequence[KnownTurn], scope: IdScope
    ) -> None:
        """Store turns. One that Esker accepts from nobody is left out, and those beside it are stored."""
        try:
            batch = [IncomingMessage(turn.id, turn.role, clean_json([*turn.content]), id_scope=scope) for turn in turns]
            await ingest(parts, who.pool_id, session_id, batch, actor=who.actor)
        except InvalidInput as error:
            if len(turns) > 1:
                half = len(turns) // 2
                await self._store(parts, who, session_id, turns[:half], scope)
                await self._store(parts, who, session_id, turns[half:], scope)
                return
            log.warning("A turn of session %s was not kept: %s", session_id, error)
            self._count()


def kept_here(asked: SessionRequest) -> SessionRequest:
    """Return the request for a session whose messages the gateway stores."""
    return replace(asked, kept_by="gateway")


def _after(turns: Sequence[KnownTurn], history: str) -> Sequence[KnownTurn]:
    """Return the turns behind the history that is stored; all of them if they do not continue it."""
    for place in range(len(turns), 0, -1):
        if turns[place - 1].history == history:
            return turns[place:]
    return turns
