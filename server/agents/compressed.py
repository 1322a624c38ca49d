"""Files that may be compressed: Codex compresses its older rollouts with Zstandard.

They are unpacked while they are read, so that a small file that unpacks to gigabytes does not fill the memory. This is
the only module that imports the library, so that a hook, which reads only uncompressed files, starts without it.
"""

import io
import sys
from pathlib import Path
from typing import Any, BinaryIO

from esker.server.agents.regular_file import opened_plain

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SUFFIX = ".zst"
_CHUNK = 1 << 16  # less than a block, so that damage loses only what follows it
_MOST_UNPACKED = 2 * 1024**3


def opened(path: Path) -> BinaryIO:
    """Open a file, compressed or not. Raises OSError, also for a compressed file of which nothing can be read.

    A damaged or truncated file ends where the damage begins, in the middle of a line.
    """
    file = opened_plain(path)
    if path.suffix != SUFFIX:
        return file
    unpacked = io.BufferedReader(_Unpacked(file), _CHUNK)
    try:
        unpacked.peek(1)
    except OSError:
        unpacked.close()
        raise
    return unpacked


class _Unpacked(io.RawIOBase):
    """The contents of a compressed file; they end where damage begins."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._reader = zstd.ZstdFile(file)
        self._count = 0
        self._damaged = False

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` requires."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes, 0 at the end."""
        if self._damaged:
            return 0
        try:
            count = self._reader.readinto1(memoryview(buffer)[:_CHUNK])
        except (zstd.ZstdError, EOFError) as error:
            if not self._count:
                raise OSError(0, f"it cannot be unpacked ({error})") from error
            self._damaged = True
            return 0
        self._count += count
        if self._count > _MOST_UNPACKED:
            raise OSError(0, f"it unpacks to more than {_MOST_UNPACKED // 1024**3} GiB")
        return count

    def close(self) -> None:
        """Close the compressed file, too."""
        if not self.closed:
            self._file.close()
        super().close()
