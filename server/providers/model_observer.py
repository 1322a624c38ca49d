"""The observer that is a language model."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, Field

from server.core.budgets import MAX_OBSERVATION_TOKENS
from server.core.clock import in_zone, zone
from server.core.errors import InvalidInput
from server.core.records import Block, Category, Fact, Message, Observed, Priority, TranscriptSlice
from server.core.trust import lowest_trust
from server.providers.messages_api import Content, MessagesModel

# JSON costs more than the facts in it.
_ANSWER_TOKENS = 2 * MAX_OBSERVATION_TOKENS


class FactAnswer(BaseModel):
    """One fact as the model writes it."""

    text: Annotated[str, Field(min_length=1, max_length=2_000)]
    priority: Priority
    category: Category
    sources: Annotated[list[int], Field(min_length=1)]
    refers_from: datetime | None = None
    refers_to: datetime | None = None
    valid_until: datetime | None = None


class ObserverAnswer(BaseModel):
    """What the model is asked for."""

    facts: list[FactAnswer]
    current_task: str | None = None
    suggested_continuation: str | None = None
    thread_title: str | None = None


class ModelObserver:
    """Has a language model write down what is worth keeping."""

    def __init__(self, model: MessagesModel) -> None:
        self._model = model
        self._prompt = files("server.providers").joinpath("prompts/observer.md").read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._model.model

    async def observe(self, shown: TranscriptSlice) -> Observed:
        """Return the facts of a slice. Raises ModelFailed; no answer may cite what was not shown."""
        messages = {message.seq: message for message in shown.messages}

        def accept(answer: ObserverAnswer) -> Observed:
            return Observed(
                facts=tuple(_fact(fact, messages, shown.session.timezone) for fact in answer.facts),
                current_task=answer.current_task,
                suggested_continuation=answer.suggested_continuation,
                thread_title=answer.thread_title,
            )

        answered = await self._model.ask(self._prompt, _content(shown), ObserverAnswer, accept, _ANSWER_TOKENS)
        return replace(answered.value, used=answered.used)

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()


def _fact(fact: FactAnswer, messages: dict[int, Message], timezone: str) -> Fact:
    """Make a fact of an answer. Raises ValueError when it cites unknown messages or has an impossible date."""
    if unknown := [seq for seq in fact.sources if seq not in messages]:
        raise ValueError(f"message {unknown[0]} was not shown")
    cited = [messages[seq] for seq in sorted(set(fact.sources))]
    start, end = _moment(fact.refers_from, timezone), _moment(fact.refers_to, timezone)
    if start and end and start > end:
        start, end = end, start
    return Fact(
        content=fact.text,
        priority=fact.priority,
        category=fact.category,
        trust=lowest_trust(message.trust for message in cited),
        source_seqs=tuple(message.seq for message in cited),
        said_at=max(message.sent_at for message in cited),
        refers_from=start or end,
        refers_to=end,
        valid_until=_moment(fact.valid_until, timezone),
    )


def _moment(moment: datetime | None, timezone: str) -> datetime | None:
    try:
        return in_zone(moment, timezone) if moment else None
    except InvalidInput as error:
        raise ValueError(str(error)) from error


def _content(shown: TranscriptSlice) -> Content:
    session = shown.session
    about = "\n".join(
        [
            f"Client: {session.client}. Project: {session.project or 'none'}. Time zone: {session.timezone}.",
            *(["Earlier observations:", *(f"- {text}" for text in shown.previous)] if shown.previous else []),
            "Transcript:",
        ]
    )
    return [_text(about), *(part for message in shown.messages for part in _shown(message, session.timezone))]


def _shown(message: Message, timezone: str) -> Iterator[dict[str, Any]]:
    time = message.sent_at.astimezone(zone(timezone)).strftime("%A %Y-%m-%d %H:%M")
    yield _text(f"[{message.seq}] {message.role}, {time}\n{message.text}")
    yield from _images(message.content)


def _images(blocks: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Yield the images that the API takes, those inside tool results included."""
    for block in blocks:
        match block:
            case {"type": "image", "source": {"type": "base64" | "url"} as source}:
                yield {"type": "image", "source": source}
            case {"type": "tool_result", "content": list(parts)}:
                yield from _images([part for part in parts if isinstance(part, dict)])
            case _:
                pass


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
