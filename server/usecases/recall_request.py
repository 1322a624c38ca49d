"""A question to memory: the request is checked and its scope resolved before the search."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from esker.server.core.clock import as_utc, zone
from esker.server.core.conversation.records import StoredSession
from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import clean_text
from esker.server.core.records import AskedTier, Filter, Kind, Priority, Ranking, Scope, Tier, at_least
from esker.server.core.redaction import redact
from esker.server.db.database import Connection
from esker.server.db.pipeline import Answer, send
from esker.server.store import sessions
from esker.server.usecases.name_project import stored_name

MAX_QUERY_CHARACTERS = 4_000
MAX_LIMIT = 50
MIN_TOKENS = 50
MAX_WITHOUT = 5_000


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question to memory. `since` and `until` filter by when a fact was said or the time that it is about.

    `timezone` is that of "yesterday" in the query; the default is the session's, or UTC without a session. `scope`
    defaults to "project" if there is a `project`, else to "pool". `ranking` selects the evidence: one of the two
    searches, both ("fused"), or both with everything else ("full"); all but "full" exist for comparison. `without`
    are ids that the caller has already, such as the rows of a pack: they and texts that say the same are not returned.
    """

    query: str
    limit: int = 8
    scope: Scope | None = None
    session_id: str | None = None
    project: str | None = None
    kinds: Sequence[Kind] | None = None
    tags: Sequence[str] | None = None
    min_priority: Priority = "low"
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False
    max_tokens: int | None = None
    tier: AskedTier = "both"
    ranking: Ranking = "full"
    explain: bool = False
    timezone: str | None = None
    without: Sequence[str] = ()


def checked(asked: RecallRequest) -> RecallRequest:
    """Return a request with its text cleaned. Raises InvalidInput."""
    if asked.timezone is not None:
        zone(asked.timezone)
    query = redact(clean_text(asked.query)).strip()
    if not query:
        raise InvalidInput("query must not be blank.")
    if len(asked.query) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(f"query must have at most {MAX_QUERY_CHARACTERS:,} characters.")
    if not 1 <= asked.limit <= MAX_LIMIT:
        raise InvalidInput(f"limit must be between 1 and {MAX_LIMIT}.")
    if asked.max_tokens is not None and asked.max_tokens < MIN_TOKENS:
        raise InvalidInput(f"max_tokens must be at least {MIN_TOKENS}.")
    if len(asked.without) > MAX_WITHOUT:
        raise InvalidInput(f"without must have at most {MAX_WITHOUT:,} ids.")
    if asked.tier == "passages" and _asks_of_memories(asked):
        raise InvalidInput("Passages have no kind, tag or priority.", hint="Leave those out, or ask for memories.")
    return replace(
        asked,
        query=query,
        project=stored_name(asked.project),
        session_id=clean_text(asked.session_id) if asked.session_id else None,
    )


def tiers(asked: RecallRequest) -> Sequence[Tier]:
    """Return the tiers to search. Passages have no kind, tag or priority, so a filter by these excludes them."""
    if asked.tier == "both":
        return ("memory",) if _asks_of_memories(asked) else ("memory", "passage")
    return ("memory",) if asked.tier == "memories" else ("passage",)


def _asks_of_memories(asked: RecallRequest) -> bool:
    return bool(asked.kinds or asked.tags) or asked.min_priority != "low"


async def resolved(
    connection: Connection, asked: RecallRequest, now: datetime
) -> tuple[Filter, Answer[StoredSession] | None]:
    """Return the filter, and the session of the request, if it has one.

    Raises InvalidInput for a scope without its session or project; NotFound, also when the session is read.
    """
    scope = asked.scope or ("project" if asked.project else "pool")
    if scope == "session" and asked.session_id is None:
        raise InvalidInput("scope 'session' needs a session_id.")
    session = await send(connection, sessions.by_id(asked.session_id)) if asked.session_id else None
    project = asked.project
    if scope == "project" and project is None:
        project = (await session).project if session else None
        if project is None:
            raise InvalidInput("scope 'project' needs a project, or a session that has one.")
    row_filter = Filter(
        moment=now,
        session=asked.session_id if scope == "session" else None,
        project=project if scope == "project" else None,
        kinds=asked.kinds,
        tags=asked.tags,
        priorities=at_least(asked.min_priority),
        since=as_utc(asked.since),
        until=as_utc(asked.until),
        as_of=as_utc(asked.as_of),
        with_superseded=asked.include_superseded,
    )
    return row_filter, session
