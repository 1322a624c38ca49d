"""The paraphraser that is a language model."""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from pydantic import BaseModel

from esker.server.core.json_input import clean_text
from esker.server.providers.answers import read_answer
from esker.server.providers.messages_api import MessagesModel, ModelReply
from esker.server.providers.roles import Meter

_MOST = 3
_MOST_CHARACTERS = 400
_MOST_ANSWER_TOKENS = 500


class WordingsAnswer(BaseModel):
    """What the model is asked for."""

    wordings: list[str]


class ModelParaphraser:
    """Asks a language model for other wordings of questions."""

    def __init__(self, model: MessagesModel) -> None:
        self._model = model
        self._prompt = files("esker.server.providers").joinpath("prompts/paraphraser.md").read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._model.model

    async def wordings(self, query: str, meter: Meter) -> list[str]:
        """Return up to three other wordings of a question. Raises ModelFailed, SpendCapReached."""

        def read(reply: ModelReply) -> list[str]:
            return list(_others(query, read_answer(reply.text, WordingsAnswer).wordings))[:_MOST]

        answered = await self._model.ask(
            self._prompt,
            [{"type": "text", "text": f"<question>\n{query}\n</question>"}],
            WordingsAnswer,
            read,
            max_tokens=_MOST_ANSWER_TOKENS,
            meter=meter,
        )
        return answered.value

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()


def _others(query: str, offered: Sequence[str]) -> Iterator[str]:
    """Yield what can be searched for and is not there yet."""
    known = {_plain(query)}
    for text in offered:
        wording = " ".join(clean_text(text).split())
        if 0 < len(wording) <= _MOST_CHARACTERS and _plain(wording) not in known:
            known.add(_plain(wording))
            yield wording


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
