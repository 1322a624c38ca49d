"""A server whose routes do nothing, as the floor of a request over HTTP, and a model that takes no time."""

import json
import os
import random
import signal
import socket
import sys
import threading
import zlib
from contextlib import suppress
from functools import cache

import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel, JsonValue

app = FastAPI()

_DIMENSION = 1_024
_VECTORS = 64


class _TextsIn(BaseModel):
    input: list[str]


@app.post("/empty")
async def empty(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return an empty object."""
    return {}


@app.get("/empty")
async def empty_page() -> dict[str, JsonValue]:
    """Return an empty object."""
    return {}


@app.post("/v1/embeddings")
async def embeddings(asked: _TextsIn) -> Response:
    """Return one of a few fixed vectors for each text, in the form of an embeddings API."""
    chosen = (_vector(zlib.crc32(text.encode()) % _VECTORS) for text in asked.input)
    items = (f'{{"index": {place}, "embedding": {vector}}}' for place, vector in enumerate(chosen))
    return Response(f'{{"data": [{",".join(items)}]}}', media_type="application/json")


@cache
def _vector(number: int) -> str:
    """Return a fixed vector as JSON text; it is cached, so an answer costs almost nothing."""
    draw = random.Random(number)  # noqa: S311 - reproducible, not secret
    return json.dumps([round(draw.gauss(0, 1), 6) for _ in range(_DIMENSION)])


def main() -> None:
    """Serve on a free port, print the url, and stop when the input closes."""
    threading.Thread(target=_stop_with_stdin, daemon=True).start()
    # Only with the protocol named does asyncio switch off Nagle's delay (40 ms) for accepted connections.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        sys.stdout.write(json.dumps({"url": f"http://127.0.0.1:{listener.getsockname()[1]}"}) + "\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listener])


def _stop_with_stdin() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
