"""The splices of the protocols."""

from collections.abc import Mapping

from esker.server.gateway.splices.chat import ChatSplice
from esker.server.gateway.splices.gemini import GeminiSplice
from esker.server.gateway.splices.messages import MessagesSplice
from esker.server.gateway.splices.responses import ResponsesSplice
from esker.server.gateway.splices.splice import Splice

SPLICES: Mapping[str, type[Splice]] = {
    "messages": MessagesSplice,
    "responses": ResponsesSplice,
    "chat": ChatSplice,
    "gemini": GeminiSplice,
}
"""The splice of each protocol, by its name."""
