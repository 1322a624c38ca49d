"""A server whose routes do nothing: what any request over HTTP costs here, and a model that takes no time."""

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
    """Answer with nothing."""
    return {}


@app.post("/v1/embeddings")
async def embeddings(asked: _TextsIn) -> Response:
    """Answer as a model would, with one of a few vectors for each text."""
    chosen = (_vector(zlib.crc32(text.encode()) % _VECTORS) for text in asked.input)
    items = (f'{{"index": {place}, "embedding": {vector}}}' for place, vector in enumerate(chosen))
    return Response(f'{{"data": [{",".join(items)}]}}', media_type="application/json")


@cache
def _vector(number: int) -> str:
    """Return one of a few vectors as text, which is made once, so that an answer costs next to nothing."""
    draw = random.Random(number)  # noqa: S311 - the same one each time
    return json.dumps([round(draw.gauss(0, 1), 6) for _ in range(_DIMENSION)])


def main() -> None:
    """Serve on a free port, say on which, and stop when the input closes."""
    threading.Thread(target=_stop_with_stdin, daemon=True).start()
    # With the protocol named, asyncio switches Nagle's delay of 40 ms off for what is accepted here.
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
