"""Hooks as agents run them: one process for each event, JSON in, JSON out, with and without a server."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

from esker.server.agents.hook_input import STEPS
from esker.server.agents.hook_log import HookLog
from esker.server.agents.install.clients import CLIENTS
from esker.server.agents.readers import READERS
from esker.server.app import make_parts
from esker.server.core.clock import system_clock
from esker.server.core.config.exclusion_list import ExclusionList
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.usecases.authenticate import create_key
from esker.server.usecases.parts import Parts
from tests.support.forks import run_forked
from tests.support.made import made_at
from tests.support.opencode import OpenCodeStore
from tests.support.processes import ROOT, environment, served
from tests.support.serving import serving
from tests.support.waiting import PATIENCE

NOWHERE = "http://127.0.0.1:1"
LOOK_SECONDS = 0.01
"""Pause between looks at what a background process does, which needs the processor meanwhile."""
FACT = "We deploy with make ship, never by hand."


@pytest.fixture
async def url(database_url: str, settings: Settings) -> AsyncGenerator[str]:
    """A server with a memory of the project acme/shop."""
    async with serving(make_parts(settings, Database(database_url), system_clock)) as there:
        async with httpx2.AsyncClient(base_url=there, timeout=PATIENCE) as client:
            row = {"content": FACT, "project": "acme/shop", "priority": "high"}
            assert (await client.post("/v1/memories", json=row)).status_code == 201
        yield there


class Agent:
    """A machine with an agent: a home, a checkout of acme/shop, and a growing transcript."""

    def __init__(self, home: Path, url: str, **more: str) -> None:
        self.home = home
        self.checkout = home / "shop"
        self.transcript = home / ".claude" / "projects" / "-shop" / "s1.jsonl"
        self.state = home / "state"
        given = {"HOME": str(home), "ESKER_STATE_DIR": str(self.state), "ESKER_URL": url, "ESKER_HOOK_SECONDS": "60"}
        self._environment = environment(**given | more)
        self.checkout.mkdir(parents=True, exist_ok=True)
        (self.checkout / ".git").mkdir(exist_ok=True)
        (self.checkout / ".git" / "config").write_text('[remote "origin"]\nurl = https://example.org/acme/shop\n')
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        self.said: list[str] = []

    def at(self, url: str, **more: str) -> "Agent":
        """Return the same machine with another environment."""
        other = Agent(self.home, url, **more)
        other.said = self.said
        return other

    def say(self, *texts: str) -> None:
        """Append a message to the transcript."""
        with self.transcript.open("a") as file:
            for text in texts:
                self.said.append(text)
                line = {"type": "user", "uuid": f"u{len(self.said)}", "sessionId": "s1", "cwd": str(self.checkout)}
                line |= {"timestamp": "2026-11-28T10:00:00Z", "message": {"role": "user", "content": text}}
                file.write(json.dumps(line) + "\n")

    async def hook(self, event: str, client: str = "claude-code", **given: Any) -> str:
        """Run a hook to its end, and return what it prints."""
        event_input = {"session_id": "s1", "cwd": str(self.checkout), "hook_event_name": event}
        event_input |= {"transcript_path": str(self.transcript)} if self.transcript.exists() else {}
        return await self.run(client, event, json.dumps(event_input | given).encode())

    async def run(self, client: str, event: str, standard_input: bytes, *options: str) -> str:
        """Run a hook with this standard input, and return its output; it must succeed without errors."""
        words = ["hook", *options, client, event]
        done = await asyncio.to_thread(run_forked, words, ROOT, self._environment, PATIENCE, standard_input)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    async def run_alone(self, client: str, event: str, standard_input: bytes) -> str:
        """Run a hook as an agent does, in an interpreter of its own."""
        done = await asyncio.to_thread(
            subprocess.run,
            self.command(client, event),
            input=standard_input,
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode()

    def command(self, client: str, event: str) -> list[str]:
        """Return the command of a hook."""
        return [sys.executable, "-m", "esker.server.cli.entry", "hook", client, event]

    def open(self, client: str, event: str) -> subprocess.Popen[bytes]:
        """Start a hook whose standard input stays open."""
        return subprocess.Popen(
            self.command(client, event),
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


@pytest.fixture
def agent(tmp_path: Path, url: str) -> Agent:
    """A machine with a running server."""
    return Agent(tmp_path / "home", url)


async def kept(url: str, external_id: str = "s1", **headers: str) -> list[str]:
    """Return the messages of a session, in order; background processes of hooks may still be sending."""
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE) as client:
        found = (await client.get("/v1/sessions", params={"external_id": external_id})).json()["sessions"]
        if not found:
            return []
        messages = (await client.get(f"/v1/sessions/{found[0]['id']}/messages?limit=1000")).json()["messages"]
        return [message["content"][0]["text"] for message in messages]


def context(printed: str) -> str:
    """Return the context in the output of a Claude Code hook."""
    return json.loads(printed)["hookSpecificOutput"]["additionalContext"]


# Context -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("client", "event", "place"),
    [
        ("claude-code", "SessionStart", ("hookSpecificOutput", "additionalContext")),
        ("codex", "SessionStart", ("hookSpecificOutput", "additionalContext")),
        ("cursor", "sessionStart", ("additional_context",)),
        ("opencode", "session.created", ("context",)),
        ("pi", "session_start", ("context",)),
        ("copilot", "sessionStart", ("additionalContext",)),
    ],
)
async def test_a_session_starts_with_its_projects_memories_in_the_clients_format(
    agent: Agent, client: str, event: str, place: tuple[str, ...]
) -> None:
    printed: Any = json.loads(await agent.hook(event, client, source="startup"))
    names = {"hookEventName", place[-1]} if len(place) == 2 else {place[-1]}
    for name in place[:-1]:
        assert printed.keys() == {name}
        printed = printed[name]
    assert printed.keys() == names
    assert printed.get("hookEventName", event) == event
    assert FACT in printed[place[-1]]


class GeminiChat:
    """A chat of Gemini CLI, which keeps the context of a hook in the prompt, with its angle brackets escaped."""

    def __init__(self, agent: Agent) -> None:
        self.path = agent.home / "session-s1.jsonl"
        self.path.write_text('{"sessionId":"s1","projectHash":"h"}\n')
        self._agent = agent

    def set(self, *messages: Any) -> None:
        """Begin a new context, as a resume or a compression does."""
        self._write({"$set": {"messages": messages}})

    async def prompt(self) -> str | None:
        """Send a prompt, and return the context that it gets."""
        printed = await self._agent.hook("BeforeAgent", "gemini-cli", prompt="Go on.", transcript_path=str(self.path))
        added = json.loads(printed).get("hookSpecificOutput", {}).get("additionalContext")
        escaped = (added or "").replace("<", "&lt;").replace(">", "&gt;")
        self.said = {"id": "m", "type": "user", "content": [{"text": "Go on."}, {"text": f"<hook>{escaped}</hook>"}]}
        self._write(self.said)
        return added

    async def start(self, source: str) -> None:
        """Start the session."""
        event = {"source": source, "transcript_path": str(self.path)}
        assert await self._agent.hook("SessionStart", "gemini-cli", **event) == "{}\n"

    def _write(self, line: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


async def test_gemini_cli_gets_the_pack_with_the_first_prompt_and_after_a_compression(agent: Agent) -> None:
    chat = GeminiChat(agent)
    await chat.start("startup")
    assert FACT in (await chat.prompt() or "")
    first = chat.said
    assert await chat.prompt() is None
    await chat.start("resume")
    chat.set(first)
    assert await chat.prompt() is None, "the model still sees it"
    chat.set({"content": "A summary."})
    assert FACT in (await chat.prompt() or "")
    assert await chat.prompt() is None


async def test_a_pack_that_could_not_be_had_comes_with_a_later_prompt(agent: Agent) -> None:
    away = agent.at(NOWHERE)
    await away.hook("SessionStart", "gemini-cli", source="startup")
    assert await away.hook("BeforeAgent", "gemini-cli", prompt="Go on.") == "{}\n"
    assert FACT in await agent.hook("BeforeAgent", "gemini-cli", prompt="Go on.")


async def test_codex_gets_a_pack_again_only_if_a_compaction_has_dropped_it(agent: Agent) -> None:
    first = context(await agent.hook("SessionStart", "codex", source="startup"))
    said = {"type": "response_item", "payload": {"role": "developer", "content": [{"text": f"<hook>{first}</hook>"}]}}
    rollout = agent.home / "rollout-s1.jsonl"
    rollout.write_text(json.dumps(said, ensure_ascii=False, separators=(",", ":")) + "\n")
    resumed = {"source": "resume", "transcript_path": str(rollout)}
    assert await agent.hook("SessionStart", "codex", **resumed) == ""
    with rollout.open("a") as file:
        file.write('{"type":"compacted","payload":{"message":"They set pnpm up."}}\n')
    assert context(await agent.hook("SessionStart", "codex", **resumed)) == first


async def test_a_session_hears_on_request_which_other_projects_have_memories(agent: Agent, url: str) -> None:
    other = agent.home / "other"
    other.mkdir()
    asking = agent.at(url, ESKER_HOOK_ELSEWHERE="on")
    printed = context(await asking.hook("SessionStart", cwd=str(other), source="startup"))
    assert printed == "Esker has no memories of the project other yet. Projects with memories: acme/shop (1)."


async def test_a_session_without_memories_gets_no_context(agent: Agent) -> None:
    other = agent.home / "other"
    other.mkdir()
    assert await agent.hook("SessionStart", cwd=str(other), source="startup") == ""
    assert await agent.hook("session_start", "pi", cwd=str(other), session_id="s2") == "{}\n"


@pytest.mark.parametrize(
    ("client", "event", "size"),
    [("claude-code", "SessionStart", len), ("codex", "SessionStart", lambda text: len(text.encode()))],
)
async def test_a_long_pack_is_cut_between_rows_to_the_clients_limit(
    agent: Agent, url: str, client: str, event: str, size: Any
) -> None:
    rows = [{"content": f"Rule {n}: ä{'x' * 150}.", "project": "acme/shop", "priority": "high"} for n in range(150)]
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        await http.post("/v1/memories/batch", json={"memories": rows})
    text = context(await agent.hook(event, client, source="startup"))
    assert 8_500 < size(text) <= 9_000
    assert "more rows are not shown" in text
    shown = [line for line in text.splitlines() if line.startswith("* ")]
    assert len(shown) > 30
    assert all(line.endswith("x.") or FACT in line for line in shown)


async def test_a_sessions_pack_stays_the_same_until_a_compaction(agent: Agent, url: str) -> None:
    first = await agent.hook("SessionStart", source="startup")
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        await http.post("/v1/memories", json={"content": "The river is the Rhine.", "project": "acme/shop"})
    assert await agent.hook("SessionStart", source="resume") == first
    agent.say("Compacted.")
    after = await agent.hook("SessionStart", source="compact")
    assert "Rhine" in after
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        await http.post("/v1/memories", json={"content": "The hill is the Brocken.", "project": "acme/shop"})
    assert await agent.hook("SessionStart", source="compact") == after, "a repeated event happens once"


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("How did we decide to deploy last time?", True),
        ("Do you remember how we deploy with make?", True),
        ("Wie hatten wir das mit make ship besprochen?", True),
        ("What did I tell you about make ship?", True),
        ("Which way to make and ship did we decide on?", True),
        ("Why did we choose make ship?", True),
        ("Have we used make ship before?", True),
        ("Fix the make ship target.", False),
    ],
)
async def test_a_prompt_that_refers_to_earlier_work_triggers_a_recall(agent: Agent, prompt: str, asked: bool) -> None:
    printed = await agent.hook("UserPromptSubmit", prompt=prompt)
    assert (FACT in printed) is asked
    if asked:
        assert context(printed).startswith("<recalled_memories>")


async def test_a_prompt_without_relevant_memories_gets_no_context(agent: Agent) -> None:
    assert await agent.hook("UserPromptSubmit", prompt="Do you remember the submarine volcano?") == ""


async def test_a_prompt_that_the_user_did_not_type_triggers_no_recall(agent: Agent) -> None:
    asked = {"prompt": "How did we deploy last time?", "source": "loop_wakeup"}
    assert await agent.hook("UserPromptSubmit", **asked) == ""


@pytest.mark.parametrize(("when", "prompt", "asked"), [("off", "How did we deploy?", False), ("always", "make", True)])
async def test_recall_at_prompts_is_configurable(agent: Agent, url: str, when: str, prompt: str, asked: bool) -> None:
    printed = await agent.at(url, ESKER_HOOK_RECALL=when).hook("UserPromptSubmit", prompt=f"{prompt} ship")
    assert (FACT in printed) is asked


# Capture -------------------------------------------------------------------------------------------------------------


async def test_one_clients_facts_are_in_anothers_pack_and_found_by_a_third(agent: Agent, url: str) -> None:
    agent.say("We decided that invoices are numbered by year and never reused.")
    await agent.hook("Stop")
    await until_kept(url, agent.said)
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        [session] = (await client.get("/v1/sessions", params={"external_id": "s1"})).json()["sessions"]
        assert (await client.post(f"/v1/sessions/{session['id']}/observe?wait=true")).status_code == 200
    started = await agent.hook("session_start", "pi", session_id="other")
    assert "invoices are numbered by year" in json.loads(started)["context"]
    asked = await agent.hook(
        "BeforeAgent", "gemini-cli", session_id="third", prompt="What did we decide about invoices?"
    )
    assert "invoices are numbered by year" in asked


@pytest.mark.parametrize("event", ["Stop", "PreCompact", "SessionEnd"])
async def test_new_messages_are_sent_when_a_turn_a_context_or_a_session_ends(
    agent: Agent, url: str, event: str
) -> None:
    agent.say("We use pnpm.", "Never npm.")
    assert await agent.hook(event, trigger="auto", reason="other", stop_hook_active=True) == ""
    await until_kept(url, agent.said)
    agent.say("And no yarn.")
    await agent.hook(event, trigger="auto", reason="other")
    await until_kept(url, agent.said)


async def until_kept(url: str, texts: list[str], external_id: str = "s1", **headers: str) -> None:
    """Wait until a session has exactly these messages; only the suite's timeout limits that."""
    while (there := await kept(url, external_id, **headers)) != texts:
        assert len(there) <= len(texts)
        await asyncio.sleep(LOOK_SECONDS)


async def test_repeated_events_and_parallel_hooks_store_every_message_once_in_order(agent: Agent, url: str) -> None:
    agent.say(*(f"Message {n}." for n in range(300)))
    event_input = {"session_id": "s1", "cwd": str(agent.checkout), "transcript_path": str(agent.transcript)}
    running = [agent.open("claude-code", event) for event in ("Stop", "Stop", "PreCompact", "SessionEnd")]
    for process in running:
        await asyncio.to_thread(process.communicate, json.dumps(event_input).encode(), PATIENCE)
    await until_kept(url, agent.said)
    await agent.hook("Stop")
    assert await kept(url) == agent.said


async def test_a_sub_agents_transcript_is_a_session_of_its_own(agent: Agent, url: str) -> None:
    agent.say("Look for the bug.")
    theirs = agent.transcript.with_name("agent-a1.jsonl")
    line = {"type": "user", "uuid": "x1", "sessionId": "s1", "agentId": "a1", "isSidechain": True, "cwd": "/w"}
    theirs.write_text(json.dumps(line | {"message": {"role": "user", "content": "Search the code."}}) + "\n")
    await agent.hook("SubagentStop", agent_id="a1", agent_transcript_path=str(theirs))
    await until_kept(url, ["Search the code."], "s1/agent-a1")
    assert await kept(url) == []


AT = "2026-11-28T10:00:00Z"
SAID = {"role": "user", "content": "We use pnpm."}
TEXT = [{"type": "input_text", "text": "We use pnpm."}]
TRANSCRIPTS: dict[str, tuple[str, str, list[Any]]] = {
    "codex": (
        "Stop",
        "rollout-2026-11-28T10-00-00-s1.jsonl",
        [
            {"timestamp": AT, "type": "session_meta", "payload": {"id": "s1", "cwd": "/w"}},
            {"timestamp": AT, "type": "response_item", "payload": {"type": "message", "role": "user", "content": TEXT}},
        ],
    ),
    "gemini-cli": (
        "AfterAgent",
        "session-1.jsonl",
        [
            {"sessionId": "s1", "projectHash": "h", "startTime": AT, "lastUpdated": AT, "kind": "main"},
            {"id": "u1", "timestamp": AT, "type": "user", "content": "We use pnpm."},
        ],
    ),
    "cursor": ("stop", "s1.jsonl", [{"role": "user", "message": {"content": [TEXT[0] | {"type": "text"}]}}]),
    "copilot": (
        "agentStop",
        "events.jsonl",
        [
            {
                "type": "session.start",
                "data": {"sessionId": "s1", "context": {"cwd": "/w"}},
                "id": "e1",
                "timestamp": AT,
            },
            {"type": "user.message", "data": {"content": "We use pnpm."}, "id": "e2", "timestamp": AT},
        ],
    ),
    "pi": (
        "agent_end",
        "2026_s1.jsonl",
        [
            {"type": "session", "version": 3, "id": "s1", "timestamp": AT, "cwd": "/w"},
            {"type": "message", "id": "m1", "parentId": None, "timestamp": AT, "message": SAID},
        ],
    ),
}


@pytest.mark.parametrize("client", TRANSCRIPTS)
async def test_every_clients_transcript_goes_to_the_session_of_its_hooks(agent: Agent, url: str, client: str) -> None:
    event, name, lines = TRANSCRIPTS[client]
    start = next(event for event, step in STEPS[client].items() if step == "start")
    await agent.hook(start, client, conversation_id="s1")
    path = agent.home / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    await agent.hook(event, client, transcript_path=str(path), conversation_id="s1")
    await until_kept(url, ["We use pnpm."])
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        [session] = (await http.get("/v1/sessions")).json()["sessions"]
    assert (session["client"], session["external_id"]) == (client, "s1")


async def test_copilots_transcript_is_found_if_its_hook_does_not_name_it(agent: Agent, url: str) -> None:
    path = agent.home / ".copilot" / "session-state" / "s1" / "events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in TRANSCRIPTS["copilot"][2]))
    told = {"sessionId": "s1", "session_id": None}
    assert await agent.hook("userPromptSubmitted", "copilot", prompt="We use pnpm.", **told) == "{}\n"
    assert await agent.hook("sessionEnd", "copilot", reason="complete", **told) == "{}\n"
    await until_kept(url, ["We use pnpm."])


async def test_a_turn_is_sent_although_its_client_has_ended(agent: Agent, url: str) -> None:
    event, name, lines = TRANSCRIPTS["gemini-cli"]
    path = agent.home / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = {"session_id": "s1", "cwd": str(agent.checkout), "transcript_path": str(path)}
    with agent.open("gemini-cli", event) as hook:
        assert hook.stdin is not None
        assert hook.stdout is not None
        assert hook.stderr is not None
        hook.stdout.close()
        hook.stdin.write(json.dumps(told).encode())
        hook.stdin.close()
        assert await asyncio.to_thread(hook.wait, PATIENCE) == 0
        assert hook.stderr.read() == b""
    await until_kept(url, ["We use pnpm."])


def test_hooks_readers_and_installers_know_a_client_by_one_name() -> None:
    assert set(STEPS) == set(CLIENTS) <= set(READERS)


@pytest.mark.parametrize("written", [None, {"type": "last-prompt", "sessionId": "s1", "leafUuid": "u"}])
async def test_the_end_of_a_session_without_messages_leaves_none(agent: Agent, url: str, written: Any) -> None:
    if written:
        agent.transcript.write_text(json.dumps(written) + "\n")
    await agent.hook("SessionEnd", reason="other", transcript_path=str(agent.transcript))
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert (await client.get("/v1/sessions")).json()["sessions"] == []


async def test_only_the_hooks_session_of_opencodes_database_is_sent(agent: Agent, url: str) -> None:
    data = agent.home / ".local" / "share" / "opencode"
    data.mkdir(parents=True)
    store = OpenCodeStore(data / "opencode.db")
    with closing(store.connection):
        for name, words in (("ses_a", "We use pnpm."), ("ses_b", "Something else.")):
            store.session(name)
            store.message(name, f"{name}.m", "user", {"type": "text", "text": words, "time": {"start": 1, "end": 2}})
    assert await agent.hook("session.idle", "opencode", session_id="ses_a") == "{}\n"
    await until_kept(url, ["We use pnpm."], "ses_a")
    assert await kept(url, "ses_b") == []


async def test_a_prompt_is_stored_once_whether_a_hook_told_it_or_opencodes_store(agent: Agent, url: str) -> None:
    said = {"session_id": "ses_a", "prompt": "We use pnpm.\nAnd vite.", "by_agent": False}
    parts = [{"id": "ses_a.m.0", "text": "We use pnpm."}, {"id": "ses_a.m.1", "text": "And vite."}]
    await agent.hook("chat.message", "opencode", parts=parts, **said)
    order = {"session_id": "ses_b", "prompt": "List the files.", "by_agent": True}
    await agent.hook("chat.message", "opencode", parts=[{"id": "ses_b.m.0", "text": "List the files."}], **order)
    await until_kept(url, ["We use pnpm.", "And vite."], "ses_a")
    data = agent.home / ".local" / "share" / "opencode"
    data.mkdir(parents=True)
    store = OpenCodeStore(data / "opencode.db")
    with closing(store.connection):
        store.session("ses_a")
        store.session("ses_b", parent="ses_a")
        texts = [{"type": "text", "text": text} for text in ("We use pnpm.", "And vite.")]
        store.message("ses_a", "ses_a.m", "user", *texts)
        store.message("ses_b", "ses_b.m", "user", {"type": "text", "text": "List the files."})
        store.message("ses_a", "ses_a.n", "assistant", {"type": "text", "text": "Noted."})
    elsewhere = agent.at(url, ESKER_STATE_DIR=str(agent.home / "other-state"))
    for session in ("ses_b", "ses_a"):
        await elsewhere.hook("session.idle", "opencode", session_id=session)
    await until_kept(url, ["We use pnpm.", "And vite.", "Noted."], "ses_a")
    await until_kept(url, ["List the files."], "ses_b")
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        [child] = (await http.get("/v1/sessions", params={"external_id": "ses_b"})).json()["sessions"]
        stored = (await http.get(f"/v1/sessions/{child['id']}/messages")).json()["messages"]
    assert [message["role"] for message in stored] == ["assistant"]


async def test_a_session_without_a_transcript_gets_its_messages_from_hooks(agent: Agent, url: str) -> None:
    asked = {"transcript_path": None, "turn_id": "t1"}
    for _ in range(2):
        await agent.hook("UserPromptSubmit", "codex", prompt="Use pnpm here.", **asked)
        await agent.hook("Stop", "codex", last_assistant_message="I shall use pnpm.", **asked)
    await until_kept(url, ["Use pnpm here.", "I shall use pnpm."])


async def test_a_prompt_without_a_transcript_is_kept_before_its_hook_ends(agent: Agent) -> None:
    before = system_clock()
    await agent.at(NOWHERE).hook("UserPromptSubmit", "codex", prompt="Use pnpm here.", transcript_path=None)
    [parcel] = (agent.state / "spool").glob("*.json")
    [message] = json.loads(parcel.read_text())["messages"]
    assert message["content"] == "Use pnpm here."
    assert before <= datetime.fromisoformat(message["sent_at"]) <= system_clock(), "its time is not the delivery's"


async def test_an_excluded_project_is_neither_read_nor_given_context(agent: Agent, url: str) -> None:
    excluded = agent.at(url, ESKER_EXCLUDE="other/*, acme/shop")
    excluded.say("A secret plan.")
    assert await excluded.hook("SessionStart", source="startup") == ""
    assert await excluded.hook("UserPromptSubmit", prompt="How did we deploy last time?") == ""
    await excluded.hook("Stop")
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert (await client.get("/v1/sessions")).json()["sessions"] == []


async def test_the_list_of_exclusions_holds_in_any_environment(agent: Agent, url: str) -> None:
    agent.say("A secret plan.")
    ExclusionList(agent.state).add(["acme/shop"])
    assert await agent.hook("SessionStart", source="startup") == ""
    await agent.hook("Stop")
    assert await kept(url) == []
    (agent.state / "exclude").write_text("/a/{b\n")
    await agent.hook("Stop")
    assert await kept(url) == [], "a list that is not valid may exclude anything"
    assert f"{agent.state / 'exclude'}: " in (agent.state / "hooks.log").read_text()


async def test_the_options_of_an_installed_hook_take_precedence_over_the_environment(agent: Agent, url: str) -> None:
    elsewhere = agent.at(NOWHERE, ESKER_STATE_DIR=str(agent.home / "elsewhere"))
    asked = {"session_id": "s1", "cwd": str(agent.checkout), "source": "startup"}
    options = ["--url", url, "--state-dir", str(agent.state)]
    ExclusionList(agent.state).add(["/nowhere"])
    assert FACT in context(await elsewhere.run("claude-code", "SessionStart", json.dumps(asked).encode(), *options))
    ExclusionList(agent.state).add([str(agent.checkout)])
    assert await elsewhere.run("claude-code", "SessionStart", json.dumps(asked).encode(), *options) == ""


async def test_nothing_of_an_excluded_session_is_sent_by_other_events(agent: Agent, url: str) -> None:
    agent.say("A secret plan.")
    elsewhere = agent.home / "elsewhere"
    elsewhere.mkdir()
    excluded = agent.at(url, ESKER_EXCLUDE=str(agent.checkout))
    for event in ("Stop", "SessionEnd"):
        await excluded.hook(event, cwd=str(elsewhere), last_assistant_message="The plan is ready.", reason="other")
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        assert (await client.get("/v1/sessions")).json()["sessions"] == []


async def test_an_answer_is_stored_once_even_if_its_transcript_comes_late(agent: Agent, url: str) -> None:
    await agent.hook("Stop", transcript_path=str(agent.transcript), last_assistant_message="I shall use pnpm.")
    agent.say("We use pnpm.", "I shall use pnpm.")
    await agent.hook("Stop")
    await until_kept(url, agent.said)


async def test_a_prompt_is_stored_once_even_if_its_transcript_begins_later(agent: Agent, url: str) -> None:
    for n in (1, 2):
        await agent.hook("UserPromptSubmit", prompt="Go on.", transcript_path=None, prompt_id=f"p{n}")
    await until_kept(url, ["Go on.", "Go on."])
    agent.say("Go on.", "Go on.", "Shipped.", "Go on.")
    for _ in range(2):
        await agent.hook("Stop")
    await until_kept(url, agent.said)
    agent.say("Go on.")
    await agent.hook("Stop")
    await until_kept(url, agent.said)


async def test_a_parcel_that_cannot_be_spooled_is_sent_at_once(agent: Agent, url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = agent.at(url, ESKER_STATE_DIR=str(tmp_path / "file" / "state"))
    await blocked.hook("Stop", "codex", transcript_path=None, turn_id="t1", last_assistant_message="Done.")
    await until_kept(url, ["Done."])


async def test_a_transcript_of_an_excluded_directory_is_never_sent(agent: Agent, url: str) -> None:
    agent.say("A secret plan.")
    elsewhere = agent.home / "elsewhere"
    elsewhere.mkdir()
    await agent.at(url, ESKER_EXCLUDE=str(agent.checkout)).hook("Stop", cwd=str(elsewhere))
    assert await kept(url) == []


async def test_a_session_is_stored_up_to_its_entry_into_an_excluded_directory(agent: Agent, url: str) -> None:
    private = agent.home / "private"
    private.mkdir()
    there = agent.at(url, ESKER_EXCLUDE=str(private))
    there.say("We use pnpm.")
    line = {"type": "user", "uuid": "p1", "sessionId": "s1", "cwd": str(private), "timestamp": "2026-11-28T10:00:01Z"}
    with agent.transcript.open("a") as file:
        file.write(json.dumps(line | {"message": {"role": "user", "content": "A secret plan."}}) + "\n")
    assert await there.hook("UserPromptSubmit", cwd=str(private), prompt="How did we deploy last time?") == ""
    await there.hook("SessionEnd", cwd=str(private), reason="other")
    await until_kept(url, ["We use pnpm."])
    async with httpx2.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        [session] = (await client.get("/v1/sessions", params={"external_id": "s1"})).json()["sessions"]
    assert session["cwd"] == str(agent.checkout)


# Unreachable servers -------------------------------------------------------------------------------------------------


async def test_unsendable_messages_are_spooled_and_sent_in_order_by_the_next_hook(agent: Agent, url: str) -> None:
    away = agent.at(NOWHERE)
    away.say("First.")
    await away.hook("Stop")
    spool = agent.state / "spool"
    await until_spooled(spool, 1)
    away.say("Second.")
    await away.hook("Stop")
    await until_spooled(spool, 2)
    readdress(spool, NOWHERE, url)
    agent.say("Third.")
    await agent.hook("Stop")
    await until_kept(url, ["First.", "Second.", "Third."])
    assert list(spool.glob("*.json")) == []


async def until_spooled(spool: Path, count: int) -> None:
    """Wait until a spool has this many parcels; only the suite's timeout limits that."""
    while len(list(spool.glob("*.json"))) < count:  # noqa: ASYNC110, ASYNC240 - another process writes it
        await asyncio.sleep(LOOK_SECONDS)


def readdress(spool: Path, old: str, new: str) -> None:
    """Readdress parcels, as if the server had come back at its old address."""
    from esker.server.agents.spool import address  # noqa: PLC0415

    for path in list(spool.glob("*.json")):
        path.rename(path.with_name(path.name.replace(address(old, None), address(new, None))))


async def test_a_killed_server_has_every_message_when_it_is_back(tmp_path: Path) -> None:
    data = made_at(tmp_path / "data")
    with served("--data-dir", data) as (process, said):
        agent = Agent(tmp_path / "home", said["url"])
        port = said["url"].rpartition(":")[2]
        agent.say("First.")
        await agent.hook("Stop")
        process.kill()
        await asyncio.to_thread(process.wait)
    for text in ("Second.", "Third."):
        agent.say(text)
        await agent.hook("Stop")
    await agent.hook("SessionEnd", reason="other")
    await until_spooled(agent.state / "spool", 3)
    agent.transcript.unlink()
    with served("--data-dir", data, "--port", port, ESKER_STATE_DIR=str(agent.state), ESKER_URL=said["url"]) as _:
        await until_kept(said["url"], ["First.", "Second.", "Third."])
        async with httpx2.AsyncClient(base_url=said["url"], timeout=PATIENCE) as client:
            [session] = (await client.get("/v1/sessions", params={"external_id": "s1"})).json()["sessions"]
            while (await client.get(f"/v1/sessions/{session['id']}")).json()["observed_messages"] < 3:  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)
    assert list((agent.state / "spool").glob("*.json")) == []


async def test_no_secret_of_a_transcript_is_in_the_spool(agent: Agent) -> None:
    secret = "sk-ant-" + "api03x7q" * 5
    away = agent.at(NOWHERE)
    away.say(f"The key is {secret}.")
    await away.hook("Stop")
    await until_spooled(agent.state / "spool", 1)
    for path in agent.state.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()
            assert path.stat().st_mode & 0o077 == 0, path


async def test_a_key_that_is_refused_loses_nothing(agent: Agent, url: str, parts: Parts) -> None:
    key = (await create_key(parts, name="a", pool="default", scopes=["read", "write"])).key
    agent.say("First.")
    await agent.hook("Stop")
    await until_spooled(agent.state / "spool", 1)
    await agent.at(url, ESKER_KEY=key).hook("Stop")
    await until_kept(url, ["First."], Authorization=f"Bearer {key}")


async def test_a_refused_key_is_reported_to_the_clients_user_once_a_day(agent: Agent, url: str, parts: Parts) -> None:
    await create_key(parts, name="a", pool="default", scopes=["read", "write"])
    printed = json.loads(await agent.hook("SessionStart", source="startup"))
    assert printed.keys() == {"systemMessage"}
    assert f"{url} refuses this client's key" in printed["systemMessage"]
    assert "esker install claude-code --with-key" in printed["systemMessage"]
    assert await agent.hook("UserPromptSubmit", prompt="How did we deploy last time?") == ""
    assert json.loads(await agent.hook("session_start", "pi"))["notice"], "another client has another user interface"
    [(count, last)] = [HookLog(agent.state).failures()["claude-code"]]
    assert count == 2
    assert "UserPromptSubmit" in last


async def test_a_key_of_another_project_is_reported_without_advice_to_set_it(
    agent: Agent, url: str, parts: Parts
) -> None:
    made = await create_key(parts, name="a", pool="default", project="acme/other")
    printed = json.loads(await agent.at(url, ESKER_KEY=made.key).hook("SessionStart", source="startup"))
    assert "'acme/other'" in printed["systemMessage"]
    assert "Set ESKER_KEY" not in printed["systemMessage"]


async def test_hooks_do_not_wait_again_for_a_server_that_has_just_been_silent(agent: Agent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hole:
        lost = agent.at(f"http://127.0.0.1:{hole.getsockname()[1]}", ESKER_HOOK_SECONDS="0.2")
        lost.say("Hello.")  # so the prompt is read from the transcript and not sent by its own hook
        await lost.hook("SessionStart", source="startup")
        hole.setblocking(False)
        with suppress(BlockingIOError):
            hole.accept()[0].close()
        assert await lost.hook("UserPromptSubmit", prompt="How did we deploy last time?") == ""
        with pytest.raises(BlockingIOError):
            hole.accept()


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"])
async def test_a_server_that_never_answers_does_not_block_the_agent(agent: Agent, event: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hole:
        lost = agent.at(f"http://127.0.0.1:{hole.getsockname()[1]}", ESKER_HOOK_SECONDS="0.2")
        lost.say("Hello.")
        given = {"session_id": "s1", "cwd": str(lost.checkout), "transcript_path": str(lost.transcript)}
        given |= {"prompt": "How did we deploy last time?", "source": "startup"}
        assert await lost.run_alone("claude-code", event, json.dumps(given).encode()) == ""


# Unusual input -------------------------------------------------------------------------------------------------------


HOSTILE = [
    b"",
    b"{",
    b"null",
    b"[1]",
    b'"text"',
    b"\xff\xfe\x00",
    b"{}",
    b'{"session_id": null}',
    b'{"session_id": 7, "cwd": [], "transcript_path": {}, "prompt": 3}',
    b'{"session_id": "s1", "cwd": null, "transcript_path": null}',
    b'{"session_id": "s1", "cwd": "/nowhere", "transcript_path": "/nowhere/at/all.jsonl"}',
    b'{"session_id": "s1", "cwd": "", "transcript_path": "/"}',
    b'{"session_id": "\\ud83d\\u0000", "cwd": "\\u0000", "prompt": "remember when \\ud83d"}',
    b'{"session_id": "' + b"s" * 5_000 + b'", "workspace_roots": [3]}',
    b'{"a":' * 5_000,
]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "Stop"])
async def test_a_hook_succeeds_with_any_input(agent: Agent, event: str) -> None:
    for given in HOSTILE:
        printed = await agent.run("claude-code", event, given)
        assert not printed or json.loads(printed), given


@pytest.mark.parametrize("around", [(b"\xef\xbb\xbf", b""), (b"\r\n ", b"\r\n"), (b"", b"\x00\n{}"), (b"", b" }")])
async def test_text_around_the_json_object_is_ignored(agent: Agent, around: tuple[bytes, bytes]) -> None:
    event_input = json.dumps({"session_id": "s1", "cwd": str(agent.checkout), "source": "startup"}).encode()
    assert FACT in context(await agent.run("claude-code", "SessionStart", event_input.join(around)))


@pytest.mark.parametrize(("client", "event"), [("gemini-cli", "BeforeAgent"), ("cursor", "stop"), ("pi", "agent_end")])
async def test_a_client_that_expects_json_always_gets_json(agent: Agent, client: str, event: str) -> None:
    for asked in (agent.at(NOWHERE), agent.at(NOWHERE, ESKER_HOOK_RECALL="?"), agent.at(NOWHERE, IN_ESKER_HOOK="1")):
        assert await asked.hook(event, client, prompt="How did we deploy last time?") == "{}\n"
    assert await agent.run(client, "nothing", b"") == "{}\n"


async def test_a_wrong_setting_is_logged_and_fails_no_hook(agent: Agent, url: str) -> None:
    assert await agent.at(url, ESKER_HOOK_RECALL="sometimes").hook("UserPromptSubmit", prompt="last time?") == ""
    assert "ESKER_HOOK_RECALL" in (agent.state / "hooks.log").read_text()


async def test_another_terminal_encoding_does_not_suppress_the_context(agent: Agent, url: str) -> None:
    elsewhere = agent.at(url, PYTHONIOENCODING="latin-1")
    event_input = json.dumps({"session_id": "s1", "cwd": str(agent.checkout), "source": "startup"})
    assert FACT in context(await elsewhere.run_alone("claude-code", "SessionStart", event_input.encode()))


@pytest.mark.parametrize("arguments", [("claude-code", "Nothing"), ("nobody", "Stop"), ("", "")])
async def test_an_unknown_client_or_event_is_logged_and_the_hook_succeeds(
    agent: Agent, arguments: tuple[str, str]
) -> None:
    assert await agent.run(*arguments, b"{}") == ""
    assert "Unknown" in (agent.state / "hooks.log").read_text()


async def test_an_open_input_does_not_delay_the_hook(agent: Agent) -> None:
    event_input = {"session_id": "s1", "cwd": str(agent.checkout), "source": "startup"}
    with agent.open("claude-code", "SessionStart") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(event_input).encode())
        process.stdin.flush()
        assert FACT in (await asyncio.to_thread(process.stdout.read)).decode()
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0


async def test_a_missing_input_does_not_block_the_hook(agent: Agent) -> None:
    with agent.open("claude-code", "SessionStart") as process:
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0


async def test_a_hook_inside_a_hook_does_nothing(agent: Agent, url: str) -> None:
    inside = agent.at(url, IN_ESKER_HOOK="1")
    inside.say("Hello.")
    assert await inside.hook("SessionStart", source="startup") == ""
    assert await inside.hook("Stop") == ""
    assert not agent.state.exists()


async def test_an_unwritable_state_folder_fails_no_hook(agent: Agent, url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = agent.at(url, ESKER_STATE_DIR=str(tmp_path / "file" / "state"))
    blocked.say("Hello.")
    assert FACT in await blocked.hook("SessionStart", source="startup")
    assert await blocked.hook("Stop") == ""


def test_a_hook_needs_nothing_but_the_standard_library_to_start() -> None:
    program = (
        "import json, sys; before = set(sys.modules); import esker.server.cli.entry, esker.server.agents.hooks;"
        "print(json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    there: list[str] = json.loads(subprocess.check_output([sys.executable, "-c", program], cwd=ROOT))
    # Built-in modules belong to the standard library, too; the interpreter's `site` may import certifi.
    others = {name for name in there if not name.startswith("_sysconfigdata")} - set(sys.stdlib_module_names)
    assert others - {"certifi"} == {"esker"}
