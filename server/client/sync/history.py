"""A conversation as agent frameworks keep it: items that are added, removed and read back as they were.

A session only grows, so an item that a framework removes stays stored: a message of the role `system`, which no
observer is shown, says that it was removed. An item is kept in a field of its message's first block, which is stored
and changes nothing else.


Written from `server/client/history.py` by `.ci/write-sync-client`; do not edit.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from esker.server.client.message import HistoryItem, Message
from esker.server.client.sync.session import SyncSession

_ITEM = "item"
_CHANGE = "history"


class SyncHistory:
    """The items of one session, in order."""

    def __init__(self, session: SyncSession) -> None:
        self._session = session

    def add(self, items: Sequence[HistoryItem]) -> None:
        """Add items at the end, all or none."""
        if items:
            self._session.add(*(Message(uuid4().hex, each.role, _with_item(each)) for each in items))

    def items(self) -> list[dict[str, Any]]:
        """Return the items that were not removed. Secrets in them are masked, as in every message."""
        return list((self._known()).values())

    def remove(self, place: int) -> dict[str, Any] | None:
        """Remove the item at a place (−1: the last one) and return it; None if there is no such item."""
        known = self._known()
        ids = list(known)
        if not -len(ids) <= place < len(ids):
            return None
        self._change({"removed": ids[place]})
        return known[ids[place]]

    def clear(self) -> None:
        """Remove all items. Memory keeps what was said; `SyncEsker.forget_matching(session_id=…)` forgets it."""
        self._change({"cleared": True})

    def _change(self, change: dict[str, Any]) -> None:
        self._session.add(Message(uuid4().hex, "system", [{"type": _CHANGE, **change}]))

    def _known(self) -> dict[str, dict[str, Any]]:
        """Return the items by the external ids of their messages, in order."""
        known: dict[str, dict[str, Any]] = {}
        for message in self._session.messages():
            for block in message.content:
                if block["type"] == _CHANGE and message.role == "system":
                    known = {} if block.get("cleared") else {k: v for k, v in known.items() if k != block["removed"]}
                elif isinstance(block.get(_ITEM), dict):
                    known[message.external_id] = block[_ITEM]
        return known


def _with_item(each: HistoryItem) -> list[Any]:
    """Return the blocks of an item with the item in the first one."""
    blocks = each.blocks or [{"type": "text", "text": ""}]
    return [{**blocks[0], _ITEM: each.item}, *blocks[1:]]
