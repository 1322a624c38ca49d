"""The protocols of providers, and the one that an address belongs to."""

import re

from esker.server.gateway.protocols.chat import CHAT
from esker.server.gateway.protocols.gemini import GEMINI
from esker.server.gateway.protocols.messages import MESSAGES
from esker.server.gateway.protocols.responses import RESPONSES
from esker.server.gateway.records import Protocol

_ADDRESSES = (
    (re.compile(r"(?:.*/)?messages"), MESSAGES),
    (re.compile(r"(?:.*/)?responses"), RESPONSES),
    (re.compile(r"(?:.*/)?chat/completions"), CHAT),
    (re.compile(r"(?:.*/)?models/[^/]+:(?:generateContent|streamGenerateContent)"), GEMINI),
)


def protocol_of(path: str) -> Protocol | None:
    """Return the protocol of a conversation at a path; None for anything else, such as counts, batches and models."""
    return next((protocol for pattern, protocol in _ADDRESSES if pattern.fullmatch(path)), None)
