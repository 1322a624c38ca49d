"""Report the memory of one session: its groups, rows, jobs, pack versions and usage."""

from dataclasses import asdict

from esker.server.core.budgets import reflect_trigger
from esker.server.core.context.session_memory import Counters, SessionMemory, state_of
from esker.server.core.context.usage import report_of
from esker.server.store import groups, jobs, memories, packs, sessions, usage
from esker.server.usecases.parts import Parts

# Most pack versions that are reported.
_MOST_VERSIONS = 100


async def session_memory(parts: Parts, pool_id: str, session_id: str) -> SessionMemory:
    """Return the state of a session's memory, read at one moment. Raises NotFound."""
    async with parts.database.moment(pool_id) as connection:
        session = await sessions.get(connection, session_id)
        counted = await groups.count(connection, session_id)
        rows = await memories.row_counts(connection, session_id)
        about = await jobs.about(connection, session_id)
        used = await usage.get(connection, session_id)
        counters = Counters(
            messages=session.last_seq,
            observed_messages=session.observed_seq,
            total_tokens=session.total_tokens,
            unobserved_tokens=session.unobserved_tokens,
            groups=counted.groups,
            lost=session.observed_seq - counted.covered,
            reflect_at_tokens=reflect_trigger(session.effective_context, session.reflect_at_tokens),
            **asdict(rows),
        )
        return SessionMemory(
            session=session,
            state=state_of(session, about),
            counters=counters,
            coverage=counted.covered / session.last_seq if session.last_seq else 1.0,
            pack_versions=await packs.versions(connection, session_id, _MOST_VERSIONS),
            groups=await groups.summaries(connection, session_id),
            jobs=about,
            usage=report_of(used) if used else None,
        )
