"""Prompts that a person types while Claude Code works, as the lines about its queue record them.

A prompt is enqueued with its words. It then becomes the first message of a turn (`dequeue`), goes back into the input
(`popAll`, `popOne`), or leaves the queue in mid-turn (`remove`): given to the model, unless a reason says otherwise.
Newer builds write a prompt that was given to the model as a line of its own as well, others only record these
operations, and not always which prompt they are about.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from esker.server.agents.content import as_text, joined
from esker.server.agents.lines import JsonLine
from esker.server.agents.reader_entries import digest
from esker.server.core.conversation.injected import strip_injected
from esker.server.core.json_input import Json

LINE = "queue-operation"

_GIVEN_REASONS = (None, "absorbed_mid_turn")
# Names of queued prompts that are commands to the client; it never gives these to the model in mid-turn.
_COMMAND = "/"


@dataclass(slots=True, eq=False)
class QueuedPrompt:
    """A prompt with the id and the time of its message; `told`: it has a line of its own."""

    name: str
    content: Json
    at: Json
    words: str
    by_person: bool
    told: bool = False


@dataclass(slots=True)
class PromptQueue:
    """The queue of one session while its lines are read."""

    _waiting: list[QueuedPrompt] = field(default_factory=list[QueuedPrompt])
    _given: list[QueuedPrompt] = field(default_factory=list[QueuedPrompt])  # given to the model, not answered yet
    _answered: list[QueuedPrompt] = field(default_factory=list[QueuedPrompt])
    _dequeued: int = 0  # prompts that began a turn, whose line has not come yet
    _unsent: set[str] = field(default_factory=set[str])
    _repeated: set[str] = field(default_factory=set[str])

    def note(self, line: JsonLine, position: str) -> QueuedPrompt | None:
        """Record an operation; return the prompt that it gave to the model, or None."""
        self._begin_turns()
        content = line.get("content")
        match line.get("operation"):
            case "enqueue" if words_of(content):
                self._waiting.append(_queued(line, position))
            case "dequeue":
                self._dequeued += 1
            case "remove":
                return self._remove(line, position)
            case "popAll" if not words_of(content):
                self._waiting = [each for each in self._waiting if not each.by_person]
            case "popAll" | "popOne":
                self._take(words_of(content), reversed(self._waiting))
            case _:
                pass
        return None

    def hear(self, content: Json) -> None:
        """Record the words of a message line, which may repeat a prompt in the queue."""
        words = words_of(content)
        if not words:
            return
        if repeated := _first(words, self._given):
            self._repeated.add(repeated.name)
            self._given.remove(repeated)
        elif waiting := _first(words, self._waiting):
            waiting.told = True
            if self._dequeued:
                self._waiting.remove(waiting)
                self._dequeued -= 1
        elif self._dequeued and (guessed := _first(words, self._answered)):
            # The guess was wrong: another prompt left the queue in mid-turn.
            self._repeated.add(guessed.name)
            self._answered.remove(guessed)

    def answer(self) -> None:
        """Record that the assistant spoke: it has read the prompts that were given to it."""
        self._begin_turns()
        self._waiting = [prompt for prompt in self._waiting if not prompt.told]
        self._answered += self._given
        self._given = []

    def interrupt(self) -> None:
        """Record that the user began another turn before the assistant answered."""
        self._unsent.update(prompt.name for prompt in self._given)
        self._given = []

    def repeated(self) -> set[str]:
        """Return the names of prompts that have a line of their own."""
        return self._repeated

    def unsent(self) -> set[str]:
        """Return the names of prompts that no answer followed."""
        return self._unsent | {prompt.name for prompt in self._given}

    def _remove(self, line: JsonLine, position: str) -> QueuedPrompt | None:
        words = words_of(line.get("content"))
        found = self._take(words, self._waiting) or (_queued(line, position) if words else None)
        if found is None or found.told or not found.by_person or line.get("reason") not in _GIVEN_REASONS:
            return None
        self._given.append(found)
        return found

    def _take(self, words: str, order: Iterable[QueuedPrompt]) -> QueuedPrompt | None:
        """Take out the prompt with these words; if `words` is empty, the first one of a person, else the first one."""
        order = list(order)
        known = _first(words, order) if words else next((each for each in order if each.by_person), None)
        taken = known or (None if words else next(iter(order), None))
        if taken:
            self._waiting.remove(taken)
        return taken

    def _begin_turns(self) -> None:
        """Take out the prompts that began a turn, but whose line has other words or is missing."""
        for _ in range(min(self._dequeued, len(self._waiting))):
            self._take("", self._waiting)
        self._dequeued = 0


def words_of(content: Json) -> str:
    """Return the words of a prompt without white space, for comparison."""
    return "".join(joined(content).split())


def _queued(line: JsonLine, position: str) -> QueuedPrompt:
    content, at = line.get("content"), line.get("timestamp", "")
    words = words_of(content)
    by_person = bool(strip_injected(joined(content))) and not words.startswith(_COMMAND)
    return QueuedPrompt(digest(LINE, as_text(at) or position, words), content, at, words, by_person)


def _first(words: str, prompts: Iterable[QueuedPrompt]) -> QueuedPrompt | None:
    return next((prompt for prompt in prompts if prompt.words == words), None)
