"""What the use cases work with; the composition root puts it together."""

from dataclasses import dataclass

from esker.server.core.clock import Clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.providers.paraphrases import Paraphrases
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.providers.reranking import Reranking
from esker.server.providers.roles import Observer, Reflector


@dataclass(frozen=True, slots=True)
class Parts:
    """The database, the time, the settings, and who observes, reflects, embeds queries, says them in other
    words and puts hits in order; None: switched off.

    The spare ones work for pools that have spent their day's money and want to go on without a model.
    """

    database: Database
    clock: Clock
    settings: Settings
    observer: Observer | None = None
    reflector: Reflector | None = None
    embedders: QueryEmbedders | None = None
    spare_observer: Observer | None = None
    spare_reflector: Reflector | None = None
    paraphrases: Paraphrases | None = None
    reranking: Reranking | None = None
