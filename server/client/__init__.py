"""The Python client of Esker: `from esker import Esker`."""

from esker.server.client.esker import Esker
from esker.server.client.session import Message, Session

__all__ = ["Esker", "Message", "Session"]
