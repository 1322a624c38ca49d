"""The extractive observer: no model, the transcript's own words."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from esker.server.core.budgets import MAX_OBSERVATION_TOKENS
from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import Message
from esker.server.core.conversation.slices import starts_turn
from esker.server.core.dates.mentioned import mentioned_time
from esker.server.core.facts.records import Fact, Observed, TranscriptSlice
from esker.server.core.ranking import PRIORITY_WEIGHT
from esker.server.core.records import EXTRACTIVE, Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import without_label
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive import cues, speech, tools
from esker.server.providers.extractive.sentences import clip
from esker.server.providers.extractive.superseding import with_replaced
from esker.server.providers.roles import Meter

_MOST_FILES = 12


class ExtractiveObserver:
    """Finds preferences, decisions, corrections, failures and their causes, changes and outcomes by rules."""

    name = EXTRACTIVE

    async def observe(self, shown: TranscriptSlice, meter: Meter) -> Observed:
        """Return the facts of a slice, each citing the messages whose words it uses."""
        return await asyncio.to_thread(observe, shown)

    async def close(self) -> None:
        """Do nothing: it holds no resources."""


def observe(shown: TranscriptSlice) -> Observed:
    """Return the facts of a slice; the same slice gives the same facts."""
    known = tools.calls(shown.messages)
    turns = list(_turns(shown.messages))
    facts = [fact for turn in turns for fact in _turn_facts(turn, known, shown.session.cwd or "")]
    asked = [turn.request for turn in turns if turn.request]
    known_before = sorted((*shown.related, *shown.known, *shown.previous), key=lambda row: (row.said_at, row.id))
    open_ends = [fact.content for fact in facts if fact.category == "next_step"]
    dated = [_with_time(fact, shown.session.timezone) for fact in _unseen(facts, shown.previous)]
    return Observed(
        facts=tuple(_within_budget(with_replaced(dated, known_before))),
        current_task=asked[-1] if asked else None,
        suggested_continuation=open_ends[-1] if open_ends else None,
        thread_title=clip(asked[0], 80) if asked and shown.session.thread_title is None else None,
    )


@dataclass(slots=True)
class _UserTurn:
    """A user's message and the work on it until the user's next message.

    `opening` is None if the turn began in an earlier slice; `before` is the assistant's message that it answers.
    """

    opening: Message | None
    before: Message | None
    work: list[Message] = field(default_factory=list[Message])

    @property
    def request(self) -> str | None:
        return speech.request(self.opening, self.before) if self.opening else None


def _turns(messages: Sequence[Message]) -> Iterator[_UserTurn]:
    turn = _UserTurn(None, None)
    spoken: Message | None = None
    for message in messages:
        if starts_turn(message):
            yield turn
            turn, spoken = _UserTurn(message, spoken), None  # a question is answered once
        else:
            turn.work.append(message)
            spoken = message if message.role == "assistant" and message.text else spoken
    yield turn


def _turn_facts(turn: _UserTurn, known: dict[str, tools.ToolCall], cwd: str) -> Iterator[Fact]:
    changes = list(_changes(turn, cwd))
    if turn.opening:
        # The fact about the changes contains the request already.
        said = _user_facts(turn.opening, turn)
        yield from (fact for fact in said if not (changes and turn.request and fact.content.endswith(turn.request)))
    failed = list(_failures(turn, known))
    yield from failed
    explained = {fact.content for fact in failed}
    yield from changes
    for fact in _closing(turn):
        if not any(fact.content.split(": ", 1)[1] in text for text in explained):
            yield fact


def _closing(turn: _UserTurn) -> list[Fact]:
    """Return the facts of the assistant's last message in a turn, or of the one before if it states none."""
    said = [message for message in turn.work if message.role == "assistant" and spoken(message.content)]
    stated = (speech.assistant_facts(message) for message in said[:-3:-1])
    return next((facts for facts in stated if facts), list[Fact]())


def _user_facts(opening: Message, turn: _UserTurn) -> list[Fact]:
    """Return the user's request and assertions; the first fact mentions an image if the message contains one."""
    facts = [*_request(opening, turn.request), *speech.user_facts(opening, turn.before)]
    if any(block.get("type") == "image" for block in opening.content):
        first, *rest = facts or [_request_fact(opening, f"{labels.SHOWED}: {clip(spoken(opening.content))}")]
        return [replace(first, content=first.content.replace(": ", f"{labels.WITH_IMAGE}: ", 1)), *rest]
    return facts


def _request(opening: Message, request: str | None) -> Iterator[Fact]:
    if request:
        asked = cues.asks(request) or cues.REQUEST.search(request)
        yield _request_fact(opening, f"{labels.ASKED if asked else labels.WROTE}: {request}")


def _request_fact(opening: Message, content: str) -> Fact:
    return Fact(content, "low", "fact", "user", (opening.seq,), opening.sent_at)


def _failures(turn: _UserTurn, known: dict[str, tools.ToolCall]) -> Iterator[Fact]:
    """Yield each failure of a turn once, with the assistant's first explanation after it."""
    seen: set[str] = set()
    for place, message in enumerate(turn.work):
        for failure in tools.failures(message, known):
            if failure.line in seen:
                continue
            seen.add(failure.line)
            yield _failure_fact(message, failure, _explanation(turn.work[place + 1 :]))


def _explanation(later: Sequence[Message]) -> tuple[Message, str] | None:
    for message in later:
        if message.role == "assistant" and (cause := speech.cause_in(message)):
            return message, cause
    return None


def _failure_fact(message: Message, failure: tools.Failure, explained: tuple[Message, str] | None) -> Fact:
    command = f"`{clip(failure.call.command, 120)}` failed" if failure.call and failure.call.command else "Error"
    seqs = {
        message.seq,
        *([failure.call.seq] if failure.call else []),
        *([explained[0].seq] if explained else []),
    }
    return Fact(
        content=f"{command}: {failure.line}" + (f" — cause: {explained[1]}" if explained else ""),
        priority="medium" if explained else "low",
        category="issue",
        trust=message.trust,
        source_seqs=tuple(sorted(seqs)),
        said_at=message.sent_at,
    )


def _changes(turn: _UserTurn, cwd: str) -> Iterator[Fact]:
    files = {_below(path, cwd): message for message in turn.work for path in tools.changed_files(message)}
    commits = {text: message for message in turn.work for text in tools.commits(message)}
    if files:
        more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
        purpose = f"{labels.PURPOSE}{turn.request}" if turn.request else ""
        opening = [turn.opening.seq] if turn.opening and turn.request else []
        yield Fact(
            content=f"Changed {', '.join(list(files)[:_MOST_FILES])}{more}{purpose}",
            priority="low",
            category="state_change",
            trust="assistant",
            source_seqs=tuple(sorted({*opening, *(message.seq for message in files.values())})),
            said_at=list(files.values())[-1].sent_at,
        )
    for text, message in commits.items():
        yield Fact(f"{labels.COMMITTED}: {text}", "low", "outcome", "assistant", (message.seq,), message.sent_at)


def _below(path: str, cwd: str) -> str:
    """Return a path relative to its project's folder."""
    return path.removeprefix(cwd.rstrip("/") + "/") if cwd else path


def _unseen(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts without those that the session has stored already and without repeats."""
    seen = {_same(memory.content) for memory in previous}
    kept: list[Fact] = []
    for fact in facts:
        if (key := _same(fact.content)) not in seen:
            seen.add(key)
            kept.append(fact)
    return kept


def _with_time(fact: Fact, timezone: str) -> Fact:
    """Return a fact with the time that it refers to and its `tentative` flag."""
    mentioned = mentioned_time(without_label(fact.content), fact.said_at, timezone)
    tentative = fact.trust == "user" and bool(cues.TENTATIVE.search(fact.content))
    return replace(
        fact,
        priority="medium" if tentative and fact.priority == "high" else fact.priority,
        refers_from=mentioned.refers.start if mentioned.refers else None,
        refers_to=mentioned.refers.end if mentioned.refers else None,
        valid_until=mentioned.valid_until if mentioned.valid_until and mentioned.valid_until > fact.said_at else None,
        tentative=tentative,
    )


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


def _within_budget(facts: Sequence[Fact]) -> list[Fact]:
    """Drop facts of the lowest priority, the newest first, until the rest fits into the budget of one call."""
    spent, kept = 0, set[int]()
    order = sorted(range(len(facts)), key=lambda place: (-PRIORITY_WEIGHT[facts[place].priority], place))
    for place in order:
        spent += estimate_tokens(facts[place].content)
        if spent > MAX_OBSERVATION_TOKENS:
            break
        kept.add(place)
    return [fact for place, fact in enumerate(facts) if place in kept]
