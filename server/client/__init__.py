"""The Python client of Esker: `from esker import Esker`, or `SyncEsker` for programs without asyncio."""

from esker.server.client.esker import Esker
from esker.server.client.message import Message, StoredMessage
from esker.server.client.session import Session
from esker.server.client.sync.esker import SyncEsker
from esker.server.client.sync.session import SyncSession

__all__ = ["Esker", "Message", "Session", "StoredMessage", "SyncEsker", "SyncSession"]
