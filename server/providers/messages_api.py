"""A language model behind Anthropic's Messages API or a compatible one."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from esker.server.core.errors import ModelFailed
from esker.server.core.records import TokenUse
from esker.server.core.redaction import error_text
from esker.server.providers.answer_schema import schema_of
from esker.server.providers.bounded_answers import bounded
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_model import (
    CONNECT_SECONDS,
    PROBE_SECONDS,
    TOOL,
    ModelRequest,
    Stop,
    WireAnswer,
    counted,
    refusal,
    unreachable,
    with_schema_in_words,
)

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message

_STOPS: dict[str | None, Stop] = {
    "max_tokens": "cut_off",
    "model_context_window_exceeded": "cut_off",
    "refusal": "refused",
}


class MessagesWire:
    """Asks one model in the Messages API."""

    provider = "anthropic"

    def __init__(self, model: str, endpoint: Endpoint) -> None:
        self._model = model
        self._endpoint = endpoint
        self._client = _client(endpoint)

    def turn(self) -> AbstractAsyncContextManager[None]:
        """Wait for nothing: the server decides how many calls it serves at once."""
        return nullcontext()

    async def send(self, request: ModelRequest) -> WireAnswer:
        """Return the answer. Raises ModelFailed."""
        answer = await self._sent(request)
        return WireAnswer(_text(answer), _STOPS.get(answer.stop_reason, "end"), _used(answer))

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._client.close()

    def _body(self, asked: ModelRequest) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self._model, "max_tokens": asked.max_tokens, "messages": asked.messages}
        system = asked.system
        match self._endpoint.structured:
            case "schema":
                request["output_config"] = {"format": {"type": "json_schema", "schema": schema_of(asked.shape)}}
            case "tool":
                tool = {"name": TOOL, "description": "Gives the answer.", "input_schema": schema_of(asked.shape)}
                request |= {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}
            case _:
                system = with_schema_in_words(system, asked.shape)
        # The prompt is the same in every call, so let the provider cache it.
        request["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        if self._endpoint.temperature is not None:
            request["extra_body"] = {"temperature": self._endpoint.temperature}
        return request

    async def _sent(self, request: ModelRequest) -> "Message":
        import anthropic  # noqa: PLC0415 - takes over a second to import, and many installations never need it

        try:
            create: Any = self._client.messages.create
            answer = await create(**self._body(request))
        except anthropic.APIStatusError as error:
            headers = error.response.headers
            raise refusal(self._model, error.status_code, error.message, request, headers) from error
        except anthropic.APIError as error:
            raise unreachable(self._model, str(self._client.base_url), error) from error
        except Exception as error:  # the client parses any answer of an endpoint
            raise ModelFailed(
                f"{self._model} returned something that is not a Messages API message ({type(error).__name__})."
            ) from error
        if not isinstance(answer, anthropic.types.Message) or not _has_blocks(answer):
            raise ModelFailed(f"{self._model} returned something that is not a Messages API message.")
        return answer


async def probe_messages(endpoint: Endpoint) -> str | None:
    """Return why a server of the Messages API cannot be used, or None; no model is called."""
    import anthropic  # noqa: PLC0415 - see above

    try:
        # The client's own limit holds for each read, not for the whole answer.
        async with asyncio.timeout(PROBE_SECONDS), _client(endpoint) as client:
            await client.models.list(limit=1)
    except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
        return f"it rejects the key ({error.status_code})."
    except anthropic.APIStatusError:
        return None  # it answers; many servers do not list models
    except anthropic.APIError as error:
        return f"it cannot be reached ({error_text(error)})."
    except TimeoutError:
        return f"it did not answer within {PROBE_SECONDS:g} seconds."
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
        base_url=endpoint.messages_url,
        api_key=key,
        # The caller ends a late call and repeats others; the client would do so without counting them.
        timeout=anthropic.Timeout(2 * endpoint.timeout + CONNECT_SECONDS, connect=CONNECT_SECONDS),
        max_retries=0,
        default_headers=headers,
        http_client=bounded(anthropic.DefaultAsyncHttpxClient()),
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
        if block.type == "tool_use" and block.name == TOOL:
            return json.dumps(block.input, ensure_ascii=False)
    return "".join(block.text for block in answer.content or () if block.type == "text")


def _used(answer: "Message") -> TokenUse:
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return TokenUse(*(counted(getattr(answer.usage, name, None)) for name in names))
