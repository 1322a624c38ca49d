"""The cases of the suite: messages of one session, and what should be known of them."""

from typing import Annotated, cast

from pydantic import AwareDatetime, Field, JsonValue, model_validator

from esker.server.core.conversation.records import Role
from esker.server.core.json_input import Json
from evals.case_files import AnyCase, CaseText, Name, StrictPart
from evals.scoring.gold import Domain, Gold


class CaseMessage(StrictPart):
    """A message: text, or blocks of the Messages API."""

    id: Name
    role: Role
    at: AwareDatetime
    content: CaseText | list[dict[str, JsonValue]]

    @property
    def text(self) -> str:
        """All words of the message, tool calls and results included."""
        return self.content if isinstance(self.content, str) else "\n".join(_words(cast("Json", self.content)))


def _words(value: Json) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [word for part in value.values() for word in _words(part)]
        case list():
            return [word for part in value for word in _words(part)]
        case _:
            return [str(value)]


class ObservationCase(AnyCase):
    """A session and its gold; `rows` of an atom are ids of messages."""

    domain: Domain = "other"
    messages: Annotated[tuple[CaseMessage, ...], Field(min_length=1, max_length=200)]
    gold: Gold

    @model_validator(mode="after")
    def _fits(self) -> "ObservationCase":
        texts = {message.id: message.text for message in self.messages}
        faults = [*self.gold.faults(texts, self.language)]
        if len(texts) != len(self.messages):
            faults.append("two messages have one id")
        if faults:
            raise ValueError("; ".join(faults))
        return self
