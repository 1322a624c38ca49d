"""Servers of models that lie: each lie is an error with a reason, after a bounded time and number of bytes."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from esker.server.core.errors import CallFailed, EmbedderDown, ModelFailed, RerankerDown, TextRefused
from esker.server.core.records import Space
from esker.server.providers import (
    bounded_answers,
    chat_api,
    context_size,
    language_model,
    messages_api,
    remote_embedder,
)
from esker.server.providers.context_size import ServerContextSize
from esker.server.providers.endpoints import Endpoint, Protocol
from esker.server.providers.language_models import probe
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.providers.remote_reranker import RemoteReranker
from tests.support.lying_server import DIMENSION, FALSE_VECTORS, LIES, lying_server
from tests.support.processes import ROOT
from tests.unit.test_protocols import PROTOCOLS, asked_for, at

Lie = Callable[[], Iterator[bytes]]

_LIMIT = 500_000
# Buffers of sockets are filled before a client has read its first byte.
_MOST_SENT = 20_000_000
_SECONDS = 0.3
_LISTS = 4
"""Addresses at which a server is asked for the context of its model."""

every_lie = pytest.mark.parametrize("lie", LIES.values(), ids=LIES)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    def seconds(texts: Sequence[str]) -> float:
        return _SECONDS

    monkeypatch.setattr(bounded_answers, "MOST_BYTES", _LIMIT)
    monkeypatch.setattr(remote_embedder, "longest_call", seconds)
    for module in (context_size, chat_api, messages_api):
        monkeypatch.setattr(module, "PROBE_SECONDS", _SECONDS)


@pytest.mark.parametrize("lie", (LIES | FALSE_VECTORS).values(), ids=LIES | FALSE_VECTORS)
async def test_an_embedder_that_lies_is_not_believed(lie: Lie) -> None:
    async with lying_server(lie) as server:
        embedder = RemoteEmbedder(server.url, "m", None, "openai:x#m")
        embedder._space = Space("m", "m", "", DIMENSION, "", "openai:x#m")
        with pytest.raises((CallFailed, EmbedderDown, TextRefused), match=r"The embedder.*[^:] ?\S"):
            await embedder.embed(["One river.", "Another one."])
        await embedder.close()
    assert server.sent < _MOST_SENT


@every_lie
async def test_a_reranker_that_lies_is_not_believed(lie: Lie) -> None:
    if lie is LIES["drip"]:
        pytest.skip("the caller limits its time")
    async with lying_server(lie) as server:
        reranker = RemoteReranker(server.url, "m", None)
        with pytest.raises(RerankerDown, match=r"The reranker"):
            await reranker.scores("Which river?", ["One river.", "Another one."])
        await reranker.close()
    assert server.sent < _MOST_SENT


@every_lie
async def test_a_server_that_lies_about_its_models_says_nothing_of_their_context(lie: Lie) -> None:
    async with lying_server(lie) as server:
        assert await ServerContextSize("m", Endpoint(server.url, protocol="chat")).tokens() is None
    assert server.sent < _LISTS * _MOST_SENT


@every_lie
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_model_that_lies_is_not_believed(protocol: Protocol, lie: Lie, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "_FIRST_RETRY_SECONDS", 0.0)
    async with lying_server(lie) as server, at(server.url, protocol, timeout=_SECONDS) as model:
        with pytest.raises(ModelFailed, match=r"^m .*\w"):
            await asked_for(model)
    assert server.sent < 4 * _MOST_SENT, "it is asked again"
    assert server.asked <= _LISTS + 3, "no redirection is followed"


@pytest.mark.parametrize("lie", [LIES[name] for name in ("drip", "nothing", "no HTTP", "endless body")])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_probe_ends_though_the_server_does_not(protocol: Protocol, lie: Lie) -> None:
    async with lying_server(lie) as server:
        assert re.match(
            r"it did not answer|it cannot be reached|the server there", await probe_at(server.url, protocol)
        )


async def probe_at(url: str, protocol: Protocol) -> str:
    """Return what a probe finds wrong with the server at an address."""
    return await probe(Endpoint(url, protocol=protocol)) or ""


def test_every_answer_of_a_server_of_models_is_bounded() -> None:
    for path in Path(ROOT, "server", "providers").rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if "AsyncClient(" in line and "AsyncAnthropic" not in line:
                assert "bounded(" in line or path.stem == "remote_reranker", f"{path}: {line}"
