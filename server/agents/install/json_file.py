"""A JSON file of a client: Esker's members and hooks among those of others."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from esker.server.agents import json_text
from esker.server.agents.install.client import SERVER
from esker.server.agents.json_text import Node, WrongShape, find, parse, value_of
from esker.server.core.json_input import Json

_HOOKS = "hooks"
# A shell word, quoted or not.
_QUOTED = r"""(?:'[^']*'|"[^"]*"|[^\s'"&|;<>()])+"""


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook: `entry` is the element in the list of its event, `handler` the part of it that names the command."""

    event: str
    handler: dict[str, Json]
    entry: dict[str, Json]


def grouped(event: str, handler: dict[str, Json], **group: Json) -> Hook:
    """Return a hook in a group of its own; `group` has the other members of the group, such as a matcher."""
    return Hook(event, handler, {**group, _HOOKS: [handler]})


@dataclass(frozen=True, slots=True)
class JsonFile:
    """Members by path, hooks of `client`, and members that the client requires (`needed`)."""

    whole: ClassVar[bool] = False
    path: Path
    client: str
    members: Mapping[tuple[str, ...], Json] = field(default_factory=dict[tuple[str, ...], Json])
    hooks: tuple[Hook, ...] = ()
    needed: Mapping[str, Json] = field(default_factory=dict[str, Json])

    def put(self, text: str) -> str:
        """Return the text with Esker's members and hooks, each once, in the place of older ones."""
        for key, value in self.needed.items():
            text = text if _at(text, (key,)) else json_text.put(text, (key,), value)
        for path, value in self.members.items():
            text = json_text.put(text, path, value)
        if not self.hooks:
            return text
        for event in _events(text) - {hook.event for hook in self.hooks}:
            text = self._without_hook(text, event, "")
        for hook in self.hooks:
            text = self._with_hook(text, hook)
        return text

    def remove(self, text: str, original: str | None) -> str | None:
        """Return the text without Esker's members and hooks, and without containers that this leaves empty."""
        before = original or ""
        for path in self.members:
            text = _without(text, path, before)
        if self.hooks:
            for event in sorted(_events(text)):
                text = self._without_hook(text, event, before)
        remaining_members = value_of(parse(text)) if text.strip() else {}
        return None if original is None and remaining_members in ({}, dict(self.needed)) else text

    def _with_hook(self, text: str, hook: Hook) -> str:
        paths = list(self._our_paths(text, hook.event))
        if not paths:
            return json_text.append(text, (_HOOKS, hook.event), hook.entry)
        for path in reversed(paths[1:]):
            text = json_text.remove(text, path)
        # A group that also has handlers of others belongs to them, so replace only our handler.
        wanted = hook.entry if len(paths[0]) == 3 else hook.handler
        node = _at(text, paths[0])
        return text if node and value_of(node) == wanted else json_text.replace(text, paths[0], wanted)

    def _without_hook(self, text: str, event: str, original: str) -> str:
        paths = list(self._our_paths(text, event))
        for path in reversed(paths):
            text = json_text.remove(text, path)
        return _pruned(text, (_HOOKS, event), original) if paths else text

    def _our_paths(self, text: str, event: str) -> Iterator[tuple[str | int, ...]]:
        """Yield the paths of Esker's groups, and of its handlers in groups that also have others."""
        array = _at(text, (_HOOKS, event))
        if array is None or value_of(array) is None:
            return
        if array.opening != "[":
            raise WrongShape(f"{_HOOKS}.{event} is not a list")
        for index, element in enumerate(array.entries):
            entry = value_of(element.node)
            handlers = entry.get(_HOOKS) if isinstance(entry, dict) else None
            if not isinstance(handlers, list):
                if self._is_ours(entry, event):
                    yield (_HOOKS, event, index)
                continue
            our_numbers = [number for number, handler in enumerate(handlers) if self._is_ours(handler, event)]
            if our_numbers and len(our_numbers) == len(handlers):
                yield (_HOOKS, event, index)
            else:
                yield from ((_HOOKS, event, index, _HOOKS, number) for number in our_numbers)

    def _is_ours(self, handler: Json, event: str) -> bool:
        command = handler.get("command") if isinstance(handler, dict) else None
        options = rf"( --(url|state-dir)[ =]{_QUOTED})*"
        pattern = rf"\b{SERVER}(\.exe)?['\"]? hook{options} {re.escape(self.client)} {re.escape(event)}\s*$"
        return isinstance(command, str) and re.search(pattern, command) is not None


def _at(text: str, path: json_text.Path) -> Node | None:
    return find(parse(text), path) if text.strip() else None


def _events(text: str) -> set[str]:
    hooks = _at(text, (_HOOKS,))
    if hooks is None or value_of(hooks) is None:
        return set()
    if hooks.opening != "{":
        raise WrongShape(f"{_HOOKS} is not an object")
    return {entry.key or "" for entry in hooks.entries}


def _without(text: str, path: tuple[str, ...], original: str) -> str:
    if _at(text, path) is None:
        return text
    while _at(text, path) is not None:  # otherwise an earlier member with the same key would take effect
        text = json_text.remove(text, path)
    return _pruned(text, path[:-1], original)


def _pruned(text: str, path: tuple[str, ...], original: str) -> str:
    """Return the text without the objects and arrays on a path that are empty and were not in the original."""
    while path and (node := _at(text, path)) and not node.entries and _at(original, path) is None:
        pruned = json_text.remove(text, path)
        if _at(pruned, path) is not None:  # an earlier member with the same key, which had no effect
            break
        text, path = pruned, path[:-1]
    return text
