"""The reflector that is a language model."""

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, Field

from server.core.clock import zone
from server.core.records import Category, Draft, Memory, Priority, Reflected, Session
from server.providers.messages_api import MessagesModel

# What a model writes in a few minutes; the rows themselves are at most half of it, the rest is JSON and ids.
_MOST_ANSWER_TOKENS = 16_000
_MOST_TARGET_TOKENS = _MOST_ANSWER_TOKENS // 2


class RowAnswer(BaseModel):
    """One row as the model writes it."""

    text: Annotated[str, Field(min_length=1, max_length=8_000)]
    priority: Priority
    category: Category
    source_ids: Annotated[list[str], Field(min_length=1)]


class ReflectorAnswer(BaseModel):
    """What the model is asked for."""

    rows: Annotated[list[RowAnswer], Field(min_length=1)]


class ModelReflector:
    """Has a language model condense the rows of a session."""

    def __init__(self, model: MessagesModel) -> None:
        self._model = model
        self._prompt = files("server.providers").joinpath("prompts/reflector.md").read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._model.model

    async def reflect(self, session: Session, rows: Sequence[Memory], target_tokens: int) -> Reflected:
        """Return rows that stand for `rows`. Raises ModelFailed; a row that cites what it was not shown fails."""
        target = min(target_tokens, sum(row.tokens for row in rows) * 2 // 3, _MOST_TARGET_TOKENS)
        shown = "\n".join([f"Write at most {target:,} tokens.", *_lines(session, rows)])
        limit = min(_MOST_ANSWER_TOKENS, 2 * target + 1_000)
        by_id = {row.id: row for row in rows}
        answered = await self._model.ask(
            self._prompt,
            [{"type": "text", "text": shown}],
            ReflectorAnswer,
            lambda answer: [_draft(row, by_id) for row in answer.rows],
            limit,
        )
        cited = {source for draft in answered.value for source in draft.source_ids}
        left_out = [row for row in rows if row.id not in cited]
        # What matters most is never lost because a model forgot to mention it.
        carried = [_carried(row) for row in left_out if row.priority == "high"]
        dropped = tuple(row.id for row in left_out if row.priority != "high")
        return Reflected((*answered.value, *carried), dropped, answered.used)

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()


def _lines(session: Session, rows: Sequence[Memory]) -> Iterator[str]:
    local = zone(session.timezone)
    for row in rows:
        yield f"{row.id} {row.said_at.astimezone(local):%Y-%m-%d %H:%M} {row.priority} {row.content}"


def _draft(answer: RowAnswer, rows: dict[str, Memory]) -> Draft:
    """Make a draft of an answer. Raises ValueError when it cites unknown rows."""
    if unknown := [source for source in answer.source_ids if source not in rows]:
        raise ValueError(f"row {unknown[0][:40]!r} was not shown")
    sources = tuple(dict.fromkeys(answer.source_ids))
    said_at = max(rows[source].said_at for source in sources)
    return Draft(answer.text, answer.priority, answer.category, sources, said_at)


def _carried(row: Memory) -> Draft:
    return Draft(row.content, row.priority, row.category, (row.id,), row.said_at)
