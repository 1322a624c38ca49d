"""What the use cases work with; the composition root puts it together."""

from dataclasses import dataclass

from server.core.clock import Clock
from server.core.settings import Settings
from server.db.database import Database
from server.providers.query_embedders import QueryEmbedders
from server.providers.roles import Observer, Reflector


@dataclass(frozen=True, slots=True)
class Parts:
    """The database, the time, the settings, and who observes, reflects and embeds queries; None: switched off."""

    database: Database
    clock: Clock
    settings: Settings
    observer: Observer | None = None
    reflector: Reflector | None = None
    embedders: QueryEmbedders | None = None
