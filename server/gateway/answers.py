"""Sending a provider's answer back to the client, and copying it."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import httpx2
from starlette.datastructures import Headers
from starlette.types import Send

from esker.server.core.errors import Unavailable
from esker.server.core.records import TokenUse
from esker.server.gateway.encodings import MOST_BYTES, READABLE
from esker.server.gateway.upstreams import Header, sent_back

# Headers that say how a body is sent.
_OF_BODY = (b"content-length", b"content-encoding")
# Seconds that the end of a connection may come after the last event.
_END_SECONDS = 0.1


@dataclass(slots=True)
class Copy:
    """A copy of the bytes that the client got; empty if they are too many.

    `used` are the tokens of all requests, if the answer took several, and `further_tokens` those that were sent with
    the later ones.
    """

    chunks: list[bytes] = field(default_factory=list[bytes])
    size: int = 0
    used: TokenUse | None = None
    further_tokens: int = 0

    def add(self, chunk: bytes) -> None:
        """Add what the client gets."""
        self.size += len(chunk)
        if self.size > MOST_BYTES:
            self.chunks.clear()
        else:
            self.chunks.append(chunk)

    @property
    def bytes(self) -> bytes:
        """All of it."""
        return b"".join(self.chunks)


class AnswerSender:
    """Sends an answer to the client, and copies its bytes."""

    def __init__(self, send: Send, copy: Copy) -> None:
        self._send = send
        self.copy = copy
        self.headers = Headers()
        """The headers that the client got."""

    async def start(self, answer: httpx2.Response, *, is_rewritten: bool = False, length: int | None = None) -> None:
        """Send status and headers.

        A body that is rewritten is not compressed, and has not the provider's length, but `length`, if known.
        """
        headers = sent_back(answer.headers.raw)
        if is_rewritten:
            own: list[Header] = [] if length is None else [(b"content-length", b"%d" % length)]
            headers = [*own, *((name, value) for name, value in headers if name not in _OF_BODY)]
        self.headers = Headers(raw=headers)
        await self._send({"type": "http.response.start", "status": answer.status_code, "headers": headers})

    async def write(self, chunk: bytes) -> None:
        """Send a part of the body."""
        if chunk:
            self.copy.add(chunk)
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def end(self) -> None:
        """Say that the body is complete."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def pass_back(self, answer: httpx2.Response) -> None:
        """Send an answer as it comes."""
        await self.start(answer)
        async for chunk in answer.aiter_raw():
            await self.write(chunk)
        await self.end()


def is_readable(answer: httpx2.Response) -> bool:
    """Return whether the bytes of an answer can be read: some servers compress though they were asked not to."""
    return answer.headers.get("content-encoding", "identity").lower() in READABLE


async def chunks_of(answer: httpx2.Response) -> AsyncGenerator[bytes]:
    """Yield the bytes of an answer as they come, not compressed, and an empty chunk at its end."""
    async for chunk in answer.aiter_bytes():
        if chunk:
            yield chunk
    yield b""


async def whole_of(answer: httpx2.Response) -> bytes:
    """Return the bytes of an answer, not compressed. Raises Unavailable if it is cut off."""
    try:
        return await answer.aread()
    except httpx2.RequestError as error:
        raise Unavailable(f"The answer of {answer.url.host} was cut off: {type(error).__name__}.") from error


async def read_end(chunks: AsyncGenerator[bytes]) -> None:
    """Read what follows the last event, so that the connection can be used again: most providers end it at once."""
    try:
        async with asyncio.timeout(_END_SECONDS):
            async for _ in chunks:
                pass
    except (TimeoutError, httpx2.RequestError):
        return
