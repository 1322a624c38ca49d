"""A limit on the bytes that are read of a foreign server's answer; HTTP clients have no such limit."""

from collections.abc import AsyncIterator
from typing import cast

import httpx2

MOST_BYTES = 16 * 1024 * 1024
"""Bytes of an answer that are read; the longest valid one has less than 1 MiB."""


def bounded(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    """Let a client cut off every answer at the limit; what is left of it cannot be parsed, which is reported.

    It follows no redirection: texts and keys go to the address that was set, and nowhere else.
    """
    client.follow_redirects = False
    # Uncompressed, so that the limit applies to the bytes on the wire.
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks = {"response": [_bound]}
    return client


async def _bound(response: httpx2.Response) -> None:
    # An answer that is compressed without request could grow a thousandfold after the limit.
    response.headers.pop("Content-Encoding", None)
    response.stream = _BoundedStream(cast(httpx2.AsyncByteStream, response.stream))


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = MOST_BYTES
        async for chunk in self._whole:
            yield chunk[:room]
            room -= len(chunk)
            if room < 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()
