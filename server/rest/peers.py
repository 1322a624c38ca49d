"""The user at the other end of a connection on this machine, as the operating system knows it.

`docs/decisions/local-access.md` says what depends on it, and why it cannot be forged.
"""

import asyncio
import os
import socket
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address

import psutil

# Constants of linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
_SOCK_DIAG = 4
_BY_FAMILY = 20
_REQUEST = 1
_HEADER = struct.Struct("=IHHII")
_QUERY = struct.Struct("=BBBxI")
_SOCKET = struct.Struct("!HH16s16s")
_ANY_INTERFACE_AND_COOKIE = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)
_ALL_STATES = 0xFFFFFFFF
_ANSWER = struct.Struct("=BBBB48xIIIII")
# The user id of all users that do not exist in a user namespace.
_OVERFLOW_UID = 65_534

Address = tuple[str, int]


@dataclass(slots=True)
class Peer:
    """The other end of a connection; its user is looked up once, when it is asked for."""

    theirs: Address
    ours: Address
    _is_owner: bool | None = field(default=None)

    async def is_owner(self) -> bool:
        """Return whether the other end is a process of the user who runs this one; False if that is not known."""
        if self._is_owner is None:
            self._is_owner = await _is_own(self.theirs, self.ours)
        return self._is_owner


async def _is_own(theirs: Address, ours: Address) -> bool:
    if not _is_loopback(theirs[0]):
        return False
    if sys.platform == "linux":
        with suppress(OSError):
            return uid_of(theirs, ours) == os.geteuid() != _OVERFLOW_UID
    return await asyncio.to_thread(_is_among_own, theirs, ours)


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        address = ip_address(host)
        return (getattr(address, "ipv4_mapped", None) or address).is_loopback
    return False


def uid_of(theirs: Address, ours: Address) -> int | None:
    """Return the user of the socket at `theirs` that is connected with `ours`. Linux only. Raises OSError.

    None for a socket that no process holds any more, whose user the kernel reports as root.
    """
    family = socket.AF_INET6 if ":" in theirs[0] else socket.AF_INET
    query = _QUERY.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES)
    query += _SOCKET.pack(theirs[1], ours[1], _packed(theirs[0]), _packed(ours[0])) + _ANY_INTERFACE_AND_COOKIE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG) as kernel:
        kernel.settimeout(1)
        kernel.send(_HEADER.pack(_HEADER.size + len(query), _BY_FAMILY, _REQUEST, 1, 0) + query)
        answer = kernel.recv(4096)
    if len(answer) < _HEADER.size + _ANSWER.size or _HEADER.unpack_from(answer)[1] != _BY_FAMILY:
        return None
    *_, uid, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    return uid if inode else None


def _packed(host: str) -> bytes:
    address: IPv4Address | IPv6Address = ip_address(host)
    return address.packed.ljust(16, b"\0")


def _is_among_own(theirs: Address, ours: Address) -> bool:
    """Return whether a process of this user holds the socket at `theirs`, for systems without `uid_of`."""
    me = os.geteuid()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.uids().effective == me and any(
                (each.laddr[:2], each.raddr[:2]) == (theirs, ours) for each in process.net_connections("tcp")
            ):
                return True
    return False
