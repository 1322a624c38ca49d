"""A language model that is asked for answers of a given shape, whatever the protocol of its server is.

This module has what holds for every protocol: each call is counted before it is made, a late answer is given up, a busy
provider is asked again, and a bad answer is sent back once. A `Wire` knows the protocol: `messages_api.py`,
`chat_api.py`.
"""

import asyncio
import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from esker.server.core.config.prices import add_up
from esker.server.core.errors import (
    ContextExceeded,
    ModelDown,
    ModelFailed,
    ModelTooSlow,
    RequestRefused,
    UnusableAnswer,
)
from esker.server.core.records import TokenUse
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens
from esker.server.core.tracing import Attribute, Span, span
from esker.server.providers.answer_schema import schema_of
from esker.server.providers.breaker import Breaker
from esker.server.providers.roles import Meter

Accepted = TypeVar("Accepted")
Content = list[dict[str, Any]]
Stop = Literal["end", "cut_off", "refused"]

_RETRIES = 2
"""Retries of a busy provider; after them its breaker opens, and jobs wait."""
_FIRST_RETRY_SECONDS = 0.5
_LONGEST_RETRY_SECONDS = 30.0
CONNECT_SECONDS = 5.0
PROBE_SECONDS = 5.0
TOOL = "answer"
"""The name of the tool whose input is the answer, where the shape is requested by one."""
# A larger token count in an answer is not plausible and is ignored.
_MOST_TOKENS = 10**9
# Statuses that are about the time, not about the request.
_NOT_ABOUT_THE_REQUEST = frozenset({408, 425, 429})
_ABOUT_THE_KEY = frozenset({401, 402, 403})
_REFUSED = frozenset({400, 413, 422})
TOO_LONG = re.compile(
    r"context[ _-]?(?:size|length|window)|maximum context|prompt is too long|too many (?:input )?tokens|"
    r"input is too long|exceeds? the (?:maximum|model)[^.]{0,40}tokens|reduce the length",
    re.IGNORECASE,
)
"""How servers and clients say that a request is longer than the model's context."""
# The length of the context, as such an error names it.
_CONTEXT_NAMED = re.compile(
    r"context (?:size|length|window)\D{0,20}?(\d{4,7})|(\d{4,7})(?: tokens)? maximum", re.IGNORECASE
)
_ABOUT_AN_IMAGE = re.compile(r"\b(?:image|vision|multimodal)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request: instructions, messages with `role` and `content`, the shape of the answer and its maximum tokens."""

    system: str
    messages: list[dict[str, Any]]
    shape: type[BaseModel]
    max_tokens: int

    @property
    def has_images(self) -> bool:
        """Whether an image is sent."""
        return any(text is None for text in self.texts())

    def texts(self) -> Iterator[str | None]:
        """Yield the texts that are sent, None for an image."""
        yield self.system
        for message in self.messages:
            content = message["content"]
            if isinstance(content, str):
                yield content
            else:
                yield from (block.get("text") for block in content)

    def at_most(self) -> TokenUse:
        """Return the estimated maximum token use of the call: the whole request, and the longest allowed answer."""
        sent = sum(IMAGE_TOKENS if text is None else estimate_tokens(text) for text in self.texts())
        return TokenUse(sent + estimate_tokens(json.dumps(schema_of(self.shape))), self.max_tokens)


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """An answer as a wire read it."""

    text: str
    stop: Stop
    used: TokenUse


class Wire(Protocol):
    """Sends requests to one model in the protocol of its server; spans name the protocol as `provider`."""

    @property
    def provider(self) -> str:
        """The name of the protocol or the client."""
        ...

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait until a call may be made."""
        ...

    async def send(self, request: ModelRequest) -> WireAnswer:
        """Return the answer. Raises ModelFailed."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's text. `cut_off`: it ran out of tokens. `last`: it will not be asked again, so keep the good parts."""

    text: str
    cut_off: bool
    last: bool
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Answered(Generic[Accepted]):
    """The value of an accepted answer, and its token use."""

    value: Accepted
    used: TokenUse


class ModelContext(Protocol):
    """How long a model's context is."""

    async def tokens(self) -> int | None:
        """Return its tokens, or None if they are unknown."""
        ...

    async def is_small(self) -> bool:
        """Whether requests are to be short."""
        ...

    def learn(self, tokens: int) -> None:
        """Note that a request was too long for a context of `tokens` tokens."""
        ...


class LanguageModel:
    """Asks one model for answers of a given shape.

    `problem` says why it could not be reached the last time, or is None.
    """

    def __init__(
        self, model: str, wire: Wire, timeout: float, context: ModelContext, breaker: Breaker | None = None
    ) -> None:
        """`breaker` is that of the provider, which its other models share; without it, the model has its own."""
        self.model = model
        self.context = context
        self._wire = wire
        self.breaker = breaker or Breaker(model)
        self._timeout = timeout
        self.problem: str | None = None

    async def ask(
        self,
        system: str,
        content: Content,
        shape: type[BaseModel],
        read: Callable[[ModelReply], Accepted],
        *,
        max_tokens: int,
        meter: Meter,
    ) -> Answered[Accepted]:
        """Return the result of `read` for an answer of the given shape; `read` raises ValueError for a bad answer.

        A bad answer is sent back once with its problem. `read` runs in a thread. Every call is metered. Raises
        ModelFailed when the second answer is bad, too, when the model refuses, is too slow or cannot be reached;
        SpendCapReached when the meter allows no call.
        """
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        first = await self._answer(ModelRequest(system, messages, shape, max_tokens), meter)
        try:
            return Answered(await asyncio.to_thread(read, _reply(first, last=False)), first.used)
        except ValueError as error:
            complaint = f"That answer cannot be used: {error}\nAnswer again, with the JSON object alone."
        messages = [
            *messages,
            {"role": "assistant", "content": first.text or "(empty)"},
            {"role": "user", "content": complaint},
        ]
        second = await self._answer(ModelRequest(system, messages, shape, max_tokens), meter)
        try:
            value = await asyncio.to_thread(read, _reply(second, last=True))
        except ValueError as error:
            raise UnusableAnswer(f"{self.model} gave an answer that cannot be used, twice: {error}") from error
        return Answered(value, add_up([first.used, second.used]))

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._wire.close()

    async def _answer(self, request: ModelRequest, meter: Meter) -> WireAnswer:
        try:
            # Waiting for a turn does not count towards the timeout.
            async with self._wire.turn():
                answer = await self._tried(request, meter)
        except ModelDown as error:
            self.problem = str(error)
            raise
        self.problem = None
        if answer.stop == "refused":
            raise UnusableAnswer(f"{self.model} refused to answer.")
        return answer

    async def _tried(self, request: ModelRequest, meter: Meter) -> WireAnswer:
        """Ask, and ask a busy provider again."""
        most = await asyncio.to_thread(request.at_most)
        left, retries, now = self._timeout, 0, asyncio.get_running_loop().time
        while True:
            with self.breaker.call() as tries:
                call = await meter.reserve(self.model, most)
                began = now()
                try:
                    return await self._counted(request, most, meter, call, left)
                except ModelDown as error:
                    left -= now() - began
                    pause = _pause(error, retries)
                    if tries or retries == _RETRIES or pause is None or pause >= left or self.breaker.state():
                        raise
            await asyncio.sleep(pause)
            left, retries = left - pause, retries + 1

    def _span(self, request: ModelRequest) -> AbstractContextManager[Span]:
        """Open the span of a call, as the conventions for generative models name it."""
        return span(
            f"chat {self.model}",
            "CLIENT",
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._wire.provider,
                "gen_ai.request.model": self.model,
                "gen_ai.request.max_tokens": request.max_tokens,
            },
        )

    async def _counted(
        self, request: ModelRequest, most: TokenUse, meter: Meter, call: str, seconds: float
    ) -> WireAnswer:
        """Make a call that is reserved, and count what it used, or if that is unknown the most that it may have
        used."""
        try:
            with self._span(request) as span:
                async with asyncio.timeout(seconds):
                    answer = await self._wire.send(request)
                span.set(_outcome(answer))
        except TimeoutError as error:
            await meter.settle(call, self.model, most)
            raise ModelTooSlow(f"{self.model} did not answer within {self._timeout:g} seconds.") from error
        except ModelFailed as error:
            await meter.settle(call, self.model, (most if error.is_billed else TokenUse()) if error.is_sent else None)
            raise
        except BaseException:
            await asyncio.shield(meter.settle(call, self.model, most))
            raise
        await meter.settle(call, self.model, answer.used)
        return answer


def _outcome(answer: WireAnswer) -> dict[str, Attribute]:
    """Return what the conventions for generative models say of an answer; its words are not exported."""
    used = answer.used
    return {
        "gen_ai.response.finish_reasons": [answer.stop],
        "gen_ai.usage.input_tokens": used.input_tokens + used.cache_write_tokens + used.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": used.cache_write_tokens,
        "gen_ai.usage.cache_read.input_tokens": used.cache_read_tokens,
        "gen_ai.usage.output_tokens": used.output_tokens,
    }


def _pause(error: ModelDown, retries: int) -> float | None:
    """Return the seconds before the next try after this many, or None if there is to be none."""
    if error.reason != "busy":
        return None
    if error.seconds is not None:
        return error.seconds if error.seconds <= _LONGEST_RETRY_SECONDS else None
    return _FIRST_RETRY_SECONDS * 2**retries * (1 - secrets.randbelow(1000) / 4000)


def _reply(answer: WireAnswer, *, last: bool) -> ModelReply:
    return ModelReply(answer.text, answer.stop == "cut_off", last, answer.used.output_tokens)


def refusal(
    model: str, status: int, message: str, request: ModelRequest, headers: Mapping[str, str] | None = None
) -> ModelFailed:
    """Return the error for an error status: of the request, of the server or the key, or of something else.

    `headers` may say when to ask again. Providers bill no call that they answer so.
    """
    error = _refusal(model, status, message, request)
    error.is_billed = False
    if isinstance(error, ModelDown):
        error.seconds = _retry_after(headers or {})
    return error


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds after which a provider wants to be asked again; None for a date or anything else."""
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None


def _refusal(model: str, status: int, message: str, request: ModelRequest) -> ModelFailed:
    text = f"{model} answered {status}: {message}"
    if status in _REFUSED or status >= 500:
        # Some servers answer 500 to what they do not take.
        if status == 413 or TOO_LONG.search(message):
            return ContextExceeded(text, context=_context_in(message))
        if request.has_images and _ABOUT_AN_IMAGE.search(message):
            return RequestRefused(text)
    if status in _REFUSED:
        return RequestRefused(text)
    if status in _ABOUT_THE_KEY:
        return ModelDown(text, reason="key")
    if status == 404:
        return ModelDown(text, reason="model")
    kind = ModelDown if status in _NOT_ABOUT_THE_REQUEST or status >= 500 else ModelFailed
    return kind(text)


def unreachable(model: str, url: str, error: Exception) -> ModelDown:
    """Return the error for a server that did not answer; `error` was caused by that of the HTTP client."""
    # Both clients have one of these names, from different packages.
    sent = type(error.__cause__).__name__ not in ("ConnectError", "ConnectTimeout")
    return ModelDown(f"{model} at {url} cannot be reached: {error}", sent=sent)


def _context_in(message: str) -> int | None:
    """Return the tokens of the context that an error names."""
    found = _CONTEXT_NAMED.search(message)
    return int(found[1] or found[2]) if found else None


def counted(said: object) -> int:
    """Return a token count of a server's answer; a missing or invalid one is 0."""
    return int(said) if isinstance(said, int | float) and 0 < said < _MOST_TOKENS else 0


def with_schema_in_words(system: str, shape: type[BaseModel]) -> str:
    """Return instructions that end with the schema of the answer."""
    return f"{system}\n\nThe answer is a JSON object that fits this schema:\n{json.dumps(schema_of(shape))}"
