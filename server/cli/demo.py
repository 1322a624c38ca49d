"""`esker demo`: shows what Esker does, on a sample transcript, without any model or service.

It starts a server on a data directory of its own and talks to it over HTTP, as any client does.
"""

import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress

from esker.server.agents.api import Api
from esker.server.agents.claude_code import read_transcript
from esker.server.agents.sending import SendReport, send
from esker.server.cli.memories import show_recalled
from esker.server.cli.output import AsJson, console, print_json, progress, say
from esker.server.core.announcement import read_announcement
from esker.server.core.child_command import child_command
from esker.server.core.config.local_token import own_token
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import Unavailable
from esker.server.core.worker_health import is_alive

app = typer.Typer(add_completion=False)

QUESTIONS = (
    "How do database changes get their identifiers?",
    "When do we release?",
    "Why was the connection reset?",
)
"""Found by meaning alone: no content word of a question occurs in the memory that answers it."""

_NEXT_SESSION = "the-next-session"
_KEY = """
🔴 matters most, 🟡 may matter, 🟢 is a detail; ✅ is done. Below, the number says how well a memory fits the question,
from 0 to 1, and 💬 is a message as it was said."""

_STALLED_SECONDS = 600.0
"""Seconds without progress after which the demo gives up; a busy machine takes minutes to load the model."""
_POLL_SECONDS = 0.3
"""Seconds between two looks at the progress; a lower value takes more of the processor from the worker."""


@app.command()
def demo(
    data_dir: Annotated[Path | None, typer.Option(help="Where the demo keeps its database.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what Esker does on a sample transcript. Running it again changes nothing."""
    usual = Settings.from_environment(os.environ).data_dir
    directory = data_dir or usual.with_name(f"{usual.name}-demo")
    with progress(shown=not as_json) as shown, _server(directory, shown) as (api, parts):
        result = _run(api, shown)
    result |= {"data_dir": str(directory), "observer": parts["observer"], "reflector": parts["reflector"]}
    if as_json:
        print_json(result)
    else:
        _show(result)


@contextmanager
def _server(directory: Path, shown: Progress) -> Generator[tuple[Api, dict[str, Any]]]:
    """Run a server on a free port during the block; yield a connection and the server's announcement."""
    task = shown.add_task("Starting Postgres and the server", total=1)
    command = child_command("esker", "serve", "--port", "0", "--data-dir", str(directory), "--json")
    command += ["--until-stdin-closes"]  # the pipe closes with the block, however it ends
    environment = {k: v for k, v in os.environ.items() if k not in ("ESKER_DATABASE_URL", "ESKER_HOST")}
    environment |= {"ESKER_LOG_LEVEL": "warning", "ESKER_EMBED_PATIENCE_SECONDS": "0"}  # embed at once: a person waits
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None  # it is a pipe
        ready = read_announcement(process.stdout)
        shown.advance(task)
        yield Api(ready["url"], own_token(directory)), ready


def _run(api: Api, shown: Progress) -> dict[str, Any]:
    sent = SendReport()
    sessions = _ingest(api, shown, sent)
    observed = [
        api.post(f"/v1/sessions/{session}/observe?wait=true")
        for session in shown.track(sessions, description="Observing")
    ]
    _wait_for_vectors(api, shown, "Embedding")
    reflected = [
        api.post(f"/v1/sessions/{session}/reflect?wait=true")
        for session in shown.track(sessions, description="Reflecting")
    ]
    _wait_for_vectors(api, shown, "Embedding reflections")
    opened = {"client": "demo", "external_id": _NEXT_SESSION, "project": "ferry-booking"}
    pack = api.get(f"/v1/sessions/{api.post('/v1/sessions', opened)['id']}/pack")
    answers = {question: api.post("/v1/recall", {"query": question, "limit": 3}) for question in QUESTIONS}
    history = sum(api.get(f"/v1/sessions/{session}")["total_tokens"] for session in sessions)
    return {
        "messages": {"stored": sent.accepted, "known": sent.duplicates},
        "memories_written": sum(report["memories"] for report in observed),
        "condensed": {
            "memories": sum(report["superseded"] for report in reflected),
            "into": sum(report["memories"] for report in reflected),
            "left_out": sum(report["left_out"] for report in reflected),
        },
        "pack": pack,
        "recalls": answers,
        "tokens": {"history": history, "pack": pack["tokens"], "saved": history - pack["tokens"]},
        "embedder": api.get("/readyz")["embedder"],
    }


def _ingest(api: Api, shown: Progress, sent: SendReport) -> list[str]:
    samples = sorted(files("esker.server.agents").joinpath("samples").iterdir(), key=lambda entry: entry.name)
    task = shown.add_task("Ingesting the sample transcript", total=len(samples))
    for sample in samples:
        with as_file(sample) as path:
            for transcript in read_transcript(path).transcripts:
                send(api, transcript, sent, lambda _: None)
        shown.advance(task)
    return list(sent.sessions)


def _wait_for_vectors(api: Api, shown: Progress, description: str) -> None:
    """Wait until recall finds every memory by meaning, if the server has an embedder.

    Raises Unavailable when the worker does not run, or makes no progress.
    """
    task = shown.add_task(description, total=None)
    most, fewest, progressed = 0, math.inf, time.monotonic()
    while (found := api.get("/v1/status"))["embedder"] != "none":
        pending: int = found["pending"]
        if not (pending or _is_degraded(api)):
            break
        _require_worker(api)
        if pending < fewest:
            fewest, progressed = pending, time.monotonic()
        if time.monotonic() > progressed + _STALLED_SECONDS:
            raise Unavailable("The memories were not embedded in time.", hint="`esker doctor` shows why.")
        most = max(most, pending)
        shown.update(task, total=most or None, completed=most - pending)
        time.sleep(_POLL_SECONDS)
    shown.update(task, total=most or 1, completed=most or 1)


def _is_degraded(api: Api) -> bool:
    """Whether recall works by keyword only, as while the server loads the model for queries."""
    return api.post("/v1/recall", {"query": QUESTIONS[0], "limit": 1})["semantic"] == "degraded"


def _require_worker(api: Api) -> None:
    """Raise Unavailable, with the last line that the worker printed, unless the embedding worker runs."""
    worker = api.get("/readyz")["worker"]
    if worker == "none" or not is_alive(worker):
        raise Unavailable(f"The embedding worker does not run ({worker}).", hint="`esker doctor` shows why.")


def _show(result: dict[str, Any]) -> None:
    messages, condensed, tokens = result["messages"], result["condensed"], result["tokens"]
    console.rule("Result")
    say(f"{counted(messages['stored'], 'message')} stored, {messages['known']:,} already known.")
    left_out = counted(condensed["left_out"], "minor fact was", "minor facts were")
    became = f"{condensed['memories']:,} condensed into {condensed['into']:,} ({left_out} left out)"
    written = counted(result["memories_written"], "memory")
    say(f"{written} written, {became if condensed['memories'] else 'and none of them to condense yet'}.")
    console.rule("The context pack: what the next session of any agent starts with")
    say(result["pack"]["text"])
    say(_KEY)
    for question, answer in result["recalls"].items():
        console.rule(f"recall_memory: {question}")
        show_recalled(answer)
    console.rule("Models and savings")
    say(f"Observer: {result['observer']}. Reflector: {result['reflector']}. Embeddings: {result['embedder']}.")
    share = round(100 * tokens["saved"] / tokens["history"])
    say(
        f"The two conversations cost {tokens['history']:,} tokens as raw history, the pack {tokens['pack']:,}:"
        f" {tokens['saved']:,} saved, {share} %."
    )
    # `make demo` calls it by its path.
    program = "esker" if shutil.which("esker") else sys.argv[0]
    say(f"The database is in {result['data_dir']}; `{program} serve` starts the real thing.")
