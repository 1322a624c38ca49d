"""Decoding bodies, to read a copy of them: what is passed on stays as it came."""

import io
import sys
import zlib

from esker.server.core.errors import InvalidInput

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

MOST_BYTES = 64 * 1024 * 1024
"""The largest body that is read."""
READABLE = ("gzip", "deflate", "zstd", "identity")
"""The encodings that a client may ask a provider for."""


def decoded(body: bytes, encoding: str | None) -> bytes:
    """Return a body without its content encoding. Raises InvalidInput if it cannot be read, or is too large."""
    match (encoding or "identity").strip().lower():
        case "identity":
            return body
        case "gzip" | "x-gzip":
            return _inflated(body, 16 + zlib.MAX_WBITS)
        case "deflate":
            return _inflated(body, zlib.MAX_WBITS)
        case "zstd":
            return _decompressed(body)
        case other:
            raise InvalidInput(f"The content encoding {other[:40]!r} cannot be read.")


def _inflated(body: bytes, window: int) -> bytes:
    try:
        stream = zlib.decompressobj(window)
        found = stream.decompress(body, MOST_BYTES + 1)
    except zlib.error as error:
        raise InvalidInput("The body is not compressed as its header says.") from error
    return _bounded(found)


def _decompressed(body: bytes) -> bytes:
    try:
        with zstd.ZstdFile(io.BytesIO(body)) as reader:
            return _bounded(reader.read(MOST_BYTES + 1))
    except (zstd.ZstdError, EOFError) as error:
        raise InvalidInput("The body is not compressed as its header says.") from error


def _bounded(found: bytes) -> bytes:
    if len(found) > MOST_BYTES:
        raise InvalidInput(f"The body has more than {MOST_BYTES:,} bytes.")
    return found


def accepted(asked: str) -> str:
    """Return an Accept-Encoding header without the encodings that could not be read, such as `br`."""
    known = [each.strip() for each in asked.split(",") if each.partition(";")[0].strip().lower() in READABLE]
    return ", ".join(known) or "identity"
