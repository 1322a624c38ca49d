"""A language model behind the Messages API, Anthropic's or any compatible one."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from server.core.errors import InvalidInput, ModelDown, ModelFailed, RequestRefused
from server.core.json_input import parse_json
from server.core.records import TokenUse
from server.core.redaction import error_text

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types import Message, MessageParam

Answer = TypeVar("Answer", bound=BaseModel)
Accepted = TypeVar("Accepted")
Content = list[dict[str, Any]]

# A provider that has no time for a moment is asked again; for longer the job waits.
_RETRIES = 2
_PROBE_SECONDS = 5.0
# What these say is not about the request: the key, the address, the time.
_NOT_ABOUT_THE_REQUEST = frozenset({401, 403, 404, 408, 425, 429})
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answered(Generic[Accepted]):
    """What an accepted answer says, and what it cost."""

    value: Accepted
    used: TokenUse


class MessagesModel:
    """Asks one model for answers of a given shape."""

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None, timeout: float = 300.0
    ) -> None:
        """`base_url` has no trailing /v1; None is Anthropic's own. `timeout` of a call is in seconds."""
        self.model = model
        self._client = _client(base_url, api_key, timeout)

    async def ask(
        self,
        system: str,
        content: Content,
        shape: type[Answer],
        accept: Callable[[Answer], Accepted],
        max_tokens: int,
    ) -> Answered[Accepted]:
        """Return what `accept` makes of an answer of the given shape; it raises ValueError for a bad answer.

        An answer that cannot be used is sent back once with what is wrong with it. Raises ModelFailed when that does
        not help, when the answer was cut off or refused, and when the model cannot be reached.
        """
        messages: list[Any] = [{"role": "user", "content": content}]
        first = await self._create(system, messages, shape, max_tokens)
        text = _text(first)
        try:
            return Answered(accept(_read(text, shape)), _used(first))
        except ValueError as error:
            complaint = f"That answer cannot be used: {error}\nAnswer again, with the JSON object alone."
        messages += [
            {"role": "assistant", "content": text or "(empty)"},
            {"role": "user", "content": complaint},
        ]
        second = await self._create(system, messages, shape, max_tokens)
        try:
            return Answered(accept(_read(_text(second), shape)), _used(first, second))
        except ValueError as error:
            raise ModelFailed(f"{self.model} gave an answer that cannot be used, twice: {error}") from error

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._client.close()

    async def _create(
        self, system: str, messages: "list[MessageParam]", shape: type[BaseModel], max_tokens: int
    ) -> "Message":
        import anthropic  # noqa: PLC0415 - takes over a second to import, and many installations never need it

        try:
            answer = await self._client.messages.create(
                model=self.model,
                max_tokens=max_tokens,
                system=system,
                messages=messages,
                output_config={"format": {"type": "json_schema", "schema": anthropic.transform_schema(shape)}},
            )
        except anthropic.APIStatusError as error:
            if error.status_code in (400, 413, 422):
                raise RequestRefused(f"{self.model} answered {error.status_code}: {error.message}") from error
            kind = ModelDown if error.status_code in _NOT_ABOUT_THE_REQUEST or error.status_code >= 500 else ModelFailed
            raise kind(f"{self.model} answered {error.status_code}: {error.message}") from error
        except anthropic.APIError as error:
            raise ModelDown(f"{self.model} at {self._client.base_url} cannot be reached: {error}") from error
        except Exception as error:  # the client reads whatever an endpoint answers
            raise ModelFailed(f"{self.model} answered what is no message ({type(error).__name__}).") from error
        if not isinstance(answer, anthropic.types.Message):  # pyright: ignore[reportUnnecessaryIsInstance] - it may
            raise ModelFailed(f"{self.model} answered what is no message.")
        if answer.stop_reason in ("max_tokens", "refusal"):
            raise ModelFailed(f"{self.model} stopped early ({answer.stop_reason}).")
        return answer


async def probe(base_url: str | None, api_key: str | None) -> str | None:
    """Return why a server of the Messages API cannot be used, or None; nothing is asked of a model."""
    import anthropic  # noqa: PLC0415 - see above

    try:
        async with _client(base_url, api_key, _PROBE_SECONDS) as client:
            await client.models.list(limit=1)
    except (anthropic.AuthenticationError, anthropic.PermissionDeniedError) as error:
        return f"it does not take the key ({error.status_code})."
    except anthropic.APIStatusError:
        return None  # it answers; many servers list no models
    except anthropic.APIError as error:
        return f"it cannot be reached ({error_text(error)})."
    except Exception:  # noqa: BLE001 - the client reads whatever answers there
        return "what answers there does not speak the Messages API."
    return None


def _client(base_url: str | None, api_key: str | None, timeout: float) -> "AsyncAnthropic":
    import anthropic  # noqa: PLC0415 - see above

    # A local endpoint needs no key, but the client insists on one.
    return anthropic.AsyncAnthropic(base_url=base_url, api_key=api_key or "none", timeout=timeout, max_retries=_RETRIES)


def _text(answer: "Message") -> str:
    return "".join(block.text for block in answer.content or () if block.type == "text")


def _used(*answers: "Message") -> TokenUse:
    """Add up what answers cost; `input_tokens` of the API leaves out what went through its cache."""
    usages = [answer.usage for answer in answers]
    return TokenUse(
        sum(u.input_tokens + (u.cache_creation_input_tokens or 0) + (u.cache_read_input_tokens or 0) for u in usages),
        sum(usage.output_tokens for usage in usages),
    )


def _read(text: str, shape: type[Answer]) -> Answer:
    """Read an answer: plain JSON, JSON in a fence, or the JSON object that stands in some prose.

    Raises ValueError with what is wrong.
    """
    fenced = _FENCED.search(text)
    body = fenced[1] if fenced else text[text.find("{") : text.rfind("}") + 1]
    try:
        return shape.model_validate(parse_json(body.encode("utf-8", "replace")))
    except InvalidInput as error:
        raise ValueError(f"not a JSON object ({error})") from None
    except ValidationError as error:
        problems = error.errors(include_input=False, include_url=False)
        raise ValueError("; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in problems[:5])) from None
