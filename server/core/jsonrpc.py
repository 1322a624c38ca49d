"""Checks the envelope of a JSON-RPC 2.0 message, so that a malformed message is answered instead of dropped.

The codes are from section 5.1 of the specification of JSON-RPC 2.0.
"""

from typing import Any

from esker.server.core.errors import InvalidInput
from esker.server.core.json_input import Json, parse_json

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602

_SHAPE = 'A message must be one JSON object with "jsonrpc": "2.0", a "method" and, for an answer, an "id"'


def refusal(document: bytes) -> dict[str, Any] | None:
    """Return the error answer to a document that is not a JSON-RPC message; None for a valid message."""
    try:
        message = parse_json(document)
    except InvalidInput as error:
        return _error(PARSE_ERROR, None, str(error).replace("The body is not", "This is not"))
    if isinstance(message, list):
        return _error(INVALID_REQUEST, None, f"{_SHAPE}; send several messages one after another, not in a list.")
    if not isinstance(message, dict):
        return _error(INVALID_REQUEST, None, f"{_SHAPE}.")
    return _refused(message)


def _refused(message: dict[str, Json]) -> dict[str, Any] | None:
    given = message.get("id")
    known = given if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool)) else None
    if message.get("jsonrpc") != "2.0":
        return _error(INVALID_REQUEST, known, f"{_SHAPE}.")
    if "id" in message and known is None:
        return _error(INVALID_REQUEST, None, "The id of a message must be a string or an integer.")
    if "method" not in message and ("result" in message or "error" in message):
        return None  # an answer from the client
    if not isinstance(message.get("method"), str):
        return _error(INVALID_REQUEST, known, "The method of a message must be a string, the name of the method.")
    if not isinstance(message.get("params", {}), dict):
        return _error(INVALID_PARAMS, known, "The params of a message must be an object of named parameters.")
    return None


def _error(code: int, message_id: str | int | None, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}
