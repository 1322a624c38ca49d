"""A language model behind Anthropic's Messages API or a compatible one."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel

from esker.server.core.config.prices import add_up
from esker.server.core.config.settings import Settings
from esker.server.core.errors import ModelDown, ModelFailed, ModelTooSlow, RequestRefused, UnusableAnswer
from esker.server.core.records import TokenUse
from esker.server.core.redaction import error_text
from esker.server.core.text.tokens import IMAGE_TOKENS, estimate_tokens
from esker.server.providers.roles import Meter

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

Accepted = TypeVar("Accepted")
Content = list[dict[str, Any]]
KeyHeader = Literal["authorization", "x-api-key"]
Structured = Literal["output_config", "tool", "prompt"]

# Retries of a busy provider within a call; after them the job waits.
_RETRIES = 2
_PROBE_SECONDS = 5.0
_CONNECT_SECONDS = 5.0
# Statuses that are about the key, the address or the time, not about the request.
_NOT_ABOUT_THE_REQUEST = frozenset({401, 403, 404, 408, 425, 429})
_CUT_OFF = frozenset({"max_tokens", "model_context_window_exceeded"})
_TOOL = "answer"
# A larger token count in an answer is not plausible and is ignored.
_MOST_TOKENS = 10**9


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server of the Messages API. `base_url` has no trailing /v1; None is Anthropic's own.

    `timeout` is the maximum seconds of a call, retries included. `version` is the anthropic-version header; None is the
    client's own. `structured` is how the shape of an answer is requested: by the API's schema, as the input of a tool,
    or in words.
    """

    base_url: str | None = None
    api_key: str | None = None
    timeout: float = 300.0
    version: str | None = None
    key_header: KeyHeader = "authorization"
    structured: Structured = "output_config"
    temperature: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> "Endpoint":
        """Return the server of the settings."""
        return cls(
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else None,
            timeout=settings.llm_timeout_seconds,
            version=settings.llm_version,
            key_header=settings.llm_key_header,
            structured=settings.llm_structured,
            temperature=settings.llm_temperature,
        )


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


class MessagesModel:
    """Asks one model for answers of a given shape."""

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self.model = model
        self._endpoint = endpoint
        self._client = _client(endpoint)

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
        messages: list[Any] = [{"role": "user", "content": content}]
        first = await self._create(system, messages, shape, max_tokens, meter)
        try:
            return Answered(await asyncio.to_thread(read, _reply(first, last=False)), _used(first))
        except ValueError as error:
            complaint = f"That answer cannot be used: {error}\nAnswer again, with the JSON object alone."
        messages += [
            {"role": "assistant", "content": _text(first) or "(empty)"},
            {"role": "user", "content": complaint},
        ]
        second = await self._create(system, messages, shape, max_tokens, meter)
        try:
            value = await asyncio.to_thread(read, _reply(second, last=True))
        except ValueError as error:
            raise UnusableAnswer(f"{self.model} gave an answer that cannot be used, twice: {error}") from error
        return Answered(value, add_up([_used(first), _used(second)]))

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._client.close()

    async def _create(
        self, system: str, messages: list[Any], shape: type[BaseModel], max_tokens: int, meter: Meter
    ) -> "Message":
        await meter.allow(self.model)
        request = self._request(system, messages, shape, max_tokens)
        try:
            answer = await self._send(request)
        except ModelTooSlow:
            # It may be billed all the same, for an unknown amount.
            await meter.record(self.model, await asyncio.to_thread(_at_most, request))
            raise
        await meter.record(self.model, _used(answer))
        if answer.stop_reason == "refusal":
            raise UnusableAnswer(f"{self.model} refused to answer.")
        return answer

    def _request(self, system: str, messages: list[Any], shape: type[BaseModel], max_tokens: int) -> dict[str, Any]:
        schema = _schema(shape)
        request: dict[str, Any] = {"model": self.model, "max_tokens": max_tokens, "messages": messages}
        match self._endpoint.structured:
            case "output_config":
                request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
            case "tool":
                request["tools"] = [{"name": _TOOL, "description": "Gives the answer.", "input_schema": schema}]
                request["tool_choice"] = {"type": "tool", "name": _TOOL}
            case "prompt":
                system += f"\n\nThe answer is a JSON object that fits this schema:\n{json.dumps(schema)}"
        # The prompt is the same in every call, so let the provider cache it.
        request["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        if self._endpoint.temperature is not None:
            request["extra_body"] = {"temperature": self._endpoint.temperature}
        return request

    async def _send(self, request: dict[str, Any]) -> "Message":
        import anthropic  # noqa: PLC0415 - takes over a second to import, and many installations never need it

        try:
            create: Any = self._client.messages.create
            async with asyncio.timeout(self._endpoint.timeout):
                answer = await create(**request)
        except TimeoutError as error:
            raise ModelTooSlow(f"{self.model} did not answer within {self._endpoint.timeout:g} seconds.") from error
        except anthropic.APIStatusError as error:
            raise _refusal(self.model, error.status_code, error.message) from error
        except anthropic.APIError as error:
            raise ModelDown(f"{self.model} at {self._client.base_url} cannot be reached: {error}") from error
        except Exception as error:  # the client parses any answer of an endpoint
            raise ModelFailed(
                f"{self.model} returned something that is not a Messages API message ({type(error).__name__})."
            ) from error
        if not isinstance(answer, anthropic.types.Message) or not _has_blocks(answer):
            raise ModelFailed(f"{self.model} returned something that is not a Messages API message.")
        return answer


@cache
def _schema(shape: type[BaseModel]) -> dict[str, Any]:
    import anthropic  # noqa: PLC0415 - see above

    return anthropic.transform_schema(shape)


def _refusal(model: str, status: int, message: str) -> ModelFailed:
    if status in (400, 413, 422):
        return RequestRefused(f"{model} answered {status}: {message}")
    kind = ModelDown if status in _NOT_ABOUT_THE_REQUEST or status >= 500 else ModelFailed
    return kind(f"{model} answered {status}: {message}")


async def probe(endpoint: Endpoint) -> str | None:
    """Return why a server of the Messages API cannot be used, or None; no model is called."""
    import anthropic  # noqa: PLC0415 - see above

    try:
        async with _client(endpoint) as client:
            await client.models.list(limit=1, timeout=_PROBE_SECONDS)
    except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
        return f"it rejects the key ({error.status_code})."
    except anthropic.APIStatusError:
        return None  # it answers; many servers do not list models
    except anthropic.APIError as error:
        return f"it cannot be reached ({error_text(error)})."
    except Exception:  # noqa: BLE001 - the client parses any answer
        return "the server there does not speak the Messages API."
    return None


def _client(endpoint: Endpoint) -> "AsyncAnthropic":
    import anthropic  # noqa: PLC0415 - see above

    # A local endpoint needs no key, but the client requires one.
    key = endpoint.api_key or "none"
    headers: dict[str, Any] = {"anthropic-version": endpoint.version} if endpoint.version else {}
    if endpoint.key_header == "x-api-key":
        headers |= {"x-api-key": key, "Authorization": anthropic.omit}
    return anthropic.AsyncAnthropic(
        base_url=endpoint.base_url,
        api_key=key,
        # asyncio.timeout ends a late call; the client would retry it.
        timeout=anthropic.Timeout(2 * endpoint.timeout + _CONNECT_SECONDS, connect=_CONNECT_SECONDS),
        max_retries=_RETRIES,
        default_headers=headers,
    )


def _has_blocks(answer: "Message") -> bool:
    """Whether the content consists of valid blocks; the client does not check."""
    given: Any = answer.content
    if not isinstance(given, list):
        return given is None
    content = cast("list[Any]", given)
    if not all(isinstance(getattr(block, "type", None), str) for block in content):
        return False
    return all(isinstance(getattr(block, "text", None), str) for block in content if block.type == "text")


def _text(answer: "Message") -> str:
    """Return the text of an answer: the input of our tool if it was called, else its text blocks."""
    for block in answer.content or ():
        if block.type == "tool_use" and block.name == _TOOL:
            return json.dumps(block.input, ensure_ascii=False)
    return "".join(block.text for block in answer.content or () if block.type == "text")


def _reply(answer: "Message", *, last: bool) -> ModelReply:
    return ModelReply(_text(answer), answer.stop_reason in _CUT_OFF, last, _used(answer).output_tokens)


def _used(answer: "Message") -> TokenUse:
    """Return the token use of an answer; a missing or invalid count is 0."""
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return TokenUse(*(_count(getattr(answer.usage, name, None)) for name in names))


def _at_most(request: dict[str, Any]) -> TokenUse:
    """Return the estimated maximum token use of a call: the whole request, and the longest allowed answer."""
    sent = sum(IMAGE_TOKENS if text is None else estimate_tokens(text) for text in _sent(request))
    return TokenUse(sent, request["max_tokens"])


def _sent(request: dict[str, Any]) -> Iterator[str | None]:
    """Yield the texts of a request, None for an image."""
    yield json.dumps(request.get("tools") or request.get("output_config") or "")
    for content in (request["system"], *(message["content"] for message in request["messages"])):
        if isinstance(content, str):
            yield content
        else:
            yield from (block.get("text") for block in content)


def _count(said: object) -> int:
    return int(said) if isinstance(said, int | float) and 0 < said < _MOST_TOKENS else 0
