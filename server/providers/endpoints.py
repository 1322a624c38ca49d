"""Where a language model is, and in which protocol its server is asked."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from esker.server.core.config.settings import Settings

KeyHeader = Literal["authorization", "x-api-key"]
Protocol = Literal["messages", "chat"]
Structured = Literal["schema", "json", "tool", "prompt"]

_OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server of the Messages API or of chat completions; without `base_url` that of Anthropic or of OpenAI.

    `timeout` is the maximum seconds of a call, retries included. `version` is the anthropic-version header; None is the
    client's own. `structured` is how the shape of an answer is requested: by the protocol's schema, as any JSON object,
    as the input of a tool, or in words.
    """

    base_url: str | None = None
    api_key: str | None = None
    timeout: float = 300.0
    version: str | None = None
    key_header: KeyHeader = "authorization"
    structured: Structured = "schema"
    temperature: float | None = None
    protocol: Protocol = "messages"
    size: Literal["auto", "small", "large"] = "auto"
    context_tokens: int | None = None

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
            protocol=settings.llm_protocol,
            size=settings.llm_size,
            context_tokens=settings.llm_context_tokens,
        )

    @property
    def messages_url(self) -> str | None:
        """The base address as the client of the Messages API wants it: without a trailing /v1."""
        return self.base_url.rstrip("/").removesuffix("/v1") if self.base_url else None

    @property
    def chat_url(self) -> str:
        """The base address of chat completions: a server named without a path has them below /v1."""
        if self.base_url is None:
            return _OPENAI
        url = self.base_url.rstrip("/").removesuffix("/chat/completions")
        return url if urlsplit(url).path else f"{url}/v1"

    @property
    def described(self) -> str:
        """The server's address, or the name of the vendor's own."""
        return self.base_url or ("OpenAI's API" if self.protocol == "chat" else "Anthropic's API")
