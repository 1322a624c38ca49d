"""Files that may be compressed: Codex packs its older rollouts with Zstandard.

This is the only module that imports the library, so that a hook, which reads what is being written, starts without it.
"""

import io
from pathlib import Path
from typing import BinaryIO

import zstandard

SUFFIX = ".zst"
_CHUNK = 1 << 16  # less than a block, so that damage costs only what is behind it


def opened(path: Path) -> BinaryIO:
    """Open a file, compressed or not. Raises OSError, also for a compressed file of which nothing can be read.

    Of one that is damaged or cut off, what comes before the damage is there; it ends in the middle of a line.
    """
    file = path.open("rb")
    if path.suffix != SUFFIX:
        return file
    with file:
        return io.BytesIO(_unpacked(file))


def _unpacked(file: BinaryIO) -> bytes:
    parts: list[bytes] = []
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False) as reader:
            while part := reader.read(_CHUNK):
                parts.append(part)
    except zstandard.ZstdError as error:
        if not parts:
            raise OSError(0, f"it cannot be unpacked ({error})") from error
    return b"".join(parts)
