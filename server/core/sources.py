"""Every place that a memory came from."""

from collections.abc import Sequence

from server.core.records import Memory, Source


def sources_of(row: Memory, again: Sequence[Source] = ()) -> list[Source]:
    """Return where a row came from: its own messages or memories first, then where else it was said (`again`)."""
    own = [Source(row.session_id, row.source_seqs, row.source_ids)] if row.source_seqs or row.source_ids else []
    return [*own, *again]
