"""Esker: a memory server that many agent CLIs share. `from esker import Esker` is its Python client.

This folder gives everything that is installed one name: its links lead to the folders of the repository.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from esker.server import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from esker.server.client import Esker, Message, Session, StoredMessage, SyncEsker, SyncSession
    from esker.server.client.memory_tool import EskerMemoryTool
    from esker.server.core.errors import (
        Conflict,
        EskerError,
        Forbidden,
        InvalidInput,
        NotFound,
        TooLarge,
        Unauthorized,
        Unavailable,
    )

__all__ = [
    "Conflict",
    "Esker",
    "EskerError",
    "EskerMemoryTool",
    "Forbidden",
    "InvalidInput",
    "Message",
    "NotFound",
    "Session",
    "StoredMessage",
    "SyncEsker",
    "SyncSession",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "__version__",
]
_CLIENT = frozenset({"Esker", "Message", "Session", "StoredMessage", "SyncEsker", "SyncSession"})


def __getattr__(name: str) -> Any:
    """Import the client on first use, since a hook, which runs in every turn of an agent, does not need it."""
    if name not in __all__:
        raise AttributeError(f"module 'esker' has no attribute {name!r}")
    if name == "EskerMemoryTool":
        return getattr(import_module("esker.server.client.memory_tool"), name)
    return getattr(import_module("esker.server.client" if name in _CLIENT else "esker.server.core.errors"), name)
