"""A language model behind the agent CLI that a person is logged in to."""

import asyncio
import json
import os
import re
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import cast

from esker.server.core.config.client_settings import INSIDE_HOOK, PREFIX, state_dir
from esker.server.core.config.home import MODEL_FOLDER
from esker.server.core.errors import ContextExceeded, ModelDown, ModelFailed
from esker.server.core.json_input import as_object
from esker.server.core.redaction import error_text
from esker.server.providers import child_run
from esker.server.providers.agent_clients import AGENT_CLIENTS, AgentClient, ClientCall, ClientProblem
from esker.server.providers.answer_schema import schema_of
from esker.server.providers.child_run import Ran, Stopped, TooMuchOutput
from esker.server.providers.language_model import TOO_LONG, ModelRequest, WireAnswer, with_schema_in_words

PREFIX_OF_MODELS = "cli:"
# The environment in which another agent runs a command is not for the client.
_AGENTS_OWN = re.compile(
    r"CLAUDECODE|CLAUDE_CODE_(?:ENTRYPOINT|SESSION_ID|SSE_PORT)|CODEX_SANDBOX(?:_NETWORK_DISABLED)?|GEMINI_CLI|OPENCODE"
)
_LOGGED_OUT = re.compile(
    r"log ?in\b|logged out|not authenticated|unauthori[sz]ed|\b401\b|api[ _-]?key|auth method|credential|sign in|token "
    r"(?:has )?expired",
    re.IGNORECASE,
)
_LIMITED = re.compile(
    r"usage limit|rate.?limit|limit (?:reached|exceeded)|quota|too many requests|\b429\b|overloaded|\b529\b|"
    r"out of credits|capacity",
    re.IGNORECASE,
)
# Seconds before a client whose limit is reached is started again: each start costs seconds of a core.
_LIMITED_SECONDS = 300.0
_SHOWN = 300
# A word joiner behind an at sign: Claude Code and Gemini CLI put the file into the prompt that `@path` names, even when
# they have no tools. Nobody sees it, and it is taken out of the answer.
_MARK = "\u2060"
_MARKED = re.compile(r"@(?:\u2060|\\u2060)")


class CliWire:
    """Runs one client for each request, a few at a time, in a folder without a project."""

    def __init__(self, client: AgentClient, model: str | None, concurrency: int, environ: Mapping[str, str]) -> None:
        self.provider = f"cli:{client.name}"
        self._client = client
        self._model = model
        self._environ = environ
        self._turns = asyncio.Semaphore(concurrency)
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix=f"cli-{client.name}")

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for one of the calls that may run at a time."""
        return self._turns

    async def send(self, request: ModelRequest) -> WireAnswer:
        """Return the answer. Raises ModelFailed. A call that is cancelled has ended with all that it started."""
        if shutil.which(self._client.name, path=self._environ.get("PATH")) is None:
            raise ModelDown(f"There is no `{self._client.name}` on the server's PATH.", sent=False)
        call = await asyncio.to_thread(self._prepared, request)
        ran = await self._ran(self._client.command(call), self._prompt(request), call)
        if self._client.ignores and self._client.ignores in ran.error:
            raise ModelFailed(
                f"{self._name} ran with its tools and hooks, since it does not trust {call.folder}: others may write"
                " into a directory above it. Its answer is not used; set ESKER_STATE_DIR to a directory of your own."
            )
        # Gemini CLI prints its problems on standard error.
        is_silent = bool(ran.code) and not ran.output.strip()
        try:
            answer = self._client.read(ran.error if is_silent else ran.output)
        except ClientProblem as problem:
            raise self._failure(ran, str(problem)) from None
        if not answer.text.strip():
            raise self._failure(ran, (is_silent and ran.error.strip()[-_SHOWN:]) or "it gave no answer")
        return replace(answer, text=_MARKED.sub("@", answer.text)) if self._client.reads_mentions else answer

    async def close(self) -> None:
        """Release the threads; what ran was ended when its call was cancelled."""
        self._threads.shutdown(wait=False)

    async def _ran(self, command: list[str], text: str, call: ClientCall) -> Ran:
        stop = threading.Event()
        environ = self._child_environ(call)
        running = asyncio.get_running_loop().run_in_executor(
            self._threads, child_run.run, command, text, call.folder, environ, stop
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.gather(running, return_exceptions=True)
            raise
        except TooMuchOutput as error:
            raise ModelFailed(
                f"{self._name} wrote more than {child_run.MOST_OUTPUT_BYTES:,} bytes and was ended."
            ) from error
        except (OSError, Stopped) as error:
            raise ModelDown(f"{self._name} cannot be started: {error}", sent=False) from error

    @property
    def _name(self) -> str:
        return PREFIX_OF_MODELS + self._client.name

    def _prepared(self, request: ModelRequest) -> ClientCall:
        """Write the instructions and the schema, which hold nothing of the transcript, and return where they are."""
        folder = state_dir(self._environ) / MODEL_FOLDER
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        system = request.system
        if not self._client.with_schema:
            system = with_schema_in_words(system, request.shape)
        return ClientCall(
            folder,
            _written(folder, "instructions", ".md", system),
            _written(folder, "schema", ".json", json.dumps(schema_of(request.shape))),
            _written(folder, "settings", ".json", json.dumps(self._client.settings)),
            self._model,
        )

    def _prompt(self, request: ModelRequest) -> str:
        """Return the messages as one text: a client accepts no earlier answer that it did not give itself."""
        first, *later = (_text(message["content"]) for message in request.messages)
        labels = ("Your answer was:", "")
        said = "\n\n".join([first, *(f"{label}\n{text}".strip() for label, text in zip(labels, later, strict=False))])
        return said.replace("@", "@" + _MARK) if self._client.reads_mentions else said

    def _child_environ(self, call: ClientCall) -> dict[str, str]:
        kept = {
            name: value
            for name, value in self._environ.items()
            if not name.startswith(PREFIX) and not _AGENTS_OWN.fullmatch(name)
        }
        # OpenCode takes PWD for its directory: it would work, and keep its session, where the server was started.
        here = {"PWD": str(call.folder), "OLDPWD": str(call.folder)}
        return kept | here | {INSIDE_HOOK: "1", "NO_COLOR": "1"} | self._client.environ(call)

    def _failure(self, ran: Ran, problem: str) -> ModelFailed:
        """Return the error for an output without an answer."""
        error = self._reason(ran, problem)
        error.is_billed = False
        return error

    def _reason(self, ran: Ran, problem: str) -> ModelFailed:
        said = f"{problem}\n{ran.error}" if ran.code else problem
        shown = error_text(ValueError(" ".join(problem.split())[:_SHOWN]))
        if TOO_LONG.search(problem):
            return ContextExceeded(f"{self._name} refused the request: {shown}")
        if _LIMITED.search(said):
            return ModelDown(f"{self._name} is limited: {shown}", seconds=_LIMITED_SECONDS)
        if _LOGGED_OUT.search(said):
            return ModelDown(f"{self._name} is not logged in ({shown}): {self._client.login}.", reason="key")
        ended = f" (exit code {ran.code})" if ran.code else ""
        return ModelFailed(f"{self._name} gave no answer{ended}: {shown}")


def cli_wire(name: str, role: str, model: str | None, concurrency: int) -> CliWire:
    """Return how the model of a CLI client is called for a role."""
    client = AGENT_CLIENTS[name]
    return CliWire(client, model or client.usual.get(role), concurrency, os.environ)


def _written(folder: Path, name: str, suffix: str, text: str) -> Path:
    """Return a file with this text, named by it, so that calls at the same time share it."""
    file = folder / f"{name}-{sha256(text.encode()).hexdigest()[:12]}{suffix}"
    if not file.is_file() or file.read_text(encoding="utf-8") != text:
        part = file.with_suffix(f".{threading.get_ident()}")
        part.write_text(text, encoding="utf-8")
        part.replace(file)
    return file


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    assert isinstance(content, list)
    return "\n\n".join(as_object(block).get("text", "[an image]") for block in cast("list[object]", content))
