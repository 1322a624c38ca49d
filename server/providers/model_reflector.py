"""The reflector that asks a language model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, Field

from esker.server.core.budgets import GUESSED_CONTEXT_TOKENS, REFLECTION_TOKENS, small_reflection
from esker.server.core.clock import zone
from esker.server.core.errors import ContextExceeded
from esker.server.core.facts.condensing import MAX_ROW_TOKENS, completed
from esker.server.core.facts.grounding import grounds_in, joined
from esker.server.core.facts.records import Draft, Reflected, ReflectionTask
from esker.server.core.pack.rendering import TENTATIVE
from esker.server.core.records import Category, Facet, Memory, Priority
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.answers import is_half_bad, read_answer
from esker.server.providers.echoes import Echoes
from esker.server.providers.language_model import Answered, Content, LanguageModel, ModelReply
from esker.server.providers.roles import Meter

# Maximum tokens of an answer, which a model writes in a few minutes; half are for rows, the rest for JSON and ids.
_MOST_ANSWER_TOKENS = 16_000
_MOST_TARGET_TOKENS = _MOST_ANSWER_TOKENS // 2
_MOST_COMPLAINTS = 5


class RowAnswer(BaseModel):
    """One row as the model writes it."""

    text: Annotated[str, Field(min_length=1, max_length=8_000)]
    priority: Priority
    category: Category
    source_ids: Annotated[list[str], Field(min_length=1)]


class InsightAnswer(BaseModel):
    """One lasting insight as the model writes it."""

    facet: Facet
    text: Annotated[str, Field(min_length=1, max_length=2_000)]
    priority: Priority = "medium"
    source_ids: Annotated[list[str], Field(min_length=1)]


class ReflectorAnswer(BaseModel):
    """The JSON object that the model is asked for."""

    rows: Annotated[list[RowAnswer], Field(min_length=1)]
    insights: list[InsightAnswer] = []


class ModelReflector:
    """Lets a language model condense rows."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._prompt = _prompt("reflector")
        guidance = _prompt("reflector_guidance")
        self._guidance = [part.strip() for part in guidance.split("---")]
        self._echoes = Echoes(self._prompt, guidance)

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._model.model

    @property
    def problem(self) -> str | None:
        """Return why the model could not be reached the last time, or None."""
        return self._model.problem

    async def batch_tokens(self) -> int:
        """Return what fits into the model's context beside the answer."""
        context = self._model.context
        return small_reflection(await context.tokens()) if await context.is_small() else REFLECTION_TOKENS

    async def reflect(self, task: ReflectionTask, meter: Meter) -> Reflected:
        """Return a candidate for the rows of a task. Raises ModelFailed, SpendCapReached.

        Rows that must survive and that the model forgot are carried over.
        """
        before = sum(row.tokens for row in task.rows)
        target = min(task.target_tokens, before * 2 // (3 + task.level), _MOST_TARGET_TOKENS)
        try:
            answered = await self._asked(task, target, meter)
        except ContextExceeded as error:
            # The next try gets rows for a context of this length.
            self._model.context.learn(error.context or GUESSED_CONTEXT_TOKENS)
            raise
        return replace(answered.value, used=answered.used)

    async def _asked(self, task: ReflectionTask, target: int, meter: Meter) -> Answered[Reflected]:
        return await self._model.ask(
            self._prompt,
            _content(task, self._request(task, target)),
            ReflectorAnswer,
            _ReflectorAnswerReader({row.id: row for row in task.rows}, task.timezone, self._echoes).read,
            max_tokens=min(_MOST_ANSWER_TOKENS, 2 * target + 1_000),
            meter=meter,
        )

    def _request(self, task: ReflectionTask, target: int) -> str:
        if not task.level:
            return f"Write at most {target:,} tokens."
        guidance = self._guidance[min(task.level, len(self._guidance)) - 1]
        return guidance.format(complaint=(task.complaint or "it was no better").rstrip("."), target=f"{target:,}")

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()


def _prompt(name: str) -> str:
    return files("esker.server.providers").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")


def _content(task: ReflectionTask, request: str) -> Content:
    """Return the model's input. The request differs between candidates, so the cached prefix ends before it."""
    rows = {"type": "text", "text": "\n".join(_lines(task)), "cache_control": {"type": "ephemeral"}}
    return [rows, {"type": "text", "text": request}]


def _lines(task: ReflectionTask) -> Iterator[str]:
    local = zone(task.timezone)
    for row in task.rows:
        reserved = TENTATIVE if row.tentative else ""
        about = f"{row.said_at.astimezone(local):%Y-%m-%d %H:%M} {row.priority} {row.category}{reserved}"
        yield f"{row.id} {about} {row.trust}: {_on_one_line(row.content)}"


def _on_one_line(text: str) -> str:
    """Return a text on one line, so that it cannot look like several rows."""
    return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class _ReflectorAnswerReader:
    """Reads answers about some rows: the good ones are kept, and a first answer is sent back if half is bad."""

    rows: dict[str, Memory]
    timezone: str
    echoes: Echoes

    def read(self, reply: ModelReply) -> Reflected:
        """Return the candidate in an answer. Raises ValueError with everything that is wrong with it."""
        if reply.cut_off:
            raise ValueError(f"it was cut off after {reply.output_tokens:,} tokens; write less")
        answer = read_answer(reply.text, ReflectorAnswer)
        offered = [
            Draft(self._as_it_was(row), row.priority, row.category, tuple(dict.fromkeys(row.source_ids)))
            for row in answer.rows
        ]
        offered += [
            Draft(item.text, item.priority, "fact", tuple(dict.fromkeys(item.source_ids)), item.facet)
            for item in answer.insights
        ]
        good: list[Draft] = []
        bad: list[tuple[Draft, str]] = []
        for draft in offered:
            problem = self._problem(draft)
            if problem:
                bad.append((draft, problem))
            else:
                good.append(draft)
        if not reply.last and is_half_bad(len(bad), len(offered)):
            raise ValueError("; ".join(problem for _, problem in bad[:_MOST_COMPLAINTS]))
        if not any(draft.facet is None for draft in good):
            raise ValueError(bad[0][1] if bad else "it has no rows")
        # The sources of a bad row stay as they are.
        untouched = {i for draft, _ in bad if draft.facet is None for i in draft.source_ids}
        return completed(list(self.rows.values()), good, untouched=untouched - _cited(good))

    def _as_it_was(self, row: RowAnswer) -> str:
        """Return the text of a row; if it is copied from a source, with the source's line breaks."""
        said = _on_one_line(row.text)
        sources = [self.rows[source].content for source in row.source_ids if source in self.rows]
        return next((content for content in sources if _on_one_line(content) == said), row.text)

    def _problem(self, draft: Draft) -> str | None:
        if unknown := [source for source in draft.source_ids if source not in self.rows]:
            return f"row {unknown[0][:40]!r} was not shown"
        if self.echoes.contain(draft.content):
            return f"“{draft.content[:60]}” is copied from the instructions"
        tokens = estimate_tokens(draft.content)
        if tokens > MAX_ROW_TOKENS and all(self.rows[i].content != draft.content for i in draft.source_ids):
            return f"the row “{draft.content[:60]}…” has {tokens:,} tokens; a row has at most {MAX_ROW_TOKENS}"
        sources = [self.rows[source] for source in draft.source_ids]
        moments = (m for row in sources for m in (row.said_at, row.refers_from, row.refers_to, row.valid_until) if m)
        days = [moment.astimezone(zone(self.timezone)).date() for moment in moments]
        grounds = joined(grounds_in(text) for row in sources for text in (row.content, row.project) if text)
        if missing := grounds.missing(draft.content, days):
            named = ", ".join(repr(part) for part in missing[:3])
            return f"{named} of “{draft.content[:60]}” is not in the rows that it cites"
        return None


def _cited(drafts: Sequence[Draft]) -> set[str]:
    return {source for draft in drafts if draft.facet is None for source in draft.source_ids}
