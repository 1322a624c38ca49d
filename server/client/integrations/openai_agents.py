"""A session of the OpenAI Agents SDK that is kept in Esker. It needs `pip install esker[openai-agents]`."""
# pyright: basic, reportMissingImports=false

import asyncio
import json
from typing import Any

from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from esker.server.client.esker import Esker
from esker.server.client.history import History
from esker.server.client.message import HistoryItem
from esker.server.core.conversation.records import Role

_ROLES: dict[str, Role] = {"assistant": "assistant", "system": "system", "developer": "system"}


class EskerSession(SessionABC):
    """The items of one conversation, kept in a session of Esker, which remembers what matters in them.

    An item that is removed is no longer in the conversation; memory keeps what was said until it is forgotten.
    """

    def __init__(
        self,
        session_id: str,
        *,
        esker: Esker | None = None,
        client: str = "openai-agents",
        project: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        """`session_id` is the caller's own id of the conversation."""
        self.session_id = session_id
        self.session_settings = session_settings
        self._esker = esker or Esker()
        self._names = {"client": client, "project": project}
        self._opening = asyncio.Lock()
        self._history: History | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order: all, or the last `limit`."""
        most = limit if limit is not None else self.session_settings and self.session_settings.limit
        items: list[Any] = await (await self._opened()).items()
        return items if most is None else items[max(0, len(items) - most) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items at the end, all or none."""
        await (await self._opened()).add([_item(item) for item in items])

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the last item and return it; None if there is none."""
        removed: Any = await (await self._opened()).remove(-1)
        return removed

    async def clear_session(self) -> None:
        """Remove all items."""
        await (await self._opened()).clear()

    async def _opened(self) -> History:
        async with self._opening:
            if self._history is None:
                client, project = str(self._names["client"]), self._names["project"]
                self._history = History(await self._esker.session(client, self.session_id, project=project))
            return self._history


def _item(given: TResponseInputItem) -> HistoryItem:
    """Return an item with the blocks that an observer understands: words, calls of functions, and their results."""
    # Values that JSON does not have become text.
    item: dict[str, Any] = json.loads(json.dumps(given, default=str))
    match item:
        case {"type": "function_call", "call_id": str(call), "name": str(name)}:
            asked = {"id": call, "name": name, "input": _arguments(item.get("arguments"))}
            return HistoryItem("assistant", [{"type": "tool_use", **asked}], item)
        case {"type": "function_call_output", "call_id": str(call)}:
            output = item.get("output")
            said = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
            return HistoryItem("tool", [{"type": "tool_result", "tool_use_id": call, "content": said}], item)
        case {"role": str(role), "content": content}:
            words = content if isinstance(content, str) else "\n".join(_words(content))
            return HistoryItem(_ROLES.get(role, "user"), [{"type": "text", "text": words}], item)
        case _:
            # Reasoning and the like: kept for the framework, and nothing to remember.
            return HistoryItem("system", [{"type": str(item.get("type", "item"))}], item)


def _words(parts: Any) -> list[str]:
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _arguments(text: Any) -> Any:
    """Return the arguments of a call, which the API sends as JSON in a string."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {"arguments": text}
    return found if isinstance(found, dict) else {"arguments": found}
