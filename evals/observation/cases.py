"""The cases of the suite: messages of one session, and the facts that should be known of them."""

from typing import Annotated, cast

from pydantic import AwareDatetime, Field, JsonValue

from esker.server.core.conversation.records import Role
from esker.server.core.json_input import Json
from evals.case_files import CaseText, Name, StrictPart
from evals.gold_cases import GoldCase
from evals.scoring.gold import LogRow


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

    def row(self) -> LogRow:
        """Return the message as a row of a log, which is never blank."""
        return LogRow(id=self.id, at=self.at, text=self.text or "-")


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


class ObservationCase(GoldCase):
    """A session and its gold."""

    messages: Annotated[tuple[CaseMessage, ...], Field(min_length=1, max_length=200)]

    def log(self) -> list[LogRow]:
        """Return the messages as the log that rows cite."""
        return [message.row() for message in self.messages]
