"""`esker doctor`: checks everything that can be wrong and says how to fix it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from esker.server.agents.api import Api
from esker.server.agents.hook_log import HookLog
from esker.server.agents.spool import Spool
from esker.server.cli.backing_up import folder_of
from esker.server.cli.database import lacking, settings_for, with_database
from esker.server.cli.database_findings import (
    FAILING,
    CheckStatus,
    Finding,
    Inspected,
    backups,
    invariants,
    stored_findings,
)
from esker.server.cli.install import keyless_clients
from esker.server.cli.output import AsJson, DataDir, print_json, say
from esker.server.core.clock import system_clock
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.home import missing_home
from esker.server.core.config.settings import Settings
from esker.server.core.counts import counted
from esker.server.core.errors import EskerError, Misconfigured, Unavailable
from esker.server.core.worker_health import explained, is_alive
from esker.server.db.data_dir import holder
from esker.server.db.embedded import is_made
from esker.server.providers.embedders import embedder_of
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_models import probe as probe_model
from esker.server.providers.rerankers import make_reranker
from esker.server.providers.reranking import probe as probe_reranker
from esker.server.usecases import inspect
from esker.server.usecases.check_invariants import check_invariants
from esker.server.usecases.parts import Parts

app = typer.Typer(add_completion=False)

_MARK: dict[CheckStatus, str] = {"ok": "✓", "warning": "!", "wrong": "✗"}
_ROLES: tuple[Literal["observer", "reflector"], ...] = ("observer", "reflector")
_LLM_HINT = "Check ESKER_LLM_BASE_URL, ESKER_LLM_API_KEY (or ANTHROPIC_API_KEY) and ESKER_LLM_PROTOCOL."
_LEAST_FREE_BYTES = 1024**3


@app.command()
def doctor(
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Leave out what takes long: reading every record, loading the embedding model."),
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="First retry the jobs and rows that have failed for good.")
    ] = False,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Check everything that can be wrong and say how to fix it. The exit code is 1 when something is wrong."""
    findings: list[Finding] = []
    for finding in _all(quick, retry, data_dir):
        if finding in findings:
            continue  # two checks can find the same
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        print_json(findings)
    if any(finding.status == "wrong" for finding in findings):
        raise typer.Exit(1)


def _print(finding: Finding) -> None:
    say(f"{_MARK[finding.status]} {finding.what}")
    if finding.hint:
        say(f"  → {finding.hint}")


def _all(quick: bool, retry: bool, data_dir: Path | None) -> Iterator[Finding]:
    yield Finding("ok", f"Python {'.'.join(map(str, sys.version_info[:3]))}.")
    try:
        settings = settings_for(data_dir)
    except Misconfigured as error:
        yield Finding("wrong", str(error), error.hint)
        return
    yield Finding("ok", "The settings are valid.")
    if not settings.database_url:
        yield from data_directory(settings)
    if folder := folder_of(settings):
        yield backups(folder, system_clock())
    checks = (
        lambda: _stored(settings, quick, retry),
        lambda: _models(settings),
        lambda: _reranker(settings, quick),
        lambda: _server(settings),
        _hooks,
    )
    for check in checks:
        yield from _explained(check)


def _explained(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Turn an EskerError into a finding, so that one broken part does not hide the others."""
    try:
        yield from check()
    except EskerError as error:
        yield Finding("wrong", str(error), error.hint)


def data_directory(settings: Settings) -> Iterator[Finding]:
    """Check that the data directory can be written, or made, and that its disk has room."""
    directory = settings.data_dir
    free = shutil.disk_usage(_existing(directory)).free
    size = f"{free / 1024**3:.0f} GiB free"
    if home := _missing_home(directory):
        hint = "Create it, set HOME, or choose another directory with ESKER_DATA_DIR."
        yield Finding("wrong", f"The home directory {home} does not exist.", hint)
    elif not _is_writable(directory):
        yield Finding("wrong", f"{directory} cannot be written.", "Choose another directory with ESKER_DATA_DIR.")
    elif free < _LEAST_FREE_BYTES:
        yield Finding(
            "warning", f"The disk of {directory} is nearly full ({size}).", "Free some space for the database."
        )
    else:
        yield Finding("ok", f"The data directory is {directory} ({size}).")
    if (other := holder(directory)) and other.role == "serve":
        yield Finding("ok", f"A server runs on it (process {other.pid} at {other.url}).")


def _missing_home(directory: Path) -> Path | None:
    try:
        return missing_home(directory)
    except OSError:
        return None  # it exists and is closed


def _is_writable(directory: Path) -> bool:
    """Whether a directory can be written or, where it is missing, made."""
    place = _existing(directory)
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _existing(directory: Path) -> Path:
    """Return the directory or the nearest one above it that exists."""
    return next((place for place in (directory, *directory.parents) if os.path.exists(place)), directory)


def _stored(settings: Settings, quick: bool, retry: bool) -> Iterator[Finding]:
    """Check the database, if there is one; with `retry`, retry first what has failed for good."""
    active: set[str] = set()
    if not settings.database_url and not is_made(settings.data_dir):
        yield Finding("warning", f"There is no database in {settings.data_dir} yet.", "`esker serve` creates one.")
    elif missing := lacking(settings):
        yield Finding("wrong", f"The database lacks {counted(len(missing), 'migration')}.", "Run `esker migrate`.")
    else:
        yield Finding("ok", "The database answers, and its schema is up to date.")
        if retry:
            yield from _retried(settings)
        found = with_database(settings, _inspect)
        active = found.spaces
        yield from stored_findings(found)
        if not quick:
            yield from invariants(with_database(settings, check_invariants))
    if not quick:
        yield from _embedder(settings, active)


def _retried(settings: Settings) -> Iterator[Finding]:
    jobs, rows = with_database(settings, inspect.retry)
    yield Finding("ok", f"{counted(jobs, 'job')} and {counted(rows, 'row')} that had failed for good are tried again.")


async def _inspect(parts: Parts) -> Inspected:
    return Inspected(
        await inspect.database_facts(parts),
        await inspect.stuck(parts),
        await inspect.active_spaces(parts),
        await inspect.weak_indexes(parts),
    )


def _models(settings: Settings) -> Iterator[Finding]:
    for role in _ROLES:
        yield _role(settings, role)
    if settings.paraphrase and not settings.has_model:
        yield Finding("wrong", "Paraphrasing is switched on, but no model is configured.", _LLM_HINT)
    if settings.has_model:
        if problem := asyncio.run(probe_model(Endpoint.of(settings))):
            yield Finding("wrong", f"The language model cannot be used: {problem}", _LLM_HINT)
        else:
            yield Finding("ok", "The language model's server answers.")


def _role(settings: Settings, role: Literal["observer", "reflector"]) -> Finding:
    match settings.choice_of(role):
        case "off":
            return Finding("warning", f"The {role} is switched off.")
        case "model" if not settings.has_model:
            return Finding("wrong", f"The {role} is set to a model, but no model is configured.", _LLM_HINT)
        case "model":
            where = Endpoint.of(settings).described
            return Finding("ok", f"The {role} is set to {settings.model_of(role)} at {where}.")
        case "extractive":
            return Finding("ok", f"The {role} is set to extractive.")
        case client:
            return _client(role, client)


def _client(role: str, choice: str) -> Finding:
    name = choice.removeprefix("cli:")
    if found := shutil.which(name):
        return Finding(
            "ok", f"The {role} is set to {choice} ({found}); `esker setup --use {choice} --dry-run` tries one call."
        )
    return Finding(
        "wrong",
        f"The {role} is set to {choice}, but there is no `{name}` on PATH.",
        "Install it, or add its directory to the PATH of the server.",
    )


def _reranker(settings: Settings, quick: bool) -> Iterator[Finding]:
    reranker = make_reranker(settings)
    if reranker is None or (quick and settings.reranker.startswith("sentence-transformers:")):
        return
    seconds = asyncio.run(probe_reranker(reranker))
    if seconds > settings.rerank_seconds:
        yield Finding(
            "warning",
            f"The reranker {reranker.name} took {seconds:.1f} s for two short texts; a recall waits only"
            f" {settings.rerank_seconds:g} s.",
            "Choose a faster one, or let recalls wait longer with ESKER_RERANK_SECONDS.",
        )
    else:
        yield Finding("ok", f"The reranker works: {reranker.name}.")


def _embedder(settings: Settings, active: set[str]) -> Iterator[Finding]:
    embedder = embedder_of(settings)
    if embedder is None:
        yield Finding("warning", "No embedder is configured; recall works by keyword only.")
        return
    space = asyncio.run(embedder.load())
    yield Finding("ok", f"The embedder works: {space.model}, {space.dimension} dimensions.")
    if active - {space.name}:
        yield Finding(
            "warning",
            f"Some vectors were made by another model than {space.model}; `esker reembed --status` shows which.",
            "The worker replaces them in the background; or set ESKER_EMBEDDER back. A model that was chosen with"
            " `esker reembed` stays: set ESKER_EMBEDDER to that one.",
        )


def _hooks() -> Iterator[Finding]:
    client = ClientSettings.from_environment(os.environ)
    spool = Spool(client.state_dir / "spool", client.url.rstrip("/"), client.key)
    where = client.state_dir / "spool"
    if not _is_writable(client.state_dir):
        yield Finding(
            "warning",
            f"{client.state_dir} cannot be written, so hooks lose what they cannot send at once.",
            "Choose another directory with ESKER_STATE_DIR.",
        )
    if client.key and (keyless := keyless_clients()):
        yield Finding(
            "warning",
            f"{', '.join(keyless)}: hooks and MCP servers send no key, so a server that needs one refuses them.",
            f"Set ESKER_KEY where they start, and run `esker install {' '.join(keyless)} --with-key`.",
        )
    log = HookLog(client.state_dir)
    for name, (count, last) in log.failures().items():
        yield Finding(
            "warning",
            f"Hooks of {name} have failed {counted(count, 'time')}, the last: {last[:300]}",
            f"Fix the cause, and delete {log.path}.",
        )
    if waiting := spool.waiting():
        yield Finding(
            "warning",
            f"Waiting in {where} for the server at {client.url}: {counted(waiting, 'parcel')} of hooks.",
            "They are sent by the next hook that reaches it, by a server of that ESKER_KEY when it starts, and by"
            " `esker spool --send`.",
        )
    if elsewhere := sum(queue.parcels for queue in spool.queues() if not spool.is_for_here(queue)):
        yield Finding(
            "warning",
            f"Waiting for another server, or under another key: {counted(elsewhere, 'parcel')} of hooks.",
            "`esker spool` shows them; a hook with that ESKER_URL and ESKER_KEY sends them. If those no longer exist,"
            " `esker spool --send --for ID` sends them to this server, `esker spool --drop --for ID` deletes them.",
        )
    if refused := spool.refused():
        yield Finding(
            "warning",
            f"Refused by the server, or unreadable: {counted(refused, 'parcel')} of hooks.",
            f"They are in {where / 'refused'}; check and delete them.",
        )


def _server(settings: Settings) -> Iterator[Finding]:
    # Without ESKER_URL, the server that holds the data directory is checked.
    other = None if settings.database_url or "ESKER_URL" in os.environ else holder(settings.data_dir)
    client = ClientSettings.from_environment(os.environ)
    api = Api.to(replace(client, url=other.url) if other and other.url else client)
    answer: object = api.get("/readyz")
    if not isinstance(answer, dict) or "embedder" not in answer:
        raise Unavailable(f"The program that answers at {api.url} is not Esker.", hint="Check ESKER_URL.")
    ready = cast("dict[str, Any]", answer)
    yield Finding("ok", f"The server at {api.url} is ready (embedder: {ready['embedder']}).")
    worker = str(ready["worker"])
    if about := explained(worker):
        yield Finding("warning" if is_alive(worker) else "wrong", about["what"], about["hint"])
    if ready["language_model"] not in ("ok", "none"):
        yield Finding("wrong", f"The language model of the server cannot be used: {ready['language_model']}", FAILING)
    api.get("/v1/memories", limit=1)
    yield Finding("ok", "The server accepts requests of this command line.")
    for role in _ROLES:
        meant = settings.author_of(role)
        if ready[role] != meant:
            yield Finding(
                "warning",
                f"The {role} of the server is {ready[role]}, but the settings here say {meant}.",
                "Settings are read at the start of the server: restart it with these.",
            )
