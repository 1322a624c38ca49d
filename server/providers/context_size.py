"""How long the context of a model is, as a setting, its server or a refused request says."""

import asyncio
from collections.abc import Mapping
from typing import Literal

import httpx2

from esker.server.core.budgets import SMALL_CONTEXT_TOKENS
from esker.server.core.json_input import Json, as_object
from esker.server.providers.bounded_answers import bounded
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_model import PROBE_SECONDS, counted

ModelSize = Literal["auto", "small", "large"]

# The names of the field in the lists of vLLM, LM Studio, OpenRouter and Ollama, Groq, Mistral.
_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "context_window", "max_context_length")


class ContextSize:
    """Knows or finds out how many tokens one model's context has, and whether the model is to be treated as small."""

    def __init__(self, size: ModelSize = "auto", tokens: int | None = None) -> None:
        self._size = size
        self._tokens = tokens
        self._asked = tokens is not None

    async def tokens(self) -> int | None:
        """Return the tokens of the context, or None if they are unknown."""
        if not self._asked:
            self._tokens, self._asked = await self._ask()
        return self._tokens

    async def is_small(self) -> bool:
        """Whether requests are to be short: set so, or the context is small."""
        tokens = await self.tokens()
        if self._size == "auto":
            return tokens is not None and tokens < SMALL_CONTEXT_TOKENS
        return self._size == "small"

    def learn(self, tokens: int) -> None:
        """Note that a request was too long for a context that has `tokens` tokens, as the server says."""
        self._tokens, self._asked = min(tokens, self._tokens or tokens), True

    async def _ask(self) -> tuple[int | None, bool]:
        """Return the tokens, and whether the server has been asked."""
        return None, True


class ServerContextSize(ContextSize):
    """Asks the server of a model."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        super().__init__(endpoint.size, endpoint.context_tokens)
        self._model = model
        self._endpoint = endpoint

    async def _ask(self) -> tuple[int | None, bool]:
        if self._endpoint.base_url is None or self._size == "large":
            return None, True
        headers = {"Authorization": f"Bearer {self._endpoint.api_key}"} if self._endpoint.api_key else {}
        try:
            async with bounded(httpx2.AsyncClient(timeout=PROBE_SECONDS, headers=headers)) as client:
                return await self._told(client), True
        except (httpx2.HTTPError, ValueError, TimeoutError):
            return None, False

    async def _told(self, client: httpx2.AsyncClient) -> int | None:
        """Return what the server says in its list of models, or in one of its own."""
        root = self._endpoint.messages_url or ""
        lists = (f"{self._endpoint.chat_url}/models", f"{root}/api/v0/models", f"{root}/api/ps")
        for address in lists:
            if tokens := self._in_list(await _json(client, address)):
                return tokens
        return await self._of_ollama(client, root)

    def _in_list(self, answer: Mapping[str, Json]) -> int | None:
        entries = [*_entries(answer.get("data")), *_entries(answer.get("models"))]
        named = [each for each in entries if self._model in (each.get("id"), each.get("name"), each.get("model"))]
        # A server of one model may answer to any name.
        for entry in named or (entries if len(_entries(answer.get("data"))) == 1 else []):
            if entry.get("state") == "not-loaded":
                continue  # LM Studio knows the length when it has loaded the model
            for value in (as_object(entry.get("meta")).get("n_ctx"), *(entry.get(name) for name in _FIELDS)):
                if tokens := counted(value):
                    return tokens
        return None

    async def _of_ollama(self, client: httpx2.AsyncClient, root: str) -> int | None:
        """Return the context that Ollama gives the model: known once it is loaded, and without it text is cut off."""
        if "version" not in await _json(client, f"{root}/api/version"):
            return None
        async with asyncio.timeout(self._endpoint.timeout):
            await client.post(f"{root}/api/generate", json={"model": self._model, "stream": False}, timeout=None)
        return self._in_list(await _json(client, f"{root}/api/ps"))


async def _json(client: httpx2.AsyncClient, address: str) -> Mapping[str, Json]:
    """Return the object at an address; an empty one if there is none. Raises HTTPError, TimeoutError."""
    # The client's own limit holds for each read, not for the whole answer.
    async with asyncio.timeout(PROBE_SECONDS):
        answer = await client.get(address)
    try:
        found: object = answer.json() if answer.status_code == 200 else {}
    except (ValueError, RecursionError):
        return {}
    return as_object(found)


def _entries(listed: Json) -> list[dict[str, Json]]:
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
