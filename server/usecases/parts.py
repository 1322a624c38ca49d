"""What the use cases work with; the composition root puts it together."""

from dataclasses import dataclass

from server.core.clock import Clock
from server.core.settings import Settings
from server.db.database import Database
from server.providers.roles import Embedder, Observer, Reflector


@dataclass(frozen=True, slots=True)
class Parts:
    """The database, the time, the settings, and who observes, reflects and embeds; None where that is switched off."""

    database: Database
    clock: Clock
    settings: Settings
    observer: Observer | None = None
    reflector: Reflector | None = None
    embedder: Embedder | None = None
