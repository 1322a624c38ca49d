"""The NiceEval chain: coding tasks in one repository, of which some set rules and others need them.

The folder has, for each task, `events.json` (messages and tool calls, without times) and `result.json` (start and
duration). The rules are in a file of ours.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import JsonObject
from evals.case_files import OWN
from evals.histories.cases import Rules, Sitting, Task
from evals.histories.evidence import Evidence
from evals.input import expected, json_of
from evals.observation.cases import CaseMessage
from evals.scoring.gold import Atom

Blocks = list[dict[str, Any]]

RULES = OWN / "niceeval-toggl.json"


def read_chain(path: Path, rules_file: Path = RULES) -> tuple[str, list[Task]]:
    """Return the name of the chain and its tasks: first those that set rules, then those that need some.

    Raises InvalidInput if a transcript is missing.
    """
    with expected("file of rules", rules_file, "docs/evals.md shows one."):
        rules = Rules.model_validate(json_of(rules_file))
    with expected("chain of NiceEval", path, "Name the folder that has the transcripts of its tasks."):
        return rules.chain, [*_tasks(path, rules)]


def _tasks(path: Path, rules: Rules) -> Iterator[Task]:
    set_by: dict[str, list[Atom]] = {}
    for name, its in rules.sets.items():
        sitting = Sitting(id=name, messages=tuple(_messages(_folder(path, name), name)))
        prompts = [
            message for message in sitting.messages if message.role == "user" and isinstance(message.content, str)
        ]
        evidence = Evidence(prompts)
        sets: list[Atom] = []
        for rule in its:
            if rule.turn > len(prompts):
                raise InvalidInput(f"{name} has no turn {rule.turn}, which should set {rule.rule}.")
            sets.append(evidence.made(rule.fact, rule.exact, [prompts[rule.turn - 1].id], by="user"))
            set_by.setdefault(rule.rule, []).append(sets[-1])
        about = f"Sets {', '.join(dict.fromkeys(rule.rule for rule in its))}."
        yield Task(case=name, language="en", about=about, sitting=sitting, sets=tuple(sets))
    for name, needed in rules.needs.items():
        prompt = next(message.text for message in _messages(_folder(path, name), name) if message.role == "user")
        needs = tuple(atom for rule in needed for atom in set_by[rule])
        about = f"Needs {', '.join(needed)} without stating them."
        yield Task(case=name, language="en", about=about, prompt=prompt, needs=needs)


def _folder(path: Path, task: str) -> Path:
    """Return the folder of a task's transcript, at any depth."""
    found = next(iter(sorted(path.rglob(f"{task}/events.json"))), None)
    if found is None:
        raise InvalidInput(f"There is no {task}/events.json in {path}.", hint="Name the folder of the chain.")
    return found.parent


def _messages(folder: Path, task: str) -> Iterator[CaseMessage]:
    events, result = json_of(folder / "events.json"), json_of(folder / "result.json")
    began, lasted = datetime.fromisoformat(result["startedAt"]), timedelta(milliseconds=result["durationMs"])
    for place, event in enumerate(events):
        # The events have no times: spread them evenly over the duration.
        at = began + lasted * place / len(events)
        if message := _message(event):
            role, content = message
            yield CaseMessage(id=f"{task}.{place}", role=role, at=at, content=content)


def _output(event: JsonObject) -> str:
    match event.get("output"):
        case {"output": str(text)}:
            return text
        case None:
            return ""
        case other:
            return json.dumps(other, ensure_ascii=False)


def _message(event: JsonObject) -> tuple[Any, str | Blocks] | None:
    """Return role and content of an event; None if it is not part of the conversation."""
    match event["type"]:
        case "message":
            return event["role"], event["text"]
        case "operation.started":
            used = event["operation"]
            call = {"type": "tool_use", "id": event["operationId"], "name": used["name"], "input": used["input"]}
            return "assistant", [call]
        case "operation.finished":
            result: JsonObject = {"type": "tool_result", "tool_use_id": event["operationId"], "content": _output(event)}
            return "user", [result | {"is_error": event.get("status") == "failed"}]
        case _:
            return None
