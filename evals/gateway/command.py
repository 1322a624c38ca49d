"""`python -m evals gateway`: the input tokens and their cost that the gateway saves on real sessions."""

import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from esker.server.agents import readers
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import Transcript
from esker.server.core.config.gateway_rules import GatewayMode
from esker.server.core.errors import InvalidInput
from evals.gateway.compaction import replay_compacting
from evals.gateway.facts import answerable, facts_of, latest_messages, said_in
from evals.gateway.histories import history_of, noted_compactions
from evals.gateway.provider import Provider, running_provider
from evals.gateway.replay import Replayed, replay
from evals.options import JsonOption
from evals.output import percent, progress, remark, table, write_json
from evals.serving import Server, started
from evals.sessions.labels import LABELS, LabelledFact, SessionLabels, read_labels

Transcripts = Annotated[Path, typer.Argument(help="A folder of transcripts, or one transcript.")]
Lengths = Annotated[
    list[int], typer.Option("--messages", min=10, help="How many messages of each session; repeatable.")
]
Budget = Annotated[int, typer.Option(min=4_000, help="ESKER_GATEWAY_HISTORY_TOKENS of the server.")]
LabelFolder = Annotated[Path, typer.Option("--labels", exists=True, file_okay=False, help="A folder of label files.")]
_LENGTHS = [100, 300, 900]
MODES_MEASURED: tuple[GatewayMode, ...] = ("off", "pack", "manage")
_TITLES = ("session", "messages", "mode", "requests", "tokens", "saved", "cost", "saved", "largest", "facts")


@dataclass(frozen=True, slots=True)
class _Session:
    """A transcript of which the first `most` messages are replayed, and its labelled facts."""

    file: Path
    transcript: Transcript
    most: int
    facts: Sequence[LabelledFact]


def gateway(
    path: Transcripts,
    messages: Lengths = _LENGTHS,
    budget: Budget = 24_000,
    labels: LabelFolder = LABELS,
    json_file: JsonOption = None,
) -> None:
    """Replay sessions through the gateway in the modes `off`, `pack` and `manage`, and count as a provider does.

    A session is measured at each length that it has. `off` is the raw history, cached as far as its client can;
    `compaction` is that of a client which compacts by itself, without the gateway.
    """
    rows: list[dict[str, Any]] = []
    with running_provider() as provider, progress() as shown:
        sessions = [*_sessions(path, messages, read_labels(labels))]
        for session in shown.track(sessions, description="Replaying"):
            rows += _measured(provider, budget, session)
    if not rows:
        raise InvalidInput(f"No transcript at {path} is long enough.", hint="--messages takes smaller numbers.")
    table("Savings of the gateway", _TITLES, [[*map(str, row.values())] for row in rows])
    remark("Tokens and cost are those of all requests; cost is in plain input tokens. Saved: against the raw history.")
    remark("Facts: the share of the labelled facts for which the last request has evidence; `cut` has the latest")
    remark("messages of the raw history, as many tokens as `manage`.")
    if json_file:
        write_json(json_file, {"budget": budget, "sessions": rows})


def _sessions(path: Path, lengths: list[int], labels: Sequence[SessionLabels]) -> Iterator[_Session]:
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for file in files:
        if client := readers.client_of(file):
            transcripts = readers.READERS[client](file, opened_plain).transcripts
            longest = max(transcripts, key=lambda each: len(each.entries), default=None)
            size = len(longest.entries) if longest else 0
            yield from (
                _Session(file, longest, most, facts_of(file, labels)) for most in lengths if longest and size >= most
            )


@contextmanager
def _fresh_server(provider: Provider, budget: int) -> Generator[Server]:
    """Yield a server that knows nothing yet: the memory of another replay would be in its packs."""
    settings = {"ESKER_EMBEDDER": "none", "ESKER_GATEWAY_UPSTREAMS": f"scripted={provider.url}"}
    settings["ESKER_GATEWAY_HISTORY_TOKENS"] = str(budget)
    with tempfile.TemporaryDirectory(prefix="esker-evals-") as folder, started(folder, settings) as (server, _):
        yield server


def _measured(provider: Provider, budget: int, session: _Session) -> Iterator[dict[str, Any]]:
    """Yield a row for each mode, for the client's own compaction, and for the raw history cut to the same size."""
    entries = session.transcript.entries
    history = history_of(entries, session.most)
    runs: list[Replayed] = []
    for mode in MODES_MEASURED:
        with _fresh_server(provider, budget) as server:
            runs.append(replay(server, provider, mode, history))
    raw, pack, manage = runs
    compacting = replay_compacting(history, noted_compactions(session.file), session.transcript.client)
    facts = said_in(raw.last["messages"], session.facts, entries)
    for run in (raw, compacting, pack, manage):
        yield _row(session, raw, run, _share(len(answerable(run, facts, entries)), facts))
    cut = said_in(latest_messages(raw, manage), facts, entries)
    yield _row(session, raw, Replayed("cut", manage.account, raw.last), _share(len(cut), facts)) | dict.fromkeys(
        ("requests", "tokens", "tokens saved", "cost", "cost saved", "largest"), "–"
    )


def _share(kept: int, facts: Sequence[LabelledFact]) -> str:
    return percent(kept / len(facts) if facts else None)


def _row(session: _Session, raw: Replayed, run: Replayed, facts: str) -> dict[str, Any]:
    before, after = raw.account, run.account
    return {
        "session": session.file.stem,
        "messages": session.most,
        "mode": run.mode,
        "requests": after.requests,
        "tokens": after.tokens,
        "tokens saved": f"{1 - after.tokens / before.tokens:.0%}",
        "cost": round(after.cost),
        "cost saved": f"{1 - after.cost / before.cost:.0%}",
        "largest": after.largest,
        "facts": facts,
    }
