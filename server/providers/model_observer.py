"""The observer that is a language model."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from importlib.resources import files
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from esker.server.core.budgets import (
    GUESSED_CONTEXT_TOKENS,
    LARGE_OBSERVER,
    MAX_OBSERVATION_TOKENS,
    ObserverBudget,
    small_observer,
)
from esker.server.core.clock import in_zone, zone
from esker.server.core.config.prices import add_up
from esker.server.core.conversation.blocks import images
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.conversation.slices import first_half, gap_before
from esker.server.core.conversation.trust import lowest_trust
from esker.server.core.dates.mentioned import mentioned_time
from esker.server.core.errors import ContextExceeded, InvalidInput, RequestRefused
from esker.server.core.facts.grounding import Grounds, grounds_in, joined
from esker.server.core.facts.records import Fact, Observed, TranscriptSlice
from esker.server.core.facts.same_fact import SAME_SUBJECT, fingerprint, same_subject
from esker.server.core.ids import memory_ids_in
from esker.server.core.json_input import Json
from esker.server.core.pack.rendering import offered_line
from esker.server.core.records import Category, Memory, Priority, TokenUse
from esker.server.core.text.terms import says_something
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens
from esker.server.providers.answers import breaks_off, is_half_bad, items_of, object_of, read_answer
from esker.server.providers.attribution import Attribution
from esker.server.providers.echoes import Echoes
from esker.server.providers.language_model import Answered, Content, LanguageModel, ModelReply
from esker.server.providers.roles import Meter
from esker.server.providers.written.answer import WrittenAnswer, read_written
from esker.server.providers.written.facts import WrittenFact

_MOST_COMPLAINTS = 5
# Maximum times that a slice is halved: if an answer about an eighth of it is still cut off, the model loops.
_MOST_HALVINGS = 3


class FactAnswer(BaseModel):
    """One fact as the model writes it."""

    text: Annotated[str, Field(min_length=1, max_length=2_000)]
    priority: Priority
    category: Category
    sources: Annotated[list[int], Field(min_length=1)]
    refers_from: datetime | None = None
    refers_to: datetime | None = None
    valid_until: datetime | None = None
    replaces: str | None = None
    tentative: bool = False


def _words_or_none(value: object) -> object:
    return value if isinstance(value, str) else None


def _words_among(value: object) -> object:
    return [item for item in cast(list[object], value) if isinstance(item, str)] if isinstance(value, list) else []


OptionalText = Annotated[str | None, BeforeValidator(_words_or_none)]


class ObserverAnswer(BaseModel):
    """The JSON object that the model is asked for."""

    facts: list[FactAnswer]
    # Bad values beside the facts are dropped, so that the facts need not be sent back.
    used_memories: Annotated[list[str], BeforeValidator(_words_among)] = []
    current_task: OptionalText = None
    suggested_continuation: OptionalText = None
    thread_title: OptionalText = None


class SmallFactAnswer(BaseModel):
    """One fact as a small model writes it; the answer is read as any other."""

    text: str
    priority: Priority
    category: Category
    sources: list[int]
    replaces: str | None


class SmallObserverAnswer(BaseModel):
    """The JSON object that a small model is asked for."""

    facts: list[SmallFactAnswer]


@dataclass(frozen=True, slots=True)
class _Asking:
    """How a model is asked to observe."""

    prompt: str
    shape: type[BaseModel]
    echoes: Echoes

    @classmethod
    def by(cls, name: str, shape: type[BaseModel]) -> "_Asking":
        prompt = files("esker.server.providers").joinpath(f"prompts/{name}.md").read_text(encoding="utf-8")
        examples = read_answer(prompt, ObserverAnswer)
        return cls(prompt, shape, Echoes(prompt, *(fact.text for fact in examples.facts)))


class ModelObserver:
    """Lets a language model write down the facts worth keeping."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._large = _Asking.by("observer", ObserverAnswer)
        self._small = _Asking.by("observer_small", SmallObserverAnswer)

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._model.model

    @property
    def problem(self) -> str | None:
        """Return why the model could not be reached the last time, or None."""
        return self._model.problem

    async def budget(self) -> ObserverBudget:
        """Return what fits into the model's context; less for a small model."""
        context = self._model.context
        return small_observer(await context.tokens()) if await context.is_small() else LARGE_OBSERVER

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts of a slice, or of its beginning when the facts of all of it do not fit into an answer.

        Raises ModelFailed, SpendCapReached.
        """
        return await self._observed(shown, meter, _MOST_HALVINGS)

    async def _observed(self, shown: TranscriptSlice, meter: Meter, halvings: int) -> Observed:
        half = first_half(shown.messages) if halvings else None
        answered = await self._answered(shown, meter, divisible=half is not None)
        if answered.value is not None:
            return replace(answered.value, used=answered.used)
        assert half is not None  # only an answer about a divisible slice is given up
        observed = await self._observed(replace(shown, messages=half), meter, halvings - 1)
        used = add_up([answered.used, observed.used])
        return replace(observed, used=used, last_seq=observed.last_seq or half[-1].seq)

    async def _answered(self, shown: TranscriptSlice, meter: Meter, *, divisible: bool) -> Answered[Observed | None]:
        budget = await self.budget()
        asking = self._large if budget is LARGE_OBSERVER else self._small
        reader = _ObserverAnswerReader(shown, asking.echoes, divisible, reads_times=asking is self._small)

        async def ask(room: int) -> Answered[Observed | None]:
            content = _content(shown, room)
            return await self._model.ask(
                asking.prompt, content, asking.shape, reader.read, max_tokens=budget.answer, meter=meter
            )

        room = _room_for_images(shown) if asking is self._large else 0
        try:
            return await ask(room)
        except ContextExceeded as error:
            # Later slices are cut for a context of this length, and the words of a half of this one may fit.
            self._model.context.learn(error.context or GUESSED_CONTEXT_TOKENS)
            if not divisible:
                raise
            return Answered(None, TokenUse())
        except RequestRefused:
            # Observe the words even if the API refuses an image.
            if not room or not any(images(message.content) for message in shown.messages):
                raise
            return await ask(0)

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()


class FactRefused(ValueError):
    """A fact cannot be kept; `reason` is one word for the count."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class _ObserverAnswerReader:
    """Reads answers about one slice: the good facts are kept, and a first answer is sent back if half is bad.

    A last answer that was cut off is given up when the slice is `divisible`: a part of it can be asked about instead.
    With `reads_times`, the time that a fact refers to is read in its text: a small model is not asked for it.
    """

    shown: TranscriptSlice
    echoes: Echoes
    divisible: bool
    reads_times: bool
    messages: dict[int, StoredMessage] = field(init=False)
    memories: dict[str, Memory] = field(init=False)
    _grounds: dict[str, Grounds] = field(init=False, default_factory=dict[str, Grounds])

    def __post_init__(self) -> None:
        self.messages = {message.seq: message for message in self.shown.messages}
        self.memories = {row.id: row for row in (*self.shown.previous, *self.shown.known, *self.shown.related)}

    def read(self, reply: ModelReply) -> Observed | None:
        """Return what an answer says, None when it is given up. Raises ValueError with everything wrong with it."""
        if reply.cut_off and not reply.last:
            raise ValueError(f"it was cut off after {reply.output_tokens:,} tokens; write fewer and shorter facts")
        refused: Counter[str] = Counter()
        try:
            answer, broke_off = read_answer(reply.text, ObserverAnswer), False
        except ValueError:
            broke_off = reply.cut_off or (reply.last and breaks_off(reply.text, "facts"))
            if broke_off and self.divisible:
                return None
            answer = self._salvaged(reply, refused)
            if answer is None:
                raise
        facts = list(self._facts(answer, reply.last, refused))
        written = sum(estimate_tokens(fact.content) for fact in facts)
        if written > MAX_OBSERVATION_TOKENS and not reply.last:
            raise ValueError(f"its facts have {written:,} tokens; the limit is {MAX_OBSERVATION_TOKENS:,}")
        kept = tuple(_within_budget(facts))
        refused["over_budget"] += len(facts) - len(kept)
        refused["cut_off"] += broke_off
        observed = Observed(
            facts=kept,
            current_task=answer.current_task,
            suggested_continuation=answer.suggested_continuation,
            thread_title=answer.thread_title,
            used_ids=tuple(memory_id for memory_id in answer.used_memories if memory_id in self.memories),
            refused=+refused,
        )
        return self._without_end(observed, answer) if broke_off else observed

    def _without_end(self, observed: Observed, answer: ObserverAnswer) -> Observed:
        """Return the facts of the messages before the one at which an answer broke off, and at least of the first.

        That message may hold more than its whole facts say, so it is observed again with those after it. Raises
        ValueError when no whole fact cites a message of the slice.
        """
        cited = [seq for fact in answer.facts if (seq := max(fact.sources)) in self.messages]
        if not cited:
            raise ValueError("it broke off before a whole fact that cites a message of the transcript")
        last = max((seq for seq in self.messages if seq < cited[-1]), default=min(self.messages))
        facts = tuple(fact for fact in observed.facts if max(fact.source_seqs) <= last)
        return replace(observed, facts=facts, last_seq=last)

    def _salvaged(self, reply: ModelReply, refused: Counter[str]) -> ObserverAnswer | None:
        """Read an answer of another shape: the whole items of JSON, else tagged text, else a list."""
        items = items_of(reply.text, "facts")
        if items and (reply.last or _is_mostly_good(reply.text, items)):
            return _answer_of(items, object_of(reply.text), refused)
        written = read_written(reply.text)
        return self._answer_of_text(written, refused) if written else None

    def _answer_of_text(self, written: WrittenAnswer, refused: Counter[str]) -> ObserverAnswer:
        attribution = Attribution(self.shown)
        facts: list[FactAnswer] = []
        for fact in written.facts:
            sources = [seq for seq in fact.sources if seq in self.messages] or attribution.sources(fact.text)
            if sources:
                facts.append(_fact_answer(fact, sources))
            else:
                refused["no_source"] += 1
        return ObserverAnswer(
            facts=facts,
            current_task=written.current_task,
            suggested_continuation=written.suggested_continuation,
            thread_title=written.thread_title,
        )

    def _facts(self, answer: ObserverAnswer, last: bool, refused: Counter[str]) -> Iterator[Fact]:
        complaints: list[str] = []
        for fact in answer.facts:
            try:
                yield self._fact(fact)
            except FactRefused as error:
                refused[error.reason] += 1
                # An empty fact is dropped without asking again.
                if error.reason != "says_nothing":
                    complaints.append(str(error))
        if not last and is_half_bad(len(complaints), len(answer.facts)):
            raise ValueError("; ".join(complaints[:_MOST_COMPLAINTS]))

    def _fact(self, answer: FactAnswer) -> Fact:
        """Make a fact of an answer. Raises FactRefused."""
        if not says_something(answer.text):
            raise FactRefused("says_nothing", "a fact is empty")
        if unknown := [seq for seq in answer.sources if seq not in self.messages]:
            raise FactRefused("unknown_source", f"message {unknown[0]} was not shown")
        if self.echoes.contain(answer.text):
            raise FactRefused("echo", f"“{answer.text[:80]}” is copied from the instructions")
        fact = self._dated(answer, [self.messages[seq] for seq in sorted(set(answer.sources))])
        if missing := self._ungrounded(fact):
            named = ", ".join(repr(part) for part in missing[:3])
            raise FactRefused("ungrounded", f"{named} of “{fact.content[:80]}” is not in the messages that it cites")
        return fact

    def _dated(self, answer: FactAnswer, cited: Sequence[StoredMessage]) -> Fact:
        timezone = self.shown.session.timezone
        start, end = _moment(answer.refers_from, timezone), _moment(answer.refers_to, timezone)
        if start and end and start > end:
            start, end = end, start
        said_at = max(message.sent_at for message in cited)
        if self.reads_times and (span := mentioned_time(answer.text, said_at, timezone).refers):
            start, end = span.start, span.end
        return Fact(
            content=answer.text,
            priority=answer.priority,
            category=answer.category,
            trust=lowest_trust(message.trust for message in cited),
            source_seqs=tuple(message.seq for message in cited),
            said_at=said_at,
            refers_from=start or end,
            refers_to=end,
            valid_until=_moment(answer.valid_until, timezone),
            replaces=(answer.replaces or "").strip() or None,
            tentative=answer.tentative,
        )

    def _ungrounded(self, fact: Fact) -> list[str]:
        session = self.shown.session
        texts = [self.messages[seq].text for seq in fact.source_seqs]
        texts += filter(None, (session.project, session.cwd, session.client))
        texts += self._replaced_texts(fact)
        days = _days(fact, self.messages, session.timezone)
        return joined(map(self._grounds_in, texts)).missing(fact.content, days)

    def _replaced_texts(self, fact: Fact) -> list[str]:
        """Return the shown rows that a fact says it replaces: it may repeat their names and numbers."""
        if not fact.replaces:
            return []
        ids = memory_ids_in(fact.replaces)
        named = fingerprint(fact.replaces)
        return [
            row.content
            for row in self.memories.values()
            if row.id in ids or (not ids and same_subject(named, fingerprint(row.content)) >= SAME_SUBJECT)
        ]

    def _grounds_in(self, text: str) -> Grounds:
        """Read a text once: many facts cite the same message."""
        if text not in self._grounds:
            self._grounds[text] = grounds_in(text)
        return self._grounds[text]


def _days(fact: Fact, messages: dict[int, StoredMessage], timezone: str) -> frozenset[date]:
    moments = [messages[seq].sent_at for seq in fact.source_seqs]
    moments += filter(None, (fact.refers_from, fact.refers_to, fact.valid_until))
    return frozenset(moment.astimezone(zone(timezone)).date() for moment in moments)


def _answer_of(items: Sequence[Json], beside: Mapping[str, Json], refused: Counter[str]) -> ObserverAnswer:
    """Return the items that have the shape of a fact, with the values beside them; count the other items."""
    facts = _well_formed(items)
    refused["malformed"] += len(items) - len(facts)
    if not facts:
        raise ValueError("none of its facts has the shape that was asked for")
    slots = ObserverAnswer.model_validate({**beside, "facts": []})
    return slots.model_copy(update={"facts": facts})


def _well_formed(items: Sequence[Json]) -> list[FactAnswer]:
    facts: list[FactAnswer] = []
    for item in items:
        with suppress(ValidationError):
            facts.append(FactAnswer.model_validate(item))
    return facts


def _is_mostly_good(text: str, items: Sequence[Json]) -> bool:
    """Whether a first answer with these items is whole and more than half of them have the shape of a fact."""
    return not breaks_off(text, "facts") and not is_half_bad(len(items) - len(_well_formed(items)), len(items))


def _fact_answer(fact: WrittenFact, sources: list[int]) -> FactAnswer:
    category = fact.category or ("outcome" if fact.done else "fact")
    return FactAnswer(text=fact.text[:2_000], priority=fact.priority, category=category, sources=sources)


def _within_budget(facts: Sequence[Fact]) -> Iterator[Fact]:
    """Yield facts, in order, while they fit into the budget of one call."""
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
        raise FactRefused("impossible_date", str(error)) from error


def _content(shown: TranscriptSlice, room: int) -> Content:
    """Return the model's input, with up to `room` images; the others are named in the text."""
    session = shown.session
    about = [
        f"Client: {session.client}. Project: {session.project or 'none'}. Time zone: {session.timezone}.",
        *_rows("What the agent knew:", shown.known, session.timezone),
        *_rows("What is kept about this already:", shown.related, session.timezone),
        *_rows("Earlier observations:", shown.previous, session.timezone),
        "Transcript:",
    ]
    parts = [_text("\n".join(about))]
    before: StoredMessage | None = None
    for message in shown.messages:
        if not message.shown_tokens:
            continue
        time = message.sent_at.astimezone(zone(session.timezone)).strftime("%A %Y-%m-%d %H:%M")
        gap = gap_before(message, before)
        parts.append(_text(f"{gap}[{message.seq}] {message.role}, {time}\n{message.text}"))
        fitting = images(message.content)[:room]
        parts += [{"type": "image", "source": source} for source in fitting]
        room -= len(fitting)
        before = message
    return parts


def _rows(heading: str, rows: Sequence[Memory], timezone: str) -> list[str]:
    return [heading, *(offered_line(row, timezone) for row in rows)] if rows else []


def _room_for_images(shown: TranscriptSlice) -> int:
    text = sum(estimate_tokens(message.text) for message in shown.messages)
    return max(0, (LARGE_OBSERVER.transcript - text) // IMAGE_TOKENS)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
