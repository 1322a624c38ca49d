"""A server over a raw socket that breaks HTTP, its own protocol, or its promise to answer; see `LIES`."""

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_DRIP_SECONDS = 0.02
DIMENSION = 8


def _whole(body: bytes, head: bytes = _HEAD) -> Iterator[bytes]:
    yield head + b"Content-Length: %d\r\n\r\n" % len(body) + body


def _endless_body() -> Iterator[bytes]:
    yield _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    while True:
        yield b"10000\r\n" + b" " * 65_536 + b"\r\n"


def _endless_head() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"X-Filler: " + b"x" * 1_000 + b"\r\n"


def _drip() -> Iterator[bytes]:
    yield _HEAD + b"Content-Length: 1000000\r\n\r\n"
    while True:
        yield b" "


def _vectors(*indexes: int, value: str = "0.5", dimension: int = DIMENSION) -> Iterator[bytes]:
    yield from _whole(_json(*indexes, value=value, dimension=dimension))


def _json(*indexes: int, value: str = "0.5", dimension: int = DIMENSION) -> bytes:
    items = (f'{{"index": {index}, "embedding": [{", ".join([value] * dimension)}]}}' for index in indexes)
    return f'{{"data": [{", ".join(items)}]}}'.encode()


LIES: dict[str, Callable[[], Iterator[bytes]]] = {
    "endless body": _endless_body,
    "endless head": _endless_head,
    "drip": _drip,
    "page of a hotel": lambda: _whole(b"<html>Sign in</html>", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"),
    "nothing": lambda: iter([b""]),
    "no HTTP": lambda: iter([b"\x00\xff" * 100]),
    "empty body": lambda: _whole(b""),
    "null": lambda: _whole(b"null"),
    "list": lambda: _whole(b"[null]"),
    "deep": lambda: _whole(b"[" * 100_000),
    "no text": lambda: _whole(b'{"data": [null], "content": [null], "choices": [null], "models": 5}'),
    "no UTF-8": lambda: _whole(b'{"data": "\xff\xfe", "content": "\x80"}'),
    "elsewhere": lambda: _whole(b"", b"HTTP/1.1 302 Found\r\nLocation: /\r\n"),
}
"""Answers that no client can use, whatever it asked for."""

FALSE_VECTORS: dict[str, Callable[[], Iterator[bytes]]] = {
    "one is missing": lambda: _vectors(0),
    "one too many": lambda: _vectors(0, 1, 2),
    "both of one text": lambda: _vectors(0, 0),
    "of unknown texts": lambda: _vectors(-1, 10**30),
    "not a number": lambda: _vectors(0, 1, value="NaN"),
    "infinite": lambda: _vectors(0, 1, value="1e999"),
    "too large": lambda: _vectors(0, 1, value=json.dumps(10**400)),
    "zero": lambda: _vectors(0, 1, value="0"),
    "without dimensions": lambda: _vectors(0, 1, dimension=0),
    "of another dimension": lambda: _vectors(0, 1, dimension=DIMENSION + 1),
    "of lists": lambda: _vectors(0, 1, value="[0.5]"),
    # A hundred kilobytes could become a hundred megabytes.
    "compressed, unasked": lambda: _whole(gzip.compress(_json(0, 1)), _HEAD + b"Content-Encoding: gzip\r\n"),
}
"""Answers of an embedder to two texts that are no vectors of them."""


@dataclass(slots=True)
class LyingServer:
    """The server at `url`. `asked` counts its requests, and `sent` the bytes of its answers."""

    url: str
    answer: Callable[[], Iterator[bytes]]
    asked: int = 0
    sent: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read a request, answer with the lie, and close the connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            _, _, length = head.partition(b"content-length:")
            await reader.readexactly(int(length.split(b"\r\n")[0] or 0))
            self.asked += 1
            for piece in self.answer():
                writer.write(piece)
                self.sent += len(piece)
                await writer.drain()
                await asyncio.sleep(_DRIP_SECONDS if len(piece) == 1 else 0)
        writer.close()


@asynccontextmanager
async def lying_server(answer: Callable[[], Iterator[bytes]]) -> AsyncGenerator[LyingServer]:
    """Run such a server while the block runs."""
    lying = LyingServer("", answer)
    async with await asyncio.start_server(lying.serve, "127.0.0.1", 0) as server:
        lying.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield lying
        server.close()
