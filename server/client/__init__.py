"""The Python client of Esker: `from server.client import Esker`."""

from server.client.esker import Esker
from server.client.session import Message, Session

__all__ = ["Esker", "Message", "Session"]
