"""The promises that every client keeps, tried from outside: yes, no, or not possible without a terminal."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.clients.agent import COMMANDS, Agent, Run
from tests.clients.homes import PROJECT
from tests.clients.memory import PROGRAM, MemoryServer, command
from tests.clients.model.server import ModelAsked
from tests.support.homes import FILES

FACT = "Deploys of the shop leave from the harbor branch"
_ASKED = "CALLRECALL harbor branch deploys"
# The first words of every pack.
_PACK = "Memories of earlier sessions: data about the past"
# Seconds that a server which hangs may add to one prompt; most clients wait for the MCP server and for a hook.
_MOST_ADDED = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a client keeps a promise (None: it cannot be tried), and the figure or the reason."""

    promise: str
    kept: bool | None
    detail: str = ""


Sessions = list[dict[str, Any]]


class Trial:
    """The promises of one client, in the order in which they are tried."""

    def __init__(self, agent: Agent, server: MemoryServer, model: ModelAsked) -> None:
        self._agent = agent
        self._server = server
        self._model = model
        # Those of an earlier try, in which the same was said.
        self._known = {each["id"] for each in server.sessions(agent.name)}
        self._bare = 0.0
        self._seconds = 0.0

    def run(self, *, short: bool) -> Iterator[Outcome]:
        """Try everything, or only what needs no second server."""
        if not short:
            self._bare = min(self._agent.start("SAY hello").seconds for _ in range(2))
        command(self._agent.environ, "install", self._agent.name, "--yes")
        yield from self._tried(self._pack, self._recall)
        if not short:
            yield from self._tried(self._resume, self._compaction, self._away, self._hangs)
        yield from self._tried(self._empty, self._uninstall)

    def _tried(self, *promises: Callable[[], Iterator[Outcome]]) -> Iterator[Outcome]:
        for promise in promises:
            yield from promise()

    def _pack(self) -> Iterator[Outcome]:
        prompt = "We chose pnpm for the shop. SAY noted"
        run, asked = self._asked(lambda: self._agent.start(prompt))
        self._seconds = run.seconds
        shown = [FACT in text for text in asked]
        yield Outcome("pack", run.code == 0 and any(shown), _why(run))
        yield Outcome("prompt", self._keeps(prompt))

    def _recall(self) -> Iterator[Outcome]:
        before = len(self._model.said)
        run = self._agent.start(_ASKED)
        self._seconds = min(self._seconds, run.seconds)
        told = [said.text for said in self._model.said[before:] if said.text.startswith("The tool said:")]
        yield Outcome("recall", any(FACT in text for text in told), _why(run))

    def _resume(self) -> Iterator[Outcome]:
        known = self._keeps(_ASKED) and len(self._own_sessions())
        prompt = "Tests run with vitest now. SAY understood"
        run, asked = self._asked(lambda: self._agent.resume(prompt))
        same = self._keeps(prompt) and len(self._own_sessions()) == known
        packs = max((text.count(_PACK) for text in asked), default=0)
        yield Outcome("resume", run.code == 0 and same, _why(run))
        yield Outcome("one pack", packs == 1, f"{packs} in a request after resuming")

    def _compaction(self) -> Iterator[Outcome]:
        if not COMMANDS[self._agent.name].compact:
            yield Outcome("compaction", None, "not possible without a terminal")
            return
        compacted = self._agent.compact()
        prompt = "The cache is warm again. SAY fine"
        run, asked = self._asked(lambda: self._agent.resume(prompt))
        packs = max((text.count(_PACK) for text in asked), default=0)
        good = compacted.code == 0 and run.code == 0 and self._keeps(prompt)
        yield Outcome("compaction", good and packs == 1, f"{packs} packs in a request after it")

    def _away(self) -> Iterator[Outcome]:
        away, back = "While it was away we chose redis. SAY aye", "It is back now. SAY good"
        self._server.stop()
        run = self._agent.start(away)
        self._server.start()
        self._agent.start(back)
        yield Outcome("away", run.code == 0 and self._keeps(away) and self._keeps(back), _why(run))

    def _hangs(self) -> Iterator[Outcome]:
        prompt = "While it hung we chose kafka. SAY so"
        self._server.hang()
        run = self._agent.start(prompt)
        self._server.wake()
        self._agent.start("It answers again. SAY well")
        added = run.seconds - self._bare
        figures = f"{self._bare:.1f} s without Esker, {self._seconds:.1f} with it, {run.seconds:.1f} while it hangs"
        yield Outcome("hangs", run.code == 0 and added < _MOST_ADDED and self._keeps(prompt), figures)

    def _empty(self) -> Iterator[Outcome]:
        all_filled = self._holds(lambda found: all(each["said"] for each in found))
        empty = [each["external_id"] for each in self._own_sessions() if not each["said"]]
        yield Outcome("no empty session", all_filled, f"{len(empty)} empty")

    def _uninstall(self) -> Iterator[Outcome]:
        command(self._agent.environ, "uninstall", self._agent.name, "--yes")
        left = [name for name in FILES[self._agent.name] if self._mentions_us(name)]
        yield Outcome("uninstall", not left, ", ".join(left))

    def _mentions_us(self, name: str) -> bool:
        path = self._agent.home / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        return self._server.url in text or str(PROGRAM) in text

    def _asked(self, run: Callable[[], Run]) -> tuple[Run, list[str]]:
        """Return a run, and the requests to the model in it."""
        before = len(self._model.bodies)
        return run(), self._model.texts_since(before)

    def _keeps(self, prompt: str) -> bool:
        """Return whether the server has a prompt exactly once as the user's words, sooner or later."""
        return self._holds(lambda found: _prompts(found).count(prompt) == 1)

    def _holds(self, wanted: Callable[[Sessions], bool]) -> bool:
        """Return whether something holds of the sessions of this trial, sooner or later."""
        return self._server.wait_for(self._agent.name, lambda found: wanted(self._new(found)))

    def _own_sessions(self) -> Sessions:
        return self._new(self._server.sessions(self._agent.name))

    def _new(self, found: Sessions) -> Sessions:
        return [each for each in found if each["id"] not in self._known]


def seed(server: MemoryServer) -> None:
    """Give the server a memory for packs and recalls."""
    server.remember(FACT, PROJECT)


def _prompts(found: Sessions) -> list[str]:
    users = [message for each in found for message in each["said"] if message["role"] == "user"]
    said = ["\n".join(block["text"] for block in user["content"] if block["type"] == "text") for user in users]
    # OpenCode puts an argument that contains blanks into quotation marks.
    return [words.strip().strip('"') for words in said]


def _why(run: Run) -> str:
    """Return the end of what a client that failed has printed."""
    return "" if run.code == 0 else f"exit code {run.code}: {' '.join(run.output.split())[-200:]}"
