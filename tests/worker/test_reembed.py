"""Changing the embedding model: built beside the old one, switched to, resumed after a crash, and undone."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import psycopg
import pytest
from pydantic import SecretStr

from esker.embedding_worker.worker import run_worker
from esker.server.core.config.settings import Settings
from esker.server.core.errors import InvalidInput, Misconfigured, NotFound
from esker.server.core.records import Principal, Space
from esker.server.db.database import Database
from esker.server.providers.embedders import make_embedder
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.providers.remote_embedder import RemoteEmbedder
from esker.server.store import vectors
from esker.server.usecases.authenticate import create_pool
from esker.server.usecases.embed import PAUSE, embed_due, keep_up, make_space, pools_with_work, register
from esker.server.usecases.ingest import IncomingMessage, ingest
from esker.server.usecases.open_session import SessionRequest, open_session
from esker.server.usecases.parts import Parts
from esker.server.usecases.recall import recall
from esker.server.usecases.recall_request import RecallRequest
from esker.server.usecases.reembed import SpaceStatus, drop_retired, reembed, roll_back, status
from esker.server.usecases.remember import Note, remember
from tests.support.clock import FakeClock
from tests.support.embedding_server import EmbeddingServer, embedding_server
from tests.support.waiting import eventually


@dataclass
class Watching:
    """An observer of progress; `then` is called at every report."""

    then: Callable[[], None] = lambda: None
    steps: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])
    advanced: int = 0
    waited: list[str] = field(default_factory=list[str])

    @contextmanager
    def step(self, what: str, total: int, done: int) -> Generator[Callable[[int], None]]:
        """Record the output."""
        self.steps.append((what, total, done))
        yield self._advance

    def _advance(self, more: int) -> None:
        self.advanced += more
        self.then()

    def waits(self, why: str) -> None:
        """Record the output."""
        self.waited.append(why)


@asynccontextmanager
async def model(dimension: int, name: str = "scripted") -> AsyncGenerator[tuple[EmbeddingServer, RemoteEmbedder]]:
    """A model behind an endpoint of its own, and an embedder that asks it."""
    async with embedding_server(dimension) as endpoint:
        embedder = RemoteEmbedder(endpoint.url, name, None, f"openai:{endpoint.url}#{name}")
        try:
            yield endpoint, embedder
        finally:
            await embedder.close()


@pytest.fixture
async def old(parts: Parts) -> AsyncGenerator[RemoteEmbedder]:
    """The model with which all pools began, at 8 dimensions."""
    async with model(8, "old") as (_, embedder):
        space = await embedder.load()
        await make_space(parts, space)
        await register(parts, space, or_retired=False)
        yield embedder


@pytest.fixture
async def filled(parts: Parts, who: Principal, old: RemoteEmbedder) -> Parts:
    """A pool with memories and passages, all of which have vectors of the old model."""
    await remember(parts, who, [Note(f"River number {n} runs.") for n in range(150)])
    session = await open_session(parts, who.pool_id, SessionRequest("api", "s"))
    said = [IncomingMessage(f"m{n}", "user", f"The harbour was closed on day {n}. " * 20) for n in range(20)]
    await ingest(parts, who.pool_id, session.id, said)
    await drain(parts, old)
    return parts


async def drain(parts: Parts, embedder: RemoteEmbedder) -> None:
    """Embed everything that is due."""
    space = await embedder.load()
    while pools := await pools_with_work(parts, space):
        for pool_id in pools:
            await embed_due(parts, embedder, space, pool_id)


def asking(parts: Parts, *embedders: RemoteEmbedder) -> Parts:
    """Return parts whose recall has these models."""
    by_setting = {f"openai:{e._url.removesuffix('/embeddings')}#{e._model}": e for e in embedders}  # type: ignore[reportPrivateUsage]
    return replace(parts, embedders=QueryEmbedders(by_setting.__getitem__, next(iter(by_setting))))


async def by_state(parts: Parts) -> dict[str, SpaceStatus]:
    """Return the spaces of the default pool with their progress, by state."""
    return {space.state: space for space in await status(parts, "default")}


def vectors_of(owner_url: str, space: str) -> dict[str, int]:
    """Return how many texts of each tier have vectors in the table."""
    with psycopg.connect(owner_url) as connection:
        rows = connection.execute(
            f"SELECT tier::text, count(DISTINCT number) FROM embeddings_{space} GROUP BY tier"  # type: ignore[arg-type]  # noqa: S608
        ).fetchall()
    return dict(rows)


@pytest.mark.parametrize("dimension", [8, 384, 3_072])
async def test_memories_and_passages_get_vectors_of_the_new_model(
    filled: Parts, who: Principal, old: RemoteEmbedder, owner_url: str, dimension: int
) -> None:
    before = await by_state(filled)
    async with model(dimension, "new") as (_, new):
        watching = Watching()
        found = {space.state: space for space in await reembed(filled, new, watching)}
        after = found["active"]
        assert (after.model, after.dimension, after.chosen) == ("new", dimension, True)
        assert (after.missing, after.waiting, after.failed) == (0, 0, 0)
        held = vectors_of(owner_url, after.space)
        assert held["m"] == 150
        assert held["p"] > 0
        assert sum(held.values()) == after.texts == before["active"].texts
        assert watching.steps == [("Pool default with new", after.texts, 0)]
        assert watching.advanced == after.texts
        assert (found["retired"].model, found["retired"].missing) == ("old", 0)
        answer = await recall(asking(filled, new, old), who.pool_id, RecallRequest("river number 7 runs"))
        assert (answer.semantic, answer.pending) == ("weak", 0)
        assert answer.hits[0].content == "River number 7 runs."


async def test_recall_is_served_by_the_old_model_until_the_new_one_is_complete(
    filled: Parts, who: Principal, old: RemoteEmbedder
) -> None:
    async with model(16, "new") as (endpoint, new):
        both = asking(filled, old, new)
        states: list[tuple[str, str]] = []

        async def ask(_: float) -> None:
            endpoint.status = 200
            answer = await recall(both, who.pool_id, RecallRequest("river number 7 runs"))
            states.append((answer.semantic, (await by_state(filled))["active"].model))
            filled.clock.now += PAUSE  # type: ignore[attr-defined]

        def break_down() -> None:
            endpoint.status = 503 if not states else 200

        watching = Watching(break_down)
        await reembed(filled, new, watching, sleep=ask)
        assert states == [("ok", "old")]
        assert "503" in watching.waited[0]
        assert (await by_state(filled))["active"].model == "new"


class Killed(BaseException):
    """Stands for the death of a process: no exception handler may catch it."""


async def test_a_killed_run_is_continued_where_it_stopped(filled: Parts, clock: FakeClock) -> None:
    async with model(16, "new") as (endpoint, new):

        def die() -> None:
            raise Killed

        with pytest.raises(Killed):
            await reembed(filled, new, Watching(die))
        half = await by_state(filled)
        assert (half["active"].model, half["building"].missing) == ("old", half["building"].texts - 64)
        # Rows leased by a dead process return when the lease ends; the next run waits for them.
        space = await new.load()
        async with filled.database.tenant((await filled.database.ask("SELECT id::text FROM pools"))[0]["id"]) as held:
            await vectors.claim(held, space.name, clock(), timedelta(minutes=5), tried=False, limit=10)
        asked = len(endpoint.asked)

        async def pass_time(_: float) -> None:
            assert (await by_state(filled))["active"].model == "old"
            clock.now += timedelta(minutes=6)

        watching = Watching()
        await reembed(filled, new, watching, sleep=pass_time)
        assert watching.steps[0][2] == 64
        assert watching.waited == ["10 texts are claimed by a worker or one that died"]
        done = (await by_state(filled))["active"]
        assert (done.model, done.missing) == ("new", 0)
        again = [text for texts in endpoint.asked[asked:] for text in texts if text.startswith("River")]
        assert len(again) == len(set(again)) <= 150


async def test_a_refused_text_is_counted_and_does_not_affect_the_others(filled: Parts) -> None:
    async with model(16, "new") as (endpoint, new):
        endpoint.refuses.add("number 7 ")
        found = {space.state: space for space in await reembed(filled, new, Watching())}
        assert (found["active"].model, found["active"].missing, found["active"].waiting) == ("new", 1, 1)


async def test_going_back_is_immediate_and_texts_without_old_vectors_are_queued(
    filled: Parts, who: Principal, old: RemoteEmbedder
) -> None:
    async with model(16, "new") as (_, new):
        await reembed(filled, new, Watching())
        await remember(filled, who, [Note("A hill came later."), Note("A lake came later.")])
        await drain(filled, new)
        assert (await by_state(filled))["retired"].missing == 2
        [went] = await roll_back(filled)
        assert (went.pool, went.model, went.left, went.queued) == ("default", "old", "new", 2)
        answer = await recall(asking(filled, old, new), who.pool_id, RecallRequest("river number 7 runs"))
        assert (answer.semantic, answer.pending, answer.hits[0].content) == ("ok", 2, "River number 7 runs.")
        await drain(filled, old)
        now = await by_state(filled)
        assert (now["active"].model, now["active"].missing, now["retired"].model) == ("old", 0, "new")
        # And there again.
        assert [each.model for each in await roll_back(filled)] == ["new"]


async def test_building_a_model_can_be_cancelled(filled: Parts, who: Principal) -> None:
    async with model(16, "new") as (_, new):

        def die() -> None:
            raise Killed

        with pytest.raises(Killed):
            await reembed(filled, new, Watching(die))
        [went] = await roll_back(filled)
        assert (went.model, went.left, went.queued) == ("old", "new", 0)
        now = await by_state(filled)
        assert (now["active"].model, now["active"].chosen) == ("old", True)
        assert (now["retired"].model, now["retired"].waiting) == ("new", 0)
        with pytest.raises(InvalidInput, match="no model to go back to"):
            await roll_back(filled)  # it was never in use


async def test_vectors_of_a_retired_model_are_kept_until_they_are_dropped(filled: Parts, owner_url: str) -> None:
    async with model(16, "new") as (_, new):
        await reembed(filled, new, Watching())
        retired = (await by_state(filled))["retired"]
        assert sum(vectors_of(owner_url, retired.space).values()) == retired.texts
        [dropped] = await drop_retired(filled)
        assert (dropped.pool, dropped.model) == ("default", "old")
        assert dropped.vectors >= retired.texts
        assert vectors_of(owner_url, retired.space) == {}
        assert set(await by_state(filled)) == {"active"}
        assert await drop_retired(filled) == []
        with pytest.raises(InvalidInput):
            await roll_back(filled)


async def test_one_pool_can_change_its_model_alone(filled: Parts, old: RemoteEmbedder) -> None:
    await create_pool(filled, "other")
    await register(filled, await old.load(), or_retired=False)
    async with model(16, "new") as (_, new):
        await reembed(filled, new, Watching(), "other")
        assert {(s.pool, s.model) for s in await status(filled) if s.state == "active"} == {
            ("default", "old"),
            ("other", "new"),
        }
        with pytest.raises(NotFound):
            await reembed(filled, new, Watching(), "nobody")


async def test_too_many_dimensions_are_refused_before_anything_is_changed(filled: Parts, owner_url: str) -> None:
    tables = "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'embeddings_%'"
    async with model(4_001, "huge") as (_, huge):
        with pytest.raises(Misconfigured, match="4,001 dimensions"):
            await reembed(filled, huge, Watching())
    with psycopg.connect(owner_url) as connection:
        assert connection.execute(tables).fetchone() == (1,)
    assert set(await by_state(filled)) == {"active"}


# Workers ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def chosen(filled: Parts) -> AsyncGenerator[RemoteEmbedder]:
    """Another model, to which the pool was switched by a command."""
    async with model(16, "new") as (_, new):
        await reembed(filled, new, Watching())
        yield new


async def test_a_worker_with_the_previous_setting_does_not_change_a_pool_back(
    filled: Parts, who: Principal, old: RemoteEmbedder, chosen: RemoteEmbedder
) -> None:
    space = await old.load()
    await register(filled, space, or_retired=True)
    await remember(filled, who, [Note("A hill came later.")])
    await keep_up(filled, space)
    assert await pools_with_work(filled, space) == []
    assert (await by_state(filled))["active"].model == "new"
    # A model with the same setting is a newer version of it.
    newer = replace(await chosen.load(), name="newer_16", revision="2")
    await make_space(filled, newer)
    await register(filled, newer, or_retired=False)
    assert (await by_state(filled))["building"].space == "newer_16"


async def test_a_new_version_of_a_chosen_model_is_also_chosen(filled: Parts, chosen: RemoteEmbedder) -> None:
    newer = Space("newer_16", "new", "2", 16, "", (await chosen.load()).source)
    await make_space(filled, newer)
    await register(filled, newer, or_retired=False)
    async with filled.database.tenant((await filled.database.ask("SELECT id::text FROM pools"))[0]["id"]) as connection:
        await vectors.activate(connection, newer.name, filled.clock())
    now = await by_state(filled)
    assert (now["active"].space, now["active"].chosen, now["retired"].chosen) == ("newer_16", True, False)


async def test_a_worker_embeds_with_the_chosen_model_and_not_with_that_of_its_setting(
    filled: Parts, who: Principal, old: RemoteEmbedder, chosen: RemoteEmbedder, database_url: str
) -> None:
    stop = asyncio.Event()
    settings = Settings(embedder=(await old.load()).source)
    worker = Parts(Database(database_url, connections=2), filled.clock, settings)
    running = asyncio.create_task(run_worker(worker, old, stop))
    try:
        await remember(filled, who, [Note("A hill came later.")])
        states = await eventually(
            lambda: by_state(filled), lambda states: running.done() or not states["active"].missing
        )
        assert not states["active"].missing
    finally:
        stop.set()
        await running
    assert (await by_state(filled))["active"].model == "new"


async def test_another_default_leaves_pools_with_a_model_alone(filled: Parts, old: RemoteEmbedder) -> None:
    by_default = replace(filled, settings=Settings.from_environment({}))
    async with model(16, "new") as (_, new):
        space = await new.load()
        await make_space(filled, space)
        await register(by_default, space, or_retired=True)
        now = await by_state(filled)
        assert (now["active"].model, now["active"].chosen, "building" in now) == ("old", True, False)
        await create_pool(filled, "another")
        await register(by_default, space, or_retired=False)
        assert {(each.pool, each.model) for each in await status(filled)} == {("default", "old"), ("another", "new")}
        # A newer version of the model that a pool has is not another model.
        newer = replace(await old.load(), name="newer_8", revision="2")
        await make_space(filled, newer)
        await register(by_default, newer, or_retired=False)
        assert "newer_8" in {each.space for each in await status(filled, "default")}


# Servers ----------------------------------------------------------------------------------------------------------


async def test_a_server_loads_the_model_that_is_being_built_before_recall_needs_it(
    filled: Parts, who: Principal, old: RemoteEmbedder
) -> None:
    async with model(16, "new") as (endpoint, new):

        def die() -> None:
            raise Killed

        with pytest.raises(Killed):
            await reembed(filled, new, Watching(die))
        settings = Settings(embedder=(await old.load()).source)
        embedders = QueryEmbedders(lambda setting: make_embedder(settings, setting), settings.embedder)
        asked = len(endpoint.asked)
        try:
            await eventually(
                lambda: recall(replace(filled, embedders=embedders), who.pool_id, RecallRequest("river")),
                lambda _: len(endpoint.asked) > asked,
            )
        finally:
            await embedders.close()


async def test_a_key_is_for_all_models_of_its_endpoint_and_for_no_other() -> None:
    async with embedding_server() as ours, embedding_server() as other:
        settings = Settings(embedder=f"openai:{ours.url}#one", embedder_api_key=SecretStr("secret"))
        for setting in (f"openai:{ours.url}#one", f"openai:{ours.url}#another", f"openai:{other.url}#one"):
            embedder = make_embedder(settings, setting)
            assert embedder is not None
            await embedder.load()
            await embedder.close()
        assert (ours.keys, other.keys) == ({"Bearer secret"}, {None})
