"""LlamaIndex with Esker: a retriever behind a query engine, and a chat store behind a chat memory."""
# pyright: basic, reportMissingImports=false

import asyncio

import pytest

from esker import SyncEsker

core = pytest.importorskip("llama_index.core", reason="`make integrations` installs it")

from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.query_engine import RetrieverQueryEngine

from esker.server.client.integrations.llamaindex import EskerChatStore, EskerRetriever


async def test_a_retriever_finds_nodes_with_scores_or_nothing(sync_esker: SyncEsker) -> None:
    def use(esker: SyncEsker) -> EskerRetriever:
        row = esker.remember("The ledger lives in Postgres.", project="shop")
        retriever = EskerRetriever(esker, project="shop", limit=3, tier="memories")
        [found] = retriever.retrieve("Where does the ledger live?")
        assert (found.node.node_id, found.text) == (row.id, "The ledger lives in Postgres.")
        assert found.score is not None
        assert found.score > 0.5
        assert retriever.retrieve("Who won the regatta?") == []
        answer = RetrieverQueryEngine.from_args(retriever, llm=MockLLM()).query("Where does the ledger live?")
        assert [source.node.node_id for source in answer.source_nodes] == [row.id]
        return retriever

    await asyncio.to_thread(use, sync_esker)


async def test_a_chat_store_keeps_messages_as_they_are(sync_esker: SyncEsker) -> None:
    calls = {"tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]}
    said = [
        ChatMessage(role="user", content="We decided that invoices are numbered by year."),
        ChatMessage(role="assistant", content="I look.", additional_kwargs=calls),
        ChatMessage(role="tool", content="Found it.", additional_kwargs={"tool_call_id": "c1"}),
    ]

    def use(esker: SyncEsker) -> None:
        store = EskerChatStore(esker, project="shop")
        memory = ChatMemoryBuffer.from_defaults(token_limit=1_000, chat_store=store, chat_store_key="ada")
        memory.put_messages(said)
        assert EskerChatStore(esker).get_messages("ada") == said
        assert memory.get() == said
        assert store.get_keys() == ["ada"]
        assert store.delete_last_message("ada") == said[2]
        assert store.delete_message("ada", 0) == said[0]
        assert store.delete_message("ada", 7) is None
        assert store.get_messages("ada") == [said[1]]
        store.set_messages("ada", said[:2])
        assert store.delete_messages("ada") == said[:2]
        assert store.delete_messages("ada") is None
        assert esker.session("llamaindex", "ada").observe().memories >= 1
        assert esker.recall("How are invoices numbered?", project="shop").hits

    await asyncio.to_thread(use, sync_esker)


async def test_a_chat_store_works_for_asynchronous_callers(sync_esker: SyncEsker) -> None:
    store = EskerChatStore(sync_esker)
    await store.async_add_message("bo", ChatMessage(role="user", content="Hello."))
    assert [message.content for message in await store.aget_messages("bo")] == ["Hello."]
