"""The extractive observer: no model, the transcript's own words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from esker.server.core.budgets import MAX_OBSERVATION_TOKENS
from esker.server.core.conversation.blocks import spoken
from esker.server.core.conversation.records import StoredMessage
from esker.server.core.conversation.slices import starts_turn
from esker.server.core.dates.mentioned import mentioned_time
from esker.server.core.facts.records import Fact, Observed, TranscriptSlice
from esker.server.core.ranking import PRIORITY_WEIGHT
from esker.server.core.records import Memory
from esker.server.core.text import labels
from esker.server.core.text.labels import own_statement, without_notes
from esker.server.core.text.terms import index_terms, terms
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive import cues, tools
from esker.server.providers.extractive.closing import reported_facts, still_telling, with_closed_ends
from esker.server.providers.extractive.objections import Objection
from esker.server.providers.extractive.persons import chat_facts, with_loose_time
from esker.server.providers.extractive.sentences import clip, sentences
from esker.server.providers.extractive.speakers import people, speakers
from esker.server.providers.extractive.speech import Quotation, Speech, read_speech, request, speech_facts
from esker.server.providers.extractive.superseding import with_replaced
from esker.server.providers.extractive.weighing import content_units, names, stands_alone, weight

_MOST_FILES, _MOST_FILES_BESIDE = 12, 4
# Minimum weight of a suggestion that is kept, and minimum share of its terms in a report of what was agreed.
_SUGGESTS, _TOLD = 1, 0.6
# Minimum words and names of what is said of an image.
_FEWEST_UNITS = 2
# Minimum terms that a failure and its explanation share.
_SHARED_TERMS = 2


def observe(shown: TranscriptSlice) -> Observed:
    """Return the facts of a slice; the same slice gives the same facts."""
    named = speakers(shown.messages)
    chat = people(shown.messages, named, is_known=_knows_other(shown.previous))
    turns = [] if chat else list(_turns(shown.messages, named))
    known_before = sorted((*shown.related, *shown.known, *shown.previous), key=lambda row: (row.said_at, row.id))
    contents = [row.content for row in known_before if row.trust == "user"]
    if chat:
        facts = chat_facts(shown.messages, chat)
    else:
        facts = _facts(turns, tools.calls(shown.messages), contents, shown.session.cwd or "")
    asked = [turn.request for turn in turns if turn.request]
    open_ends = [fact.content for fact in facts if fact.category == "next_step"]
    told = with_closed_ends(_each_once(facts), shown.previous)
    timezone = shown.session.timezone
    dated = [_with_time(fact, timezone) for fact in told]
    if chat:
        dated = [with_loose_time(fact, timezone) for fact in dated]
    return Observed(
        facts=tuple(_within_budget(_unseen(with_replaced(dated, known_before), shown.previous))),
        current_task=asked[-1] if asked else None,
        suggested_continuation=open_ends[-1] if open_ends else None,
        thread_title=clip(asked[0], 80) if asked and shown.session.thread_title is None else None,
    )


def _knows_other(previous: Sequence[Memory]) -> bool:
    """Whether earlier rows of a session call its assistant a person."""
    return any(row.content.startswith(labels.OTHER_SAID) for row in previous)


@dataclass(slots=True)
class _UserTurn:
    """A user's message and the work on it until the user's next message.

    `opening` is None if the turn began in an earlier slice.
    """

    opening: Speech | None
    work: list[StoredMessage] = field(default_factory=list[StoredMessage])

    @property
    def question(self) -> Quotation | None:
        """The question that the user's message ends with, or None."""
        last = self.opening.utterances[-1] if self.opening and self.opening.utterances else ""
        return Quotation(last, self.opening.message.seq) if self.opening and cues.asks(last) else None

    @property
    def request(self) -> str | None:
        return request(self.opening) if self.opening else None


def _turns(messages: Sequence[StoredMessage], named: Mapping[int, str]) -> Iterator[_UserTurn]:
    turn = _UserTurn(None)
    before: StoredMessage | None = None
    for message in messages:
        if starts_turn(message) or (message.seq in named and message.role == "assistant"):
            yield turn
            speaker = named.get(message.seq)
            turn = _UserTurn(read_speech(message, None if speaker else before, speaker, turn.question))
            before = None  # a question is answered once
        else:
            turn.work.append(message)
            before = message if message.role == "assistant" and message.text else before
    yield turn


def _facts(
    turns: Sequence[_UserTurn], calls: dict[str, tools.ToolCall], contents: Sequence[str], cwd: str
) -> list[Fact]:
    """Return the facts of all turns; `contents` are those of the user's earlier rows.

    Where a user takes back the last rulings, the next one replaces them. A report of the agent quotes the user's next
    message where that contradicts it.
    """
    facts: list[Fact] = []
    ruled: list[Fact] = []
    last: list[Fact] = []
    for turn in turns:
        before = [*contents, *(fact.content for fact in facts if fact.trust == "user")]
        told = list(_turn_facts(turn, calls, before, cwd))
        rulings = [fact for fact in told if fact.trust == "user" and fact.category in ("decision", "preference")]
        if rulings and ruled and turn.opening and turn.opening.takes_back:
            facts = [fact for fact in facts if fact is ruled[-1] or fact not in ruled]
            told[told.index(rulings[0])] = replace(rulings[0], replaces=ruled[-1].content)
        if turn.opening:
            facts = Objection.read(turn.opening).noted(facts, last)
        facts += told
        ruled, last = rulings or ruled, told
    return facts


def _turn_facts(turn: _UserTurn, calls: dict[str, tools.ToolCall], before: Sequence[str], cwd: str) -> Iterator[Fact]:
    if turn.opening:
        yield from _user_facts(turn.opening, before)
    asked_by = turn.opening.message.seq if turn.opening else None
    shows_error = bool(turn.opening and turn.opening.errors)
    reported = reported_facts(turn.work, turn.request, asked_by, shows_error=shows_error)
    if turn.opening:
        yield from _adopted(turn.opening, turn.work, reported)
    changed = _changed_files(turn, cwd)
    failed = list(_failures(turn, calls))
    yield from failed
    yield from _with_files([fact for fact in reported if not _is_explained(fact, failed)], changed)
    if not reported:
        yield from _commits(turn)
    if changed and not reported and turn.opening and turn.request and _is_purpose(turn.request):
        yield _changes(turn.opening.message, turn.request, changed)


def _is_purpose(request: str) -> bool:
    """Whether a request says what a change is for: it is an order that can be understood alone."""
    return stands_alone(request) and not cues.asks(request)


def _user_facts(speech: Speech, before: Sequence[str]) -> list[Fact]:
    """Return the facts in a user's words; the first fact mentions an image if the message contains one."""
    facts = speech_facts(speech, before)
    if speech.shows_image:
        if not facts:
            return _shown(speech)
        first, *rest = facts
        return [replace(first, content=first.content.replace(": ", f"{labels.WITH_IMAGE}: ", 1)), *rest]
    return facts


def _adopted(speech: Speech, work: Sequence[StoredMessage], reported: Sequence[Fact]) -> Iterator[Fact]:
    """Yield the telling suggestions of a user, in the form of a question, with which the agent's answer agrees."""
    answer = next((message for message in work if message.role == "assistant" and spoken(message.content)), None)
    for said in speech.rest if answer else ():
        if answer and _suggests(said) and _agrees(answer, said, reported):
            yield Fact(
                content=f"{labels.SUGGESTED}: {said}{labels.ADOPTED}",
                priority="medium",
                category="decision",
                trust="user",
                source_seqs=(speech.message.seq, answer.seq),
                said_at=answer.sent_at,
            )


def _suggests(said: str) -> bool:
    return cues.asks(said) and bool(cues.SUGGESTS.search(said)) and weight(said) >= _SUGGESTS and stands_alone(said)


def _agrees(answer: StoredMessage, suggested: str, reported: Sequence[Fact]) -> bool:
    """Whether an answer begins with a yes, or reports most of what was suggested and does not begin with a no."""
    first = next(iter(sentences(spoken(answer.content))), "")
    if cues.NO.search(first) or cues.NO_ANSWER.search(first):
        return False
    words = {*terms(suggested)}
    told = {term for fact in reported for term in terms(own_statement(fact.content))}
    return bool(cues.AGREEMENT.search(first) or cues.PLAIN_YES.search(first)) or len(words & told) >= _TOLD * len(words)


def _shown(speech: Speech) -> list[Fact]:
    """Return the fact of an image that was shown with words which state nothing; none if it has no words."""
    message = speech.message
    words = spoken(message.content)
    if content_units(words) < _FEWEST_UNITS:
        return []
    return [Fact(f"{labels.SHOWED}: {clip(words)}", "low", "fact", "user", (message.seq,), message.sent_at)]


def _failures(turn: _UserTurn, calls: dict[str, tools.ToolCall]) -> Iterator[Fact]:
    """Yield the failures of a turn that the assistant explains, each once, with the explanation."""
    seen: set[str] = set()
    for place, message in enumerate(turn.work):
        for failure in tools.failures(message, calls):
            explained = _explanation(failure, turn.work[place + 1 :]) if failure.line not in seen else None
            seen.add(failure.line)
            if explained:
                yield _failure_fact(message, failure, *explained)


def _explanation(failure: tools.Failure, later: Sequence[StoredMessage]) -> tuple[StoredMessage, str] | None:
    """Return the assistant's next words if they explain this failure.

    They speak of "the cause", or share names and rare words with the command and its output. Words behind another
    result are about that one.
    """
    for message in later:
        if any(block.get("type") == "tool_result" for block in message.content):
            return None
        if message.role == "assistant" and (text := spoken(message.content)):
            cause = next((said for said in sentences(text) if cues.CAUSE.search(said) and not cues.asks(said)), None)
            return (message, cause) if cause and _is_about(cause, failure) else None
    return None


def _is_about(cause: str, failure: tools.Failure) -> bool:
    command = failure.call.command if failure.call else ""
    shared = {*index_terms(f"{failure.line} {command}")} & {*index_terms(cause)}
    return bool(cues.GENERAL_SUBJECT.search(cause)) or len(shared) >= _SHARED_TERMS


def _failure_fact(message: StoredMessage, failure: tools.Failure, explaining: StoredMessage, cause: str) -> Fact:
    command = f"`{clip(failure.call.command, 120)}` failed" if failure.call and failure.call.command else "Error"
    seqs = {message.seq, explaining.seq, *([failure.call.seq] if failure.call else [])}
    return Fact(
        content=f"{command}: {failure.line} — cause: {cause}",
        priority="medium",
        category="issue",
        trust=message.trust,
        source_seqs=tuple(sorted(seqs)),
        said_at=message.sent_at,
    )


def _is_explained(fact: Fact, failed: Sequence[Fact]) -> bool:
    """Whether the fact of a failure contains a reported fact as its cause."""
    return any(own_statement(fact.content) in failure.content for failure in failed)


def _changed_files(turn: _UserTurn, cwd: str) -> dict[str, StoredMessage]:
    """Return the files that a turn changes, each with the last message that does."""
    return {_below(path, cwd): message for message in turn.work for path in tools.changed_files(message)}


def _with_files(reported: Sequence[Fact], files: Mapping[str, StoredMessage]) -> Iterator[Fact]:
    """Yield the reported facts; the first outcome that names nothing gets the names of the changed files."""
    missing = bool(files)
    for fact in reported:
        if missing and fact.category == "outcome" and not names(fact.content):
            missing = False
            shown = ", ".join(list(files)[:_MOST_FILES_BESIDE])
            cited = tuple(sorted({*fact.source_seqs, *(message.seq for message in files.values())}))
            yield replace(fact, content=f"{fact.content} (changed {shown})", source_seqs=cited)
        else:
            yield fact


def _changes(opening: StoredMessage, purpose: str, files: Mapping[str, StoredMessage]) -> Fact:
    more = f" and {len(files) - _MOST_FILES} more" if len(files) > _MOST_FILES else ""
    return Fact(
        content=f"Changed {', '.join(list(files)[:_MOST_FILES])}{more}{labels.PURPOSE}{purpose}",
        priority="low",
        category="state_change",
        trust="assistant",
        source_seqs=tuple(sorted({opening.seq, *(message.seq for message in files.values())})),
        said_at=list(files.values())[-1].sent_at,
    )


def _commits(turn: _UserTurn) -> Iterator[Fact]:
    commits = {text: message for message in turn.work for text in tools.commits(message)}
    for text, message in commits.items():
        if stands_alone(text):
            yield Fact(f"{labels.COMMITTED}: {text}", "low", "outcome", "assistant", (message.seq,), message.sent_at)


def _below(path: str, cwd: str) -> str:
    """Return a path relative to its project's folder, and of a file elsewhere its name."""
    below = path.removeprefix(cwd.rstrip("/") + "/") if cwd else path
    return PurePath(below).name if below.startswith(("/", "~")) else below


def _each_once(facts: Sequence[Fact]) -> list[Fact]:
    """Return facts without repeats."""
    once: dict[str, Fact] = {}
    for fact in still_telling(facts):
        once.setdefault(_same(fact.content), fact)
    return list(once.values())


def _unseen(facts: Sequence[Fact], previous: Sequence[Memory]) -> list[Fact]:
    """Return facts without those that the session has stored already, and without what those replaced."""
    stored = {_same(without_notes(memory.content)) for memory in previous}
    again = [fact for fact in facts if _same(without_notes(fact.content)) in stored]
    replaced = {name for fact in again for name in (fact.replaces or "").splitlines()}
    return [fact for fact in facts if fact not in again and fact.content not in replaced]


def _with_time(fact: Fact, timezone: str) -> Fact:
    """Return a fact with the time that it refers to and its `tentative` flag."""
    stated = own_statement(fact.content)
    mentioned = mentioned_time(stated, fact.said_at, timezone)
    tentative = fact.trust == "user" and bool(cues.TENTATIVE.search(stated))
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
