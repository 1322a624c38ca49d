"""Esker in LlamaIndex: a retriever and a chat store. It needs `pip install esker[llamaindex]`.

Both are synchronous inside; LlamaIndex runs a chat store in a thread for its asynchronous calls.
"""
# pyright: basic, reportMissingImports=false

import asyncio
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.storage.chat_store import BaseChatStore
from pydantic import PrivateAttr

from esker.server.client.message import HistoryItem
from esker.server.client.sync.esker import SyncEsker
from esker.server.client.sync.history import SyncHistory
from esker.server.core.conversation.records import Role

_ROLES: dict[str, Role] = {"assistant": "assistant", "model": "assistant", "chatbot": "assistant", "tool": "tool"}
_ROLES |= {"function": "tool", "system": "system", "developer": "system"}


class EskerRetriever(BaseRetriever):
    """Nodes from memory with their scores, best first; none if nothing in memory is about the question."""

    def __init__(
        self, esker: SyncEsker | None = None, *, project: str | None = None, limit: int = 8, **options: Any
    ) -> None:
        """`options` are further options of `SyncEsker.recall`, such as `tier`, `kinds` or `since`."""
        self._esker = esker or SyncEsker()
        self._asked = {"project": project, "limit": limit, **options}
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._esker.recall(query_bundle.query_str, **self._asked)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.id,
                    text=hit.content,
                    metadata={
                        "tier": hit.tier,
                        "kind": hit.kind,
                        "said_at": hit.said_at.isoformat(),
                        "age": hit.age,
                        "project": hit.project,
                        "trust": hit.trust,
                    },
                ),
                score=hit.score,
            )
            for hit in found.hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class EskerChatStore(BaseChatStore):
    """The messages of conversations by key; each is a session of Esker, which remembers what matters in it.

    A deleted message is no longer in the conversation; memory keeps what was said until it is forgotten.
    """

    client: str = "llamaindex"
    project: str | None = None
    _esker: SyncEsker = PrivateAttr()
    _known: dict[str, SyncHistory] = PrivateAttr(default_factory=dict)

    def __init__(self, esker: SyncEsker | None = None, **fields: Any) -> None:
        """`fields` are `client`, the name of the program, and `project`."""
        super().__init__(**fields)
        self._esker = esker or SyncEsker()

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which LlamaIndex stores it."""
        return "EskerChatStore"

    def set_messages(self, key: str, messages: list[ChatMessage]) -> None:
        """Replace the messages of a conversation."""
        history = self._history(key)
        history.clear()
        history.add([_item(message) for message in messages])

    def get_messages(self, key: str) -> list[ChatMessage]:
        """Return the messages of a conversation, in order."""
        return [ChatMessage.model_validate(item) for item in self._history(key).items()]

    def add_message(self, key: str, message: ChatMessage) -> None:
        """Add a message at the end."""
        self._history(key).add([_item(message)])

    def delete_messages(self, key: str) -> list[ChatMessage] | None:
        """Remove all messages of a conversation, and return them."""
        messages = self.get_messages(key)
        self._history(key).clear()
        return messages or None

    def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Remove a message by its place, and return it."""
        return _message(self._history(key).remove(idx))

    def delete_last_message(self, key: str) -> ChatMessage | None:
        """Remove the last message, and return it."""
        return _message(self._history(key).remove(-1))

    def get_keys(self) -> list[str]:
        """Return the keys of all conversations, those that were emptied included."""
        return [session.external_id for session in self._esker.sessions() if session.client == self.client]

    def _history(self, key: str) -> SyncHistory:
        if key not in self._known:
            self._known[key] = SyncHistory(self._esker.session(self.client, key, project=self.project))
        return self._known[key]


def _message(item: dict[str, Any] | None) -> ChatMessage | None:
    return None if item is None else ChatMessage.model_validate(item)


def _item(message: ChatMessage) -> HistoryItem:
    text = message.content or ""
    blocks = [{"type": "text", "text": text}] if text else []
    return HistoryItem(_ROLES.get(message.role.value, "user"), blocks, message.model_dump(mode="json"))
