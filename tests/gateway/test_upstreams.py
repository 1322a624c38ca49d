"""Connections to providers: one that was kept may be closed at any moment, which costs no request."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from esker.server.core.errors import Unavailable
from esker.server.gateway.upstreams import Upstreams

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
HEADERS = [(b"host", b"provider"), (b"content-length", b"4")]


class Provider:
    """A provider that answers the first requests of each connection, and closes it on the next one."""

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self.requests: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests on one connection."""
        for number in range(self._answers + 1):
            if not await reader.readuntil(b"\r\n\r\n"):
                break
            self.requests.append(await reader.readexactly(4))
            if number < self._answers:
                writer.write(ANSWER)
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def upstreams_to(provider: Provider) -> AsyncGenerator[Upstreams]:
    """Yield the connections to a provider that serves meanwhile."""
    server = await asyncio.start_server(provider.serve, "127.0.0.1", 0)
    upstreams = Upstreams({"one": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"})
    try:
        yield upstreams
    finally:
        await upstreams.close()
        server.close()
        await server.wait_closed()


async def sent(upstreams: Upstreams, body: bytes) -> bytes:
    """Send a request, and return the body of its answer."""
    async with upstreams.sent("POST", upstreams.address("one", "v1/messages", b""), HEADERS, body) as answer:
        return b"".join([part async for part in answer.aiter_raw()])


async def test_a_request_on_a_connection_that_the_provider_closes_is_sent_on_another() -> None:
    provider = Provider(answers=1)
    async with upstreams_to(provider) as upstreams:
        assert [await sent(upstreams, body) for body in (b"1st.", b"2nd.")] == [b"ok", b"ok"]
    assert provider.requests == [b"1st.", b"2nd.", b"2nd."]


async def test_a_request_that_a_new_connection_does_not_answer_is_sent_once() -> None:
    provider = Provider(answers=0)
    async with upstreams_to(provider) as upstreams:
        with pytest.raises(Unavailable, match="no answer from 127"):
            await sent(upstreams, b"1st.")
    assert provider.requests == [b"1st."]
