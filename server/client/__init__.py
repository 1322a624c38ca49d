"""The Python client of Esker: `from server.client import Esker`."""

from server.client.esker import Esker
from server.client.memory_tool import EskerMemoryTool
from server.client.session import Message, Session

__all__ = ["Esker", "EskerMemoryTool", "Message", "Session"]
