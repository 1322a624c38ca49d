"""The program of a command that is forked (`forks.py`); for tests in which a client starts the command itself.

Standard library modules alone, few of them: starting this program is nearly all that the command costs.
"""

import array
import json
import os
import signal
import socket
import sys


def main(address: str, directory: str, *arguments: str) -> int:
    """Have a command forked that takes over the standard streams, and return its exit code."""
    asked = {"arguments": arguments, "directory": directory, "environment": dict(os.environ)}
    data = json.dumps(asked).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(address)
        streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        connection.sendmsg([len(data).to_bytes(8)], streams)
        connection.sendall(data)
        answers = connection.makefile()
        pid = int(answers.readline())
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda received, _: os.kill(pid, received))
        # The other end of a stream is to see that it closes when the command ends.
        for stream in range(3):
            os.close(stream)
        return int(answers.readline())


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]) & 0xFF)
