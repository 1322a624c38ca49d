"""The paraphraser that is a language model."""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from pydantic import BaseModel

from esker.server.core.json_input import clean_text
from esker.server.providers.answers import read_answer
from esker.server.providers.language_model import LanguageModel, ModelReply
from esker.server.providers.roles import Meter

_MOST = 3
_MOST_CHARACTERS = 400
_MOST_ANSWER_TOKENS = 500


class ParaphrasesAnswer(BaseModel):
    """The JSON object that the model is asked for."""

    paraphrases: list[str]


class ModelParaphraser:
    """Asks a language model for paraphrases of questions."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._prompt = files("esker.server.providers").joinpath("prompts/paraphraser.md").read_text(encoding="utf-8")

    @property
    def name(self) -> str:
        """Return the name of the model."""
        return self._model.model

    async def paraphrases(self, query: str, meter: Meter) -> list[str]:
        """Return up to three paraphrases of a question. Raises ModelFailed, SpendCapReached."""

        def read(reply: ModelReply) -> list[str]:
            return list(_new_paraphrases(query, read_answer(reply.text, ParaphrasesAnswer).paraphrases))[:_MOST]

        answered = await self._model.ask(
            self._prompt,
            [{"type": "text", "text": f"<question>\n{query}\n</question>"}],
            ParaphrasesAnswer,
            read,
            max_tokens=_MOST_ANSWER_TOKENS,
            meter=meter,
        )
        return answered.value

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()


def _new_paraphrases(query: str, offered: Sequence[str]) -> Iterator[str]:
    """Yield the paraphrases that are short enough and new, whitespace and case aside."""
    known = {_plain(query)}
    for text in offered:
        paraphrase = " ".join(clean_text(text).split())
        if 0 < len(paraphrase) <= _MOST_CHARACTERS and _plain(paraphrase) not in known:
            known.add(_plain(paraphrase))
            yield paraphrase


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
