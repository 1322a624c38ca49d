"""The parts of a model request and of its answer that the gateway reads, in the blocks of the Messages API."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from esker.server.agents.content import Block
from esker.server.core.conversation.records import Role
from esker.server.core.json_input import JsonObject
from esker.server.core.records import TokenUse


@dataclass(frozen=True, slots=True)
class Turn:
    """One entry of a conversation; `item` is its place in the list of the request that has it."""

    role: Role
    content: Sequence[Block]
    item: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation that a request continues; `instructions` are the texts of its system prompt."""

    model: str | None
    turns: Sequence[Turn]
    offers_tools: bool
    instructions: Sequence[str] = ()

    @property
    def has_answer(self) -> bool:
        """Whether the model has said something in it."""
        return any(turn.role == "assistant" for turn in self.turns)


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A model's answer; `used` is None if the provider did not say. An answer that was cut off is not `whole`."""

    id: str | None = None
    model: str | None = None
    turns: Sequence[Turn] = ()
    used: TokenUse | None = None
    whole: bool = False


class Event(NamedTuple):
    """A server-sent event whose data is a JSON object."""

    name: str
    data: JsonObject


@dataclass(frozen=True, slots=True)
class Protocol:
    """A provider's protocol: how to read its requests and answers, and where the pack goes.

    `with_pack` takes the text of a request and returns it with the pack, every other character as it was, or None if
    the request has no place for it. `history` is the member of a request with its conversation.
    """

    name: str
    history: str
    read_request: Callable[[JsonObject], Conversation]
    with_pack: Callable[[str, str], str | None]
    read_answer: Callable[[JsonObject], ModelAnswer]
    read_events: Callable[[Iterable[Event]], ModelAnswer]


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, as far as it says: its client, its session there, its directory and project.

    `agent` is the sub-agent that sent it, or None for the agent itself.
    """

    client: str
    session: str | None = None
    cwd: str | None = None
    project: str | None = None
    agent: str | None = None

    @property
    def session_name(self) -> str | None:
        """The name of the session; a sub-agent has one of its own, as in its client's transcripts."""
        return f"{self.session}/agent-{self.agent}" if self.agent else self.session
