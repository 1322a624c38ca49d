"""Identifiers: a prefix that names the kind, then 26 characters that sort by time.

The layout is that of a ULID (48 bits of Unix milliseconds, 80 random bits, Crockford's base 32), so that new
rows land at the end of their index.
"""

import re
import secrets
from datetime import datetime
from typing import Literal

Prefix = Literal["ses", "grp", "mem", "psg", "ref", "key", "fgt", "qua"]

GATEWAY_IDS = "gw_"
"""The beginning of the ids that the gateway gives to turns."""

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [one + other for one in _ALPHABET for other in _ALPHABET]
_LENGTH = 26
_SESSION_ID = re.compile(rf"ses_[{_ALPHABET}]{{{_LENGTH}}}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TURN_ID = re.compile(rf"{GATEWAY_IDS}[0-9a-f]{{32}}")
_MEMORY_ID = re.compile(rf"\bmem_[{_ALPHABET}]{{{_LENGTH}}}\b")


def new_id(prefix: Prefix, now: datetime) -> str:
    """Return a new identifier such as `mem_01kb3x…`, made at `now`."""
    value = (int(now.timestamp() * 1000) & (1 << 48) - 1) << 80 | secrets.randbits(80)
    pairs = [_PAIRS[value >> shift & 1023] for shift in range(5 * (_LENGTH - 2), -1, -10)]
    return f"{prefix}_{''.join(pairs)}"


def new_ids(prefix: Prefix, now: datetime, count: int) -> list[str]:
    """Return `count` new identifiers made at `now`, in the order in which they sort."""
    return sorted(new_id(prefix, now) for _ in range(count))


def is_session(name: str) -> bool:
    """Whether a name is the id that Esker gave to a session; ids of OpenCode begin alike."""
    return bool(_SESSION_ID.fullmatch(name))


def is_passage(text_id: str) -> bool:
    """Whether the id of a hit is that of a passage; otherwise it is that of a memory."""
    return text_id.startswith("psg_")


def is_quarantine(superseder: str) -> bool:
    """Whether the id of what supersedes a memory is that of a quarantine."""
    return superseder.startswith("qua_")


def is_uuid(name: str) -> bool:
    """Whether an id that a client gave is a UUID, which no other client gives again."""
    return bool(_UUID.fullmatch(name))


def is_turn_id(external_id: str) -> bool:
    """Whether an id is a hash, as the gateway gives it to turns: there is no secret to look for in it."""
    return bool(_TURN_ID.fullmatch(external_id))


def memory_ids_in(text: str) -> list[str]:
    """Return the ids of memories that a text contains, each once, in order."""
    return list(dict.fromkeys(_MEMORY_ID.findall(text)))
