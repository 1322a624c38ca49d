"""The sources of a memory."""

from collections.abc import Sequence
from dataclasses import fields

from esker.server.core.records import Memory, Source, SourcedMemory

_COLUMNS = [field.name for field in fields(Memory)]


def sources_of(row: Memory, again: Sequence[Source] = ()) -> list[Source]:
    """Return the sources of a row: its own messages or memories first, then where it was said `again`."""
    own = [Source(row.session_id, row.source_seqs, row.source_ids)] if row.source_seqs or row.source_ids else []
    return [*own, *again]


def sourced(row: Memory, again: Sequence[Source] = ()) -> SourcedMemory:
    """Return a row with all its sources."""
    return SourcedMemory(**{name: getattr(row, name) for name in _COLUMNS}, sources=sources_of(row, again))
