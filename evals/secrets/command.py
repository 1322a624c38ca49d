"""`python -m evals secrets`: how many synthetic secrets are masked, and how many harmless lines change."""

import inspect
import json
import time
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Annotated

import typer

from esker.server.core.json_input import Json
from esker.server.core.redaction import redact, redact_content
from evals.output import remark, say
from evals.secrets.corpus import Case, Maker

_MEASURED = 10_240
_ROUNDS = 5
_TEXTS = {"code": "program code", "dense": "the harmless lines, each of which names a secret"}

Seeds = Annotated[list[int] | None, typer.Option("--seed", help="Seed of the secrets; may be given several times.")]
ShowMisses = Annotated[
    bool, typer.Option("--misses", help="Show what was not masked, and which harmless lines changed.")
]


def secrets(seed: Seeds = None, misses: ShowMisses = False) -> None:
    """Mask secrets that are made at run time, in all kinds of places, and harmless lines; no server is started."""
    made = [Maker(each) for each in seed or [1]]
    masked, all_of = Counter[str](), Counter[str]()
    for case in chain.from_iterable(maker.secrets() for maker in made):
        all_of[case.group] += 1
        if is_masked(case):
            masked[case.group] += 1
        elif misses:
            remark(f"not masked: {case.family}: {case.content}")
    for group, count in all_of.items():
        say(f"{group:10} {masked[group]:5} of {count:5} masked  {masked[group] / count:.3f}")
    lines = [line for maker in made for line in maker.harmless()]
    changed = [line for line in lines if redact(line) != line]
    for line in changed if misses else ():
        remark(f"changed: {redact(line)}")
    say(f"{'harmless':10} {len(changed):5} of {len(lines):5} changed {len(changed) / len(lines):.3f}")
    for name, text in (("code", inspect.getsource(typer.main)), ("dense", "\n".join(lines * 9))):
        say(f"{'speed':10} {_milliseconds(text):8.2f} ms of CPU time for 10 KB of {_TEXTS[name]}, best of {_ROUNDS}")


def is_masked(case: Case) -> bool:
    """Whether a secret has left the text that it was in."""
    return case.needle not in _text(redact_content(case.content))


def _text(content: Json) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def _milliseconds(text: str) -> float:
    return min(_seconds(text[:_MEASURED])) * 1000


def _seconds(text: str) -> Iterator[float]:
    for _ in range(_ROUNDS):
        start = time.process_time()
        redact(text)
        yield time.process_time() - start
