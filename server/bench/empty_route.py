"""A server with one route that does nothing: what any request over HTTP costs here."""

import json
import os
import signal
import socket
import sys
import threading
from contextlib import suppress

import uvicorn
from fastapi import FastAPI
from pydantic import JsonValue

app = FastAPI()


@app.post("/empty")
async def empty(body: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Answer with nothing."""
    return {}


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
