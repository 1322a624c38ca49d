"""LangChain with Esker: a retriever in a chain, and a chat history that gives messages back as they were."""
# pyright: basic, reportMissingImports=false

import asyncio

import pytest

from esker import SyncEsker

core = pytest.importorskip("langchain_core", reason="`make integrations` installs it")

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables.history import RunnableWithMessageHistory

from esker.server.client.integrations.langchain import EskerChatMessageHistory, EskerRetriever


async def test_a_retriever_finds_documents_or_nothing(sync_esker: SyncEsker) -> None:
    def use(esker: SyncEsker) -> None:
        row = esker.remember("The ledger lives in Postgres.", project="shop")
        retriever = EskerRetriever(esker=esker, project="shop", limit=3, options={"tier": "memories"})
        chain = retriever | (lambda documents: [document.page_content for document in documents])
        [document] = retriever.invoke("Where does the ledger live?")
        assert (document.id, document.page_content) == (row.id, "The ledger lives in Postgres.")
        assert (document.metadata["project"], document.metadata["trust"]) == ("shop", row.trust)
        assert chain.invoke("Where does the ledger live?") == ["The ledger lives in Postgres."]
        assert retriever.invoke("Who won the regatta?") == []

    await asyncio.to_thread(use, sync_esker)


async def test_a_retriever_works_for_asynchronous_callers(sync_esker: SyncEsker) -> None:
    await asyncio.to_thread(sync_esker.remember, "The gate is green.")
    retriever = EskerRetriever(esker=sync_esker)
    assert [document.page_content for document in await retriever.ainvoke("gate")] == ["The gate is green."]


async def test_a_chat_history_keeps_messages_as_they_are(sync_esker: SyncEsker) -> None:
    call = {"id": "c1", "name": "look", "args": {"at": ["a"]}}
    said = [
        SystemMessage("Be brief."),
        HumanMessage("We decided that invoices are numbered by year."),
        AIMessage([{"type": "text", "text": "I look."}], tool_calls=[call], id="run-1"),
        ToolMessage("Found it.", tool_call_id="c1", status="success"),
        AIMessage("Noted."),
    ]

    def use(esker: SyncEsker) -> None:
        history = EskerChatMessageHistory("chat-1", esker=esker, project="shop")
        history.add_messages(said)
        history.add_user_message("Thanks.")
        assert EskerChatMessageHistory("chat-1", esker=esker).messages == [*said, HumanMessage("Thanks.")]
        session = esker.session("langchain", "chat-1")
        assert session.observe().memories == 1
        assert [hit.trust for hit in esker.recall("How are invoices numbered?", project="shop").hits] == ["user"]
        history.clear()
        assert history.messages == []
        history.add_ai_message("Anew.")
        assert [message.text for message in EskerChatMessageHistory("chat-1", esker=esker).messages] == ["Anew."]

    await asyncio.to_thread(use, sync_esker)


async def test_a_chain_reads_and_writes_the_history(sync_esker: SyncEsker) -> None:
    def use(esker: SyncEsker) -> list[str]:
        model = FakeListChatModel(responses=["Hello Ada.", "You are Ada."])
        chain = RunnableWithMessageHistory(model, lambda name: EskerChatMessageHistory(name, esker=esker))
        for words in ("I am Ada.", "Who am I?"):
            chain.invoke(words, {"configurable": {"session_id": "chat-2"}})
        return [message.text for message in EskerChatMessageHistory("chat-2", esker=esker).messages]

    assert await asyncio.to_thread(use, sync_esker) == ["I am Ada.", "Hello Ada.", "Who am I?", "You are Ada."]
