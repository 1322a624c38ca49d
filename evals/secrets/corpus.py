"""Makes synthetic secrets in their contexts, and harmless lines, from the templates in `corpus.toml`."""

import json
import random
import re
import string
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esker.server.core.json_input import Json

_CORPUS = Path(__file__).with_name("corpus.toml")
_CLASSES = {
    "an": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "low": string.ascii_lowercase + string.digits,
    "up": string.ascii_uppercase + string.digits,
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "dig": string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "std": string.ascii_letters + string.digits + "+/",
}
_SLOT = re.compile(r"<(?P<kind>[A-Za-z]+) (?P<count>\d+)>")
_SYLLABLES = ("ka", "lo", "mi", "ter", "sun", "bar", "vel", "no", "pri", "gan", "tos", "el")
# A shorter secret is looked for whole; of a longer one the end must not be left.
_TAIL = 16


@dataclass(frozen=True, slots=True)
class Case:
    """A text with a secret, and the part of the secret that must not be left of it."""

    group: str
    family: str
    content: Json
    needle: str


class Maker:
    """Makes texts from templates; the same seed makes the same texts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self._templates: dict[str, Any] = tomllib.loads(_CORPUS.read_text(encoding="utf-8"))

    def secrets(self) -> Iterator[Case]:
        """Yield each format in three contexts, and each other place of a secret with each kind of value."""
        contexts = list(self._templates["contexts"].items())
        for number, (family, template) in enumerate(self._templates["formats"].items()):
            for turn in range(3):
                context, text = contexts[(number + turn * 5) % len(contexts)]
                yield self._case("formats", f"{family} in {context}", text, self._filled(template))
        for group, places in self._templates["assignments"].items():
            for place in places:
                for name in self._values(group):
                    yield self._case(group, f"{name}: {place}", place, self._filled(self._templates["values"][name]))

    def harmless(self) -> list[str]:
        """Return lines that must not change."""
        return [self._filled(line) for line in self._templates["harmless"]["lines"]]

    def _values(self, group: str) -> tuple[str, ...]:
        return ("random", "short") if group in ("headers", "files") else ("random", "short", "special", "human")

    def _case(self, group: str, family: str, template: str, secret: str) -> Case:
        text = self._filled(template).replace("{}", secret)
        content: Json = json.loads(text) if text.startswith('[{"type"') else text
        return Case(group, family, content, secret if len(secret) <= 24 else secret[-_TAIL:])

    def _filled(self, template: str) -> str:
        return _SLOT.sub(lambda slot: self._part(slot["kind"], int(slot["count"])), template)

    def _part(self, kind: str, count: int) -> str:
        if kind == "word":
            return "".join(self._random.choices(_SYLLABLES, k=3)).capitalize()
        while True:
            part = "".join(self._random.choices(_CLASSES[kind], k=count))
            mixed = any(sign.isdigit() for sign in part) and any(sign.isalpha() for sign in part)
            if (mixed or kind in ("dig", "letters") or count < 6) and part[-1].isalnum():
                return part
