"""Esker in LangChain: a retriever and a chat history. It needs `pip install esker[langchain]`.

Both are synchronous inside; LangChain runs them in a thread for its asynchronous calls.
"""
# pyright: basic, reportMissingImports=false

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field

from esker.server.client.message import HistoryItem
from esker.server.client.sync.esker import SyncEsker
from esker.server.client.sync.history import SyncHistory
from esker.server.core.conversation.records import Role

_ROLES: dict[str, Role] = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}


class EskerRetriever(BaseRetriever):
    """Documents from memory, best first; none if nothing in memory is about the question.

    `options` are further options of `SyncEsker.recall`, such as `tier`, `kinds` or `since`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    esker: SyncEsker = Field(default_factory=SyncEsker)
    project: str | None = None
    limit: int = 8
    options: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self.esker.recall(query, project=self.project, limit=self.limit, **self.options)
        return [
            Document(
                id=hit.id,
                page_content=hit.content,
                metadata={
                    "id": hit.id,
                    "tier": hit.tier,
                    "kind": hit.kind,
                    "score": hit.score,
                    "said_at": hit.said_at.isoformat(),
                    "age": hit.age,
                    "project": hit.project,
                    "trust": hit.trust,
                },
            )
            for hit in found.hits
        ]


class EskerChatMessageHistory(BaseChatMessageHistory):
    """The messages of one conversation, kept in a session of Esker, which remembers what matters in them.

    `clear` begins anew; memory keeps what was said until it is forgotten.
    """

    def __init__(
        self, session_id: str, *, esker: SyncEsker | None = None, client: str = "langchain", project: str | None = None
    ) -> None:
        """`session_id` is the caller's own id of the conversation."""
        super().__init__()
        self.session_id = session_id
        session = (esker or SyncEsker()).session(client, session_id, project=project)
        self._history = SyncHistory(session)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages, in order."""
        return messages_from_dict(self._history.items())

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages at the end, all or none."""
        self._history.add([_item(message) for message in messages])

    def clear(self) -> None:
        """Remove all messages from the history."""
        self._history.clear()


def _item(message: BaseMessage) -> HistoryItem:
    text: dict[str, Any] = {"type": "text", "text": str(message.text)}
    blocks: list[dict[str, Any]] = [text] if text["text"] else []
    match message:
        case AIMessage():
            calls = message.tool_calls
            blocks += [
                {"type": "tool_use", "id": each["id"], "name": each["name"], "input": each["args"]} for each in calls
            ]
        case ToolMessage():
            failed = message.status == "error"
            result = {"tool_use_id": message.tool_call_id, "content": text["text"], "is_error": failed}
            blocks = [{"type": "tool_result", **result}]
    # Values that JSON does not have, such as those of an artifact, become text.
    item = json.loads(json.dumps(message_to_dict(message), default=str))
    return HistoryItem(_ROLES.get(message.type, "user"), blocks, item)
