"""Esker: a memory server that many agent CLIs share. `from esker import Esker` is its Python client.

This folder gives everything that is installed one name: its links lead to the folders of the repository.
"""

from typing import TYPE_CHECKING, Any

from esker.server import VERSION as __version__  # noqa: N811

if TYPE_CHECKING:
    from esker.server.client import Esker, Message, Session

__all__ = ["Esker", "Message", "Session", "__version__"]


def __getattr__(name: str) -> Any:
    """Import the client on first use: a hook, which runs in every turn of an agent, does without it."""
    if name not in __all__:
        raise AttributeError(f"module 'esker' has no attribute {name!r}")
    from esker.server import client  # noqa: PLC0415

    return getattr(client, name)
