"""`python -m evals gateway`: the input tokens and their cost that the gateway saves on real sessions."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from esker.server.agents import readers
from esker.server.agents.regular_file import opened_plain
from esker.server.agents.transcript import TranscriptEntry
from esker.server.core.config.gateway_rules import GatewayMode
from esker.server.core.errors import InvalidInput
from evals.gateway.provider import running_provider
from evals.gateway.replay import Replayed, messages_of, replay
from evals.options import JsonOption
from evals.output import progress, remark, table, write_json
from evals.serving import started

Transcripts = Annotated[Path, typer.Argument(help="A folder of transcripts, or one transcript.")]
Lengths = Annotated[
    list[int], typer.Option("--messages", min=10, help="How many messages of each session; repeatable.")
]
Budget = Annotated[int, typer.Option(min=4_000, help="ESKER_GATEWAY_HISTORY_TOKENS of the server.")]
_LENGTHS = [100, 300, 900]
MODES_MEASURED: tuple[GatewayMode, ...] = ("off", "pack", "manage")


def gateway(
    path: Transcripts,
    messages: Lengths = _LENGTHS,
    budget: Budget = 40_000,
    json_file: JsonOption = None,
) -> None:
    """Replay sessions through the gateway in the modes `off`, `pack` and `manage`, and count as a provider does.

    A session is measured at each length that it has. `off` is the raw history with the best possible caching.
    """
    rows: list[dict[str, Any]] = []
    with running_provider() as provider, tempfile.TemporaryDirectory(prefix="esker-evals-") as folder:
        settings = {"ESKER_EMBEDDER": "none", "ESKER_GATEWAY_UPSTREAMS": f"scripted={provider.url}"}
        settings["ESKER_GATEWAY_HISTORY_TOKENS"] = str(budget)
        with started(folder, settings) as (server, _), progress() as shown:
            for file, most in shown.track([*_sessions(path, messages)], description="Replaying"):
                history = messages_of(_longest(file), most)
                ran = {mode: replay(server, provider, mode, f"{file.stem} {most}", history) for mode in MODES_MEASURED}
                rows += [_row(file, most, ran["off"], ran[mode]) for mode in MODES_MEASURED[1:]]
    if not rows:
        raise InvalidInput(f"No transcript at {path} is long enough.", hint="--messages takes smaller numbers.")
    titles = ("session", "messages", "mode", "requests", "tokens", "saved", "cost", "saved", "largest")
    table("Savings of the gateway", titles, [[*map(str, row.values())] for row in rows])
    remark("Tokens and cost are those of all requests; cost is in plain input tokens. Saved: against the raw history.")
    if json_file:
        write_json(json_file, {"budget": budget, "sessions": rows})


def _sessions(path: Path, lengths: list[int]) -> Iterator[tuple[Path, int]]:
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for file in files:
        if readers.client_of(file):
            size = len(_longest(file))
            yield from ((file, most) for most in lengths if size >= most)


def _longest(file: Path) -> Sequence[TranscriptEntry]:
    transcripts = readers.READERS[readers.client_of(file) or ""](file, opened_plain).transcripts
    longest: Sequence[TranscriptEntry] = ()
    for each in transcripts:
        longest = max(longest, each.entries, key=len)
    return longest


def _row(file: Path, most: int, raw: Replayed, run: Replayed) -> dict[str, Any]:
    before, after = raw.account, run.account
    return {
        "session": file.stem,
        "messages": most,
        "mode": run.mode,
        "requests": after.requests,
        "tokens": after.tokens,
        "tokens saved": f"{1 - after.tokens / before.tokens:.0%}",
        "cost": round(after.cost),
        "cost saved": f"{1 - after.cost / before.cost:.0%}",
        "largest": after.largest,
    }
