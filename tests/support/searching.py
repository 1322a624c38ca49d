"""Search among memories by keyword alone, without the rest of a recall."""

from esker.server.core.records import Filter
from esker.server.db.database import Connection
from esker.server.store.search import Found, QueryTerms, Search, Size, TermBudget, find

_MANY = 1_000_000


async def by_keyword(
    connection: Connection,
    words: QueryTerms,
    row_filter: Filter,
    limit: int,
    *,
    narrow: bool = False,
    reading: TermBudget | None = None,
) -> Found:
    """Return what the search for a scope of few rows (`narrow`), or that for the whole pool, finds."""
    size = Size(_MANY, 1 if narrow else None)
    assert size.is_narrow == narrow
    [found] = await find(
        connection, [Search("memory", words, row_filter, size, limit, reading=reading or TermBudget())]
    )
    return found
