"""The dependencies of the use cases, which the composition root creates."""

from dataclasses import dataclass, field

from esker.server.core.clock import Clock
from esker.server.core.config.settings import Settings
from esker.server.core.worker_health import WorkerHealth
from esker.server.db.database import Database
from esker.server.db.holder import Holder
from esker.server.providers.breaker import Breakers
from esker.server.providers.paraphrases import Paraphrases
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.providers.reranking import Reranking
from esker.server.providers.roles import Observer, Reflector
from esker.server.providers.text_processes import TextProcesses
from esker.server.usecases.instruments import Instruments
from esker.server.usecases.pending_counts import PendingCounts
from esker.server.usecases.pulse import Pulse
from esker.server.usecases.setbacks import Setbacks
from esker.server.usecases.term_counts import TermCounts


@dataclass(frozen=True, slots=True)
class Parts:
    """The database, the clock, the settings, the models, the processes that read long texts, and what failed lately.

    `holder` is what this process holds leases with; `breakers` keep calls from providers that are down; `pending` has
    large counts of texts without a vector, and `term_counts` those of texts with a common word, which recalls share for
    a while.

    A model that is None is switched off.

    The spare observer and reflector need no model; they serve pools that have reached their daily cap and fall back.
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
    worker: WorkerHealth | None = None
    processes: TextProcesses = field(default_factory=TextProcesses)
    setbacks: Setbacks = field(default_factory=Setbacks)
    pulse: Pulse = field(default_factory=Pulse)
    pending: PendingCounts = field(default_factory=PendingCounts)
    term_counts: TermCounts = field(default_factory=TermCounts)
    instruments: Instruments = field(default_factory=Instruments)
    holder: Holder = field(default_factory=Holder)
    breakers: Breakers = field(default_factory=Breakers)
