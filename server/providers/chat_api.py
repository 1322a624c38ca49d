"""A language model behind OpenAI's chat completions or a compatible server."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from esker.server.core.errors import ModelFailed
from esker.server.core.json_input import as_object
from esker.server.core.records import TokenUse
from esker.server.core.redaction import error_text
from esker.server.providers.answer_schema import schema_of
from esker.server.providers.bounded_answers import bounded
from esker.server.providers.endpoints import Endpoint
from esker.server.providers.language_model import (
    CONNECT_SECONDS,
    PROBE_SECONDS,
    TOOL,
    Content,
    ModelRequest,
    Stop,
    WireAnswer,
    counted,
    refusal,
    unreachable,
    with_schema_in_words,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_STOPS: dict[object, Stop] = {"length": "cut_off", "content_filter": "refused"}
# OpenAI's newer models refuse `max_tokens`; other servers know only that.
_NEWER_NAME_HOSTS = ("api.openai.com", ".openai.azure.com")
_NO_ANSWER = "returned something that is not a chat completion"


class ChatWire:
    """Asks one model in chat completions."""

    provider = "openai"

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
        message, stop = self._message(answer, request)
        return WireAnswer(_text(message), "refused" if message.get("refusal") else stop, _used(answer.get("usage")))

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._client.close()

    def _body(self, asked: ModelRequest) -> dict[str, Any]:
        request: dict[str, Any] = {"model": self._model, self._length_name(): asked.max_tokens}
        schema, system = schema_of(asked.shape), asked.system
        match self._endpoint.structured:
            case "schema":
                form = {"name": TOOL, "strict": True, "schema": schema}
                request["response_format"] = {"type": "json_schema", "json_schema": form}
            case "tool":
                tool = {"name": TOOL, "description": "Gives the answer.", "parameters": schema}
                request["tools"] = [{"type": "function", "function": tool}]
                request["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
            case "json":
                system = with_schema_in_words(system, asked.shape)
                request["response_format"] = {"type": "json_object"}
            case "prompt":
                system = with_schema_in_words(system, asked.shape)
        said = [{"role": each["role"], "content": _content(each["content"])} for each in asked.messages]
        request["messages"] = [{"role": "system", "content": system}, *said]
        if self._endpoint.temperature is not None:
            request["temperature"] = self._endpoint.temperature
        return request

    def _length_name(self) -> str:
        host = self._client.base_url.host
        return "max_completion_tokens" if host.endswith(_NEWER_NAME_HOSTS) else "max_tokens"

    async def _sent(self, request: ModelRequest) -> Mapping[str, Any]:
        import openai  # noqa: PLC0415 - takes over a second to import, and many installations never need it
        from openai.types.chat import ChatCompletion  # noqa: PLC0415

        try:
            create: Any = self._client.chat.completions.create
            answer: Any = await create(**self._body(request))
        except openai.APIStatusError as error:
            message = _message_of(error.body) or error.message
            raise refusal(self._model, error.status_code, message, request, error.response.headers) from error
        except openai.APIError as error:
            raise unreachable(self._model, str(self._client.base_url), error) from error
        except Exception as error:  # the client parses any answer of an endpoint
            raise ModelFailed(f"{self._model} {_NO_ANSWER} ({type(error).__name__}).") from error
        if not isinstance(answer, ChatCompletion):
            raise ModelFailed(f"{self._model} {_NO_ANSWER}.")
        return answer.to_dict(mode="json", warnings=False)

    def _message(self, answer: Mapping[str, Any], request: ModelRequest) -> tuple[Mapping[str, Any], Stop]:
        """Return the message of an answer, and why it ended. Raises ModelFailed."""
        if problem := answer.get("error"):
            # Some servers answer 200 and put the error of the one behind them into the body.
            code = as_object(problem).get("code")
            message = _message_of(answer) or json.dumps(problem)
            raise refusal(self._model, code if isinstance(code, int) else 500, message, request)
        choices: Any = answer.get("choices")
        choice = as_object(cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None)
        message = as_object(choice.get("message"))
        if not message or not isinstance(message.get("content"), str | list | None):
            raise ModelFailed(f"{self._model} {_NO_ANSWER}.")
        return message, _STOPS.get(choice.get("finish_reason"), "end")


async def probe_chat(endpoint: Endpoint) -> str | None:
    """Return why a server of chat completions cannot be used, or None; no model is called."""
    import openai  # noqa: PLC0415 - see above

    try:
        # The client's own limit holds for each read, not for the whole answer.
        async with asyncio.timeout(PROBE_SECONDS), _client(endpoint) as client:
            await client.models.list()
    except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
        return f"it rejects the key ({error.status_code})."
    except openai.APIStatusError:
        return None  # it answers; some servers do not list models
    except openai.APIError as error:
        return f"it cannot be reached ({error_text(error)})."
    except TimeoutError:
        return f"it did not answer within {PROBE_SECONDS:g} seconds."
    except Exception:  # noqa: BLE001 - the client parses any answer
        return "the server there does not speak OpenAI's API."
    return None


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    import openai  # noqa: PLC0415 - see above

    # OpenAI's organization and project of the environment are not for other servers.
    foreign = {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit} if endpoint.base_url else {}
    return openai.AsyncOpenAI(
        base_url=endpoint.chat_url,
        # A local server needs no key, but the client requires one.
        api_key=endpoint.api_key or "none",
        # The caller ends a late call and repeats others; the client would do so without counting them.
        timeout=openai.Timeout(2 * endpoint.timeout + CONNECT_SECONDS, connect=CONNECT_SECONDS),
        max_retries=0,
        default_headers=cast("dict[str, str]", foreign),
        http_client=bounded(openai.DefaultAsyncHttpx2Client()),
    )


def _content(given: str | Content) -> str | Content:
    """Return the content of a message; one without images as a string, which every server takes."""
    if isinstance(given, str):
        return given
    if all(block["type"] == "text" for block in given):
        return "\n\n".join(block["text"] for block in given)
    return [
        {"type": "text", "text": block["text"]}
        if block["type"] == "text"
        else {"type": "image_url", "image_url": {"url": _address(block["source"])}}
        for block in given
    ]


def _address(source: Mapping[str, Any]) -> str:
    """Return the address of an image; that of one that is sent along has its data."""
    return source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"


def _text(message: Mapping[str, Any]) -> str:
    """Return the text of a message: the input of our tool if it was called, else its text."""
    calls: Any = message.get("tool_calls")
    for call in cast("Sequence[Any]", calls) if isinstance(calls, list) else ():
        given = as_object(as_object(call).get("function")).get("arguments")
        if isinstance(given, str):
            return given
    content: Any = message.get("content")
    if isinstance(content, list):
        parts = [as_object(part).get("text") for part in cast("list[object]", content)]
        return "".join(part for part in parts if isinstance(part, str))
    return content or ""


def _used(usage: object) -> TokenUse:
    """Return the token use of an answer. Its prompt tokens include those from the provider's cache."""
    given = as_object(usage)
    prompt = counted(given.get("prompt_tokens"))
    said = as_object(given.get("prompt_tokens_details")).get("cached_tokens")
    cached = min(prompt, counted(said) or counted(given.get("prompt_cache_hit_tokens")))
    # Some servers leave a model's thoughts out of its completion, and bill them.
    written = max(counted(given.get("completion_tokens")), counted(given.get("total_tokens")) - prompt)
    return TokenUse(prompt - cached, written, cache_read_tokens=cached)


def _message_of(body: object) -> str | None:
    """Return the message of an error's body, which is in `error` or alone."""
    given = as_object(body)
    inner = given.get("error", given)
    message = inner if isinstance(inner, str) else as_object(inner).get("message")
    return message if isinstance(message, str) else None
