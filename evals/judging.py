"""A language model's opinion beside the scores, on request; no score depends on it.

The model sees the log and the rows that are left, not the gold, so that its marks can be compared with ours. It is
called through the same Messages API as the server's models, and recorded and replayed like them.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from pydantic import BaseModel, Field
from rich.progress import Progress

from esker.server.core.config.settings import Settings
from esker.server.core.errors import InvalidInput, ModelFailed
from esker.server.core.json_input import JsonObject
from esker.server.core.records import TokenUse
from esker.server.providers.answers import read_answer
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_model import ModelReply
from esker.server.providers.language_models import model_at
from evals.output import remark, table
from evals.scoring.gold import LogRow
from evals.scoring.matching import KeptRow

_PROMPT = (Path(__file__).parent / "judging.md").read_text(encoding="utf-8")
_MOST_TOKENS = 2_000
_FEWEST = 3


class Grade(BaseModel):
    """A mark from 1 (bad) to 5 (nothing to criticise)."""

    score: Annotated[int, Field(ge=1, le=5, strict=True)]
    reason: Annotated[str, Field(min_length=1, max_length=2_000)]


class Grades(BaseModel):
    """The marks of a model for a memory."""

    retention: Grade
    no_invention: Grade
    usefulness: Grade

    def scores(self) -> dict[str, int]:
        """Return the marks by name."""
        return {name: getattr(self, name).score for name in type(self).model_fields}


NAMES = tuple(Grades.model_fields)


@dataclass(frozen=True, slots=True)
class Submission:
    """A log and the rows that are left of it, to be judged."""

    name: str
    log: Sequence[LogRow]
    left: Sequence[KeptRow]

    def text(self) -> str:
        """Return both as text for the model, a line for each row."""
        log = [f"{row.id} {row.at:%Y-%m-%d %H:%M} {row.by}: {_on_one_line(row.text)}" for row in self.log]
        # Number the rows: their ids differ in each run, which would defeat a replay.
        left = [f"{place}. {_on_one_line(row.text)}" for place, row in enumerate(self.left, start=1)]
        return "\n".join(["Log:", *log, "", "Rows that are left:", *(left or ["(none)"])])


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


@dataclass(slots=True)
class Judgement:
    """The marks of a model by submission, its failures with their reasons, and its use of tokens."""

    model: str
    marks: dict[str, Grades] = field(default_factory=dict[str, Grades])
    failed: dict[str, str] = field(default_factory=dict[str, str])
    tokens: int = 0

    def document(self, ours: Mapping[str, float]) -> JsonObject:
        """Return it as JSON, with its means and its agreement with `ours`, our retention of each case."""
        both = [(ours[name], marks.retention.score) for name, marks in self.marks.items() if name in ours]
        return {
            "note": "An opinion. No figure of ours depends on it.",
            "model": self.model,
            "tokens": self.tokens,
            "means": {name: self.mean(name) for name in NAMES} if self.marks else {},
            "agreement": {
                "of": "retention",
                "spearman": spearman([mine for mine, _ in both], [its for _, its in both]),
                "cases": len(both),
            },
            "cases": {name: marks.model_dump() for name, marks in self.marks.items()},
            "failed": self.failed,
        }

    def mean(self, name: str) -> float:
        """Return the mean of a mark."""
        return sum(marks.scores()[name] for marks in self.marks.values()) / len(self.marks)

    # As the meter of its model, it allows every call and counts it.
    async def reserve(self, model: str, most: TokenUse) -> str:
        """Allow every call."""
        return ""

    async def settle(self, call: str, model: str, used: TokenUse | None) -> None:
        """Count one call."""
        self.tokens += used.input_tokens + used.output_tokens if used else 0


def judge(model: str, environ: Mapping[str, str], submissions: Sequence[Submission], shown: Progress) -> Judgement:
    """Return the marks of a model. A submission that it cannot judge is recorded as failed; the run continues.

    Raises InvalidInput if no model is configured.
    """
    settings = Settings.from_environment(environ)
    if not settings.has_model:
        raise InvalidInput("No model is configured to judge.", hint="Set ESKER_LLM_API_KEY or ESKER_LLM_BASE_URL.")
    return asyncio.run(_judged(model, Endpoint.of(settings), submissions, shown))


async def _judged(name: str, endpoint: Endpoint, submissions: Sequence[Submission], shown: Progress) -> Judgement:
    made = Judgement(name)
    model = model_at(name, endpoint)
    try:
        for each in shown.track(submissions, description="Judging"):
            content = [{"type": "text", "text": each.text()}]
            try:
                answered = await model.ask(_PROMPT, content, Grades, _read, max_tokens=_MOST_TOKENS, meter=made)
                made.marks[each.name] = answered.value
            except ModelFailed as error:
                made.failed[each.name] = str(error)
    finally:
        await model.close()
    return made


def _read(reply: ModelReply) -> Grades:
    if reply.cut_off:
        raise ValueError("the answer was truncated; give shorter reasons")
    return read_answer(reply.text, Grades)


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation (1904), from -1 to 1; ties share a rank.

    None for fewer than three pairs, or if all values of one side are equal.
    """
    one, other = _ranks(first), _ranks(second)
    if len(one) < _FEWEST or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(one, other)[0, 1])


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    each = np.array(values, dtype=np.float64)
    return (each[:, None] > each).sum(axis=1) + ((each[:, None] == each).sum(axis=1) + 1) / 2


def show(opinion: JsonObject) -> None:
    """Print the opinion of a model, apart from the figures."""
    count = len(opinion["cases"])
    if count:
        rows = [(name, f"{mean:.2f}") for name, mean in opinion["means"].items()]
        typer.echo(f"\nOpinion of {opinion['model']} on {count} cases. No figure above depends on it.")
        table("", ["", "of 5"], rows)
    agreement = opinion["agreement"]
    if agreement["spearman"] is not None:
        remark(f"Its retention against ours: Spearman {agreement['spearman']:.2f} over {agreement['cases']} cases.")
    for name, why in opinion["failed"].items():
        remark(f"{name} was not judged: {why}")
