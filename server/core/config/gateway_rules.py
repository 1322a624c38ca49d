"""The gateway's settings: to which providers it passes requests on, and in which mode for which client and project."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal, get_args
from urllib.parse import urlsplit

from esker.server.core.errors import InvalidInput
from esker.server.core.project_names import project_name

GatewayMode = Literal["off", "watch", "pack", "manage"]
"""`off` passes on and reads nothing, `watch` also keeps the transcript, `pack` also puts the pack into requests, and
`manage` also leaves observed turns of long histories out."""
MODES: Mapping[str, GatewayMode] = {mode: mode for mode in get_args(GatewayMode)}

UPSTREAMS: Mapping[str, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "chatgpt": "https://chatgpt.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
"""The addresses of the providers that are always there."""
SWITCH: Mapping[str, bool] = {"on": True, "off": False}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
_RECALL: Mapping[str, bool] = {"+recall": True, "-recall": False}
"""The ends of a rule's mode that offer the tool `recall_memory`, or do not."""


@dataclass(frozen=True, slots=True)
class Senders:
    """A client, or with `project` its sessions there; both may contain the wildcard `*`."""

    client: str
    project: str | None

    def applies(self, client: str, project: str | None) -> bool:
        """Return whether a client in a project is one of them."""
        if not fnmatchcase(client, self.client):
            return False
        return self.project is None or fnmatchcase(project_name(project or ""), self.project)


@dataclass(frozen=True, slots=True)
class GatewayRule(Senders):
    """The mode for some senders, and whether their models get the tool `recall_memory`; None: as usual."""

    mode: GatewayMode
    recall: bool | None = None


def read_upstreams(text: str) -> dict[str, str]:
    """Return addresses by name from `name=https://…, name=…`. Raises ValueError."""
    found: dict[str, str] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, address = map(str.strip, entry.partition("="))
        if not _NAME.fullmatch(name):
            raise ValueError(f"{entry!r} must be written as name=address, with a name in lower case")
        found[name] = checked_address(address)
    return found


def checked_address(address: str) -> str:
    """Return the address of a provider without a slash at its end. Raises ValueError."""
    parsed = urlsplit(address)
    if parsed.scheme not in ("http", "https") or not parsed.hostname or parsed.query or parsed.fragment:
        raise ValueError(f"{address!r} must be an address that begins with https:// or http://")
    if parsed.username or parsed.password:
        raise ValueError("an address must not contain a password: clients send their own keys")
    return address.rstrip("/")


def read_rules(text: str) -> tuple[GatewayRule, ...]:
    """Return rules from `client=mode, client@project=mode+recall, client=mode-recall`. Raises ValueError."""
    found: list[GatewayRule] = []
    for entry in filter(None, map(str.strip, text.split(","))):
        who, _, wanted = map(str.strip, entry.rpartition("="))
        client, _, project = who.partition("@")
        end = next(filter(wanted.endswith, _RECALL), "")
        mode = wanted.removesuffix(end)
        if not client or mode not in MODES:
            raise ValueError(
                f"{entry!r} must be written as client=mode or client@project=mode, and +recall or -recall may follow;"
                f" modes: {', '.join(MODES)}"
            )
        found.append(GatewayRule(client, project_name(project) or None, MODES[mode], _RECALL.get(end)))
    return tuple(found)


def read_senders(text: str) -> tuple[Senders, ...]:
    """Return senders from `client, client@project`; `on` means all of them, `off` none. Raises ValueError."""
    if text.strip().lower() in SWITCH:
        return (Senders("*", None),) if SWITCH[text.strip().lower()] else ()
    found: list[Senders] = []
    for entry in filter(None, map(str.strip, text.split(","))):
        client, _, project = entry.partition("@")
        if not client or "=" in entry:
            raise ValueError(f"{entry!r} must be written as client or client@project; or the whole as on or off")
        found.append(Senders(client, project_name(project) or None))
    return tuple(found)


def read_switch(text: str) -> bool | None:
    """Return what a sender asks for with `on` or `off`; None for an empty text. Raises InvalidInput."""
    name = text.strip().lower()
    if name and name not in SWITCH:
        raise InvalidInput(f"{text[:40]!r} must be on or off, to offer the tool recall_memory or not.")
    return SWITCH.get(name)


def read_mode(text: str) -> GatewayMode | None:
    """Return a mode that a sender asks for, in any case; None for an empty text. Raises InvalidInput.

    A mode that is misspelt must not become the usual one: the sender may have meant `off`.
    """
    name = text.strip().lower()
    if not name:
        return None
    if name not in MODES:
        raise InvalidInput(f"{text[:40]!r} is not a mode of the gateway; the modes are: {', '.join(MODES)}.")
    return MODES[name]


def rule_for(rules: Sequence[GatewayRule], client: str, project: str | None) -> GatewayRule | None:
    """Return the first rule that applies, or None."""
    return next((rule for rule in rules if rule.applies(client, project)), None)
