"""Executables that behave as agent CLIs do in their headless mode; what they print is scripted."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCRIPT = """#!{python}
import json, os, sys
here = {here!r}
text = sys.stdin.read()
with open(os.path.join(here, "calls.jsonl"), "a") as calls:
    calls.write(json.dumps({{"argv": sys.argv[1:], "text": text, "environ": dict(os.environ), "cwd": os.getcwd(),
                            "nice": os.nice(0)}}) + "\\n")
{body}
"""


@dataclass(frozen=True, slots=True)
class ScriptedClient:
    """A client that was written into a directory of its own."""

    folder: Path
    name: str

    @property
    def environ(self) -> dict[str, str]:
        """Return an environment in which it is found, and a state directory beside it."""
        return {
            "PATH": f"{self.folder}:/usr/bin:/bin",
            "HOME": str(self.folder),
            "ESKER_STATE_DIR": str(self.folder / "state"),
        }

    def does(self, body: str) -> None:
        """Set what it does after it has read its input, as Python."""
        file = self.folder / self.name
        file.write_text(_SCRIPT.format(python=sys.executable, here=str(self.folder), body=body))
        file.chmod(0o755)

    def prints(self, text: str, code: int = 0) -> None:
        """Let it print a text and end."""
        self.does(f"sys.stdout.write({text!r})\nsys.exit({code})")

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Return its calls: arguments, input, environment and directory."""
        log = self.folder / "calls.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def said_by(name: str, text: str) -> str:
    """Return what a client prints when its model says a text, with 100 tokens read, 7 of the cache, and 20 written."""
    match name:
        case "claude":
            usage = {"input_tokens": 93, "cache_read_input_tokens": 7, "output_tokens": 20}
            said = {"type": "result", "subtype": "success", "is_error": False, "result": text, "usage": usage}
            return json.dumps(said) + "\n"
        case "codex":
            usage = {"input_tokens": 100, "cached_input_tokens": 7, "output_tokens": 20}
            events: list[dict[str, Any]] = [
                {"type": "thread.started", "thread_id": "t"},
                {"type": "turn.started"},
                {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
                {"type": "item.completed", "item": {"type": "agent_message", "text": text}},
                {"type": "turn.completed", "usage": usage},
            ]
        case "gemini":
            tokens = {"prompt": 100, "cached": 7, "candidates": 15, "thoughts": 5}
            said = {"response": text, "stats": {"models": {"flash": {"tokens": tokens}}}}
            return json.dumps(said, indent=2)
        case _:
            tokens = {"input": 93, "output": 15, "reasoning": 5, "cache": {"read": 7, "write": 0}}
            events = [
                {"type": "step_start", "part": {}},
                {"type": "text", "part": {"type": "text", "text": text}},
                {"type": "step_finish", "part": {"reason": "stop", "tokens": tokens}},
            ]
    return "".join(json.dumps(event) + "\n" for event in events)
