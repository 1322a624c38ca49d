"""A child process that does work on long texts: it reads pickled work from standard input, and answers on its output.

Each message is its length in 8 bytes and then a pickle, which only `text_processes.py` of our own process writes. The
child ends when its input is closed, as when its parent dies.
"""

import os
import pickle
import signal
import sys
from typing import BinaryIO

LENGTH_BYTES = 8


def packed(value: object) -> bytes:
    """Return a value as a message."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(LENGTH_BYTES) + data


def main() -> None:
    """Do one piece of work after another."""
    # Ctrl-C and the end of a terminal are signalled to all of its processes; the parent handles them.
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        # Anything that is printed must not get into an answer.
        os.dup2(2, 1)
        while length := sys.stdin.buffer.read(LENGTH_BYTES):
            _answer(sys.stdin.buffer.read(int.from_bytes(length)), answers)


def _answer(data: bytes, answers: BinaryIO) -> None:
    try:
        work, arguments = pickle.loads(data)  # noqa: S301 - our own process wrote it
        answer = packed((work(*arguments), None))
    except Exception as error:  # noqa: BLE001 - the parent raises it
        answer = packed((None, error))
    try:
        answers.write(answer)
        answers.flush()
    except BrokenPipeError:
        # The parent was killed: nobody waits for the answer, and what is left in the buffer cannot be written either.
        os._exit(0)


if __name__ == "__main__":
    main()
