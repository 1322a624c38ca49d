"""The observer that is a language model."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from importlib.resources import files
from typing import Annotated, Any

from pydantic import BaseModel, Field

from server.core.blocks import images
from server.core.budgets import MAX_OBSERVATION_TOKENS, MAX_TRANSCRIPT_TOKENS
from server.core.clock import in_zone, zone
from server.core.errors import InvalidInput, RequestRefused
from server.core.records import Category, Fact, Message, Observed, Priority, TranscriptSlice
from server.core.terms import says_something
from server.core.tokens import IMAGE_TOKENS, estimate_tokens
from server.core.trust import lowest_trust
from server.providers.messages_api import Answered, Content, MessagesModel

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

        complained = False

        def accept(answer: ObserverAnswer) -> Observed:
            nonlocal complained
            second, complained = complained, True
            # What cannot be used in the second answer is left out: one date must not keep a session unobserved.
            facts = [*_facts(answer, messages, shown.session.timezone, lenient=second)]
            written = sum(estimate_tokens(fact.content) for fact in facts)
            if written > MAX_OBSERVATION_TOKENS and not second:
                raise ValueError(f"its facts have {written:,} tokens; the limit is {MAX_OBSERVATION_TOKENS:,}")
            return Observed(
                facts=tuple(_within_budget(facts)),
                current_task=answer.current_task,
                suggested_continuation=answer.suggested_continuation,
                thread_title=answer.thread_title,
            )

        room = _room_for_images(shown)
        try:
            answered = await self._ask(_content(shown, room), accept)
        except RequestRefused:
            # An image that the API does not take must not keep the words from being observed.
            if not room or not any(images(message.content) for message in shown.messages):
                raise
            answered = await self._ask(_content(shown, 0), accept)
        return replace(answered.value, used=answered.used)

    async def _ask(self, content: Content, accept: Callable[[ObserverAnswer], Observed]) -> Answered[Observed]:
        return await self._model.ask(self._prompt, content, ObserverAnswer, accept, _ANSWER_TOKENS)

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


def _facts(answer: ObserverAnswer, messages: dict[int, Message], timezone: str, *, lenient: bool) -> Iterator[Fact]:
    for fact in answer.facts:
        if not says_something(fact.text):
            continue
        try:
            yield _fact(fact, messages, timezone)
        except ValueError:
            if not lenient:
                raise


def _within_budget(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield facts, in order, as long as they fit into what one call may write."""
    room = MAX_OBSERVATION_TOKENS
    for fact in facts:
        room -= estimate_tokens(fact.content)
        if room < 0:
            return
        yield fact


def _moment(moment: datetime | None, timezone: str) -> datetime | None:
    try:
        return in_zone(moment, timezone) if moment else None
    except InvalidInput as error:
        raise ValueError(str(error)) from error


def _content(shown: TranscriptSlice, room: int) -> Content:
    """Return what the model reads, with up to `room` images; what there are more is named in the text."""
    session = shown.session
    earlier = [f"- {memory.content}" for memory in shown.previous]
    about = "\n".join(
        [
            f"Client: {session.client}. Project: {session.project or 'none'}. Time zone: {session.timezone}.",
            *(["Earlier observations:", *earlier] if earlier else []),
            "Transcript:",
        ]
    )
    parts = [_text(about)]
    for message in shown.messages:
        if not message.shown_tokens:
            continue
        time = message.sent_at.astimezone(zone(session.timezone)).strftime("%A %Y-%m-%d %H:%M")
        parts.append(_text(f"[{message.seq}] {message.role}, {time}\n{message.text}"))
        fitting = images(message.content)[:room]
        parts += [{"type": "image", "source": source} for source in fitting]
        room -= len(fitting)
    return parts


def _room_for_images(shown: TranscriptSlice) -> int:
    text = sum(estimate_tokens(message.text) for message in shown.messages)
    return max(0, (MAX_TRANSCRIPT_TOKENS - text) // IMAGE_TOKENS)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
