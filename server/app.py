"""The composition root: settings → database → providers → use cases → routes."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from fastapi import FastAPI
from starlette.requests import Request
from starlette.routing import Route

from esker.server import VERSION
from esker.server.background import beside, keep_up, run_jobs, watch_loop
from esker.server.core.clock import Clock
from esker.server.core.config.settings import Settings
from esker.server.db.database import Database
from esker.server.gateway.gateway import Gateway
from esker.server.providers.breaker import Breakers
from esker.server.providers.embedders import embedder_of, make_embedder
from esker.server.providers.extractive_roles import ExtractiveObserver, ExtractiveReflector
from esker.server.providers.language_models import model_of
from esker.server.providers.model_observer import ModelObserver
from esker.server.providers.model_paraphraser import ModelParaphraser
from esker.server.providers.model_reflector import ModelReflector
from esker.server.providers.paraphrases import Paraphrases
from esker.server.providers.query_embedders import QueryEmbedders
from esker.server.providers.rerankers import make_reranker
from esker.server.providers.reranking import Reranking
from esker.server.providers.roles import Observer, Reflector
from esker.server.providers.text_processes import TextProcesses
from esker.server.rest import (
    audit,
    briefing,
    document,
    forgetting,
    health,
    memories,
    pool_file,
    problems,
    projects,
    reflections,
    sessions,
    spend,
)
from esker.server.rest.access import Access
from esker.server.rest.admission import GATEWAY, Admission, Admitted
from esker.server.rest.body_budget import BodyBudget, BoundedBodies
from esker.server.rest.limits import Places
from esker.server.rest.mcp_route import PATH, McpRoute
from esker.server.rest.metrics import Measured, Metrics
from esker.server.rest.pacing import Pacing
from esker.server.rest.requests import Requests
from esker.server.tools.in_process import backend_of
from esker.server.tools.mcp_later import McpLater
from esker.server.usecases.authenticate import authenticate
from esker.server.usecases.end_leases import ending_abandoned_leases
from esker.server.usecases.parts import Parts
from esker.server.web import live
from esker.server.web.login import LoginLinks
from esker.server.web.page_route import error_page
from esker.server.web.pages import web_routes


def make_parts(settings: Settings, database: Database, clock: Clock | None = None) -> Parts:
    """Choose the observer, reflector, embedder, paraphraser and reranker; the clock is by default the database's.

    Raises Misconfigured.
    """
    processes, breakers = TextProcesses(), Breakers()
    return Parts(
        database=database,
        clock=clock or database.clock,
        settings=settings,
        observer=_observer(settings, processes, breakers),
        reflector=_reflector(settings, processes, breakers),
        embedders=make_embedders(settings),
        spare_observer=ExtractiveObserver(processes),
        spare_reflector=ExtractiveReflector(processes),
        paraphrases=_paraphrases(settings, breakers),
        reranking=_reranking(settings),
        processes=processes,
        breakers=breakers,
    )


def make_app(parts: Parts, local_token: str | None = None, exclude: Callable[[], Sequence[str]] = tuple) -> FastAPI:
    """Return the server: HTTP and MCP in one app, with the job runner and the model loading beside it.

    `local_token` opens it for the user who runs it, without a key. `exclude` returns the patterns of projects and
    directories in which the gateway reads nothing.
    """
    metrics = Metrics(parts.instruments.registry)
    admission = Admission(parts.settings.requests_at_work, parts.settings.requests_waiting)
    bodies = BodyBudget(parts.settings.max_body_bytes)
    tools = McpLater(backend_of(parts))
    gateway = Gateway(parts, exclude)

    app = FastAPI(
        title="Esker",
        version=VERSION,
        lifespan=lambda _: _running(parts, tools, gateway),
        docs_url=None,
        redoc_url=None,
    )
    app.state.parts = parts
    app.state.metrics = metrics
    app.state.unready = []
    app.state.exports = Places(pool_file.EXPORTS, pool_file.EXPORTS_OF_POOL)
    app.state.admission = admission
    app.state.live_pages = Places(live.STREAMS, live.STREAMS_OF_KEY)
    app.state.stopping = asyncio.Event()
    app.state.imports = Pacing(lambda: admission.admitted)
    app.state.login_links = LoginLinks(time.monotonic)
    app.state.bodies = bodies
    problems.install(app)
    document.install(app)
    for routes in (sessions, memories, forgetting, briefing, projects, reflections, pool_file, spend, audit, health):
        # Add the routes themselves: `include_router` would build each of them again on first use.
        app.router.routes.extend(routes.router.routes)
    app.router.routes.extend(web_routes())
    app.router.routes.append(Route(PATH, tools))
    app.router.routes.append(Route(f"{GATEWAY}{{path:path}}", gateway))
    app.add_middleware(McpRoute)
    app.add_middleware(Admitted, admission=admission)
    app.add_middleware(BoundedBodies, budget=bodies, max_body_bytes=parts.settings.max_body_bytes)
    app.add_middleware(
        Access,
        authenticate=partial(authenticate, parts),
        settings=parts.settings,
        local_token=local_token,
        refuse_page=lambda scope, error: error_page(Request(scope), error),
    )
    app.add_middleware(Requests)
    app.add_middleware(Measured, metrics=metrics)
    return app


def unconnected_app() -> FastAPI:
    """Return an app for its routes and its OpenAPI document alone: no setting changes it, and it opens no database."""
    return make_app(make_parts(Settings(embedder="none"), Database("postgresql://localhost")))


@asynccontextmanager
async def _running(parts: Parts, tools: McpLater, gateway: Gateway) -> AsyncGenerator[None]:
    """Open the database, load the models, and run the work beside requests while the block runs."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(parts.database)
        providers = (
            parts.observer,
            parts.reflector,
            parts.embedders,
            parts.paraphrases,
            parts.reranking,
            parts.processes,
        )
        for provider in filter(None, providers):
            stack.push_async_callback(provider.close)
        for loading in filter(None, (parts.embedders, parts.reranking)):
            loading.start()
        stack.push_async_callback(gateway.close)
        await stack.enter_async_context(beside("the tools", tools.run))
        await stack.enter_async_context(ending_abandoned_leases(parts))
        await stack.enter_async_context(beside("the job runner", lambda: run_jobs(parts)))
        await stack.enter_async_context(beside("the watch on the event loop", lambda: watch_loop(parts)))
        await stack.enter_async_context(beside("the upkeep", lambda: keep_up(parts)))
        yield


def make_embedders(settings: Settings) -> QueryEmbedders | None:
    """Return the embedders of questions, or None if embedding is switched off. Raises Misconfigured."""
    if settings.embedder == "none":
        return None
    embedder_of(settings)  # a wrong setting raises at the start, not at the first question
    make = partial(make_embedder, settings)
    return QueryEmbedders(make, settings.embedder, remembered=settings.remembered_queries)


def _paraphrases(settings: Settings, breakers: Breakers) -> Paraphrases | None:
    if not settings.paraphrase:
        return None
    seconds = settings.paraphrase_seconds
    paraphraser = ModelParaphraser(model_of(settings, "paraphraser", seconds, breakers))
    return Paraphrases(paraphraser, seconds, remembered=settings.remembered_paraphrases)


def _reranking(settings: Settings) -> Reranking | None:
    reranker = make_reranker(settings)
    return Reranking(reranker, settings.rerank_seconds) if reranker else None


def _observer(settings: Settings, processes: TextProcesses, breakers: Breakers) -> Observer | None:
    match settings.choice_of("observer"):
        case "off":
            return None
        case "extractive":
            return ExtractiveObserver(processes)
        case _:
            return ModelObserver(model_of(settings, "observer", breakers=breakers))


def _reflector(settings: Settings, processes: TextProcesses, breakers: Breakers) -> Reflector | None:
    match settings.choice_of("reflector"):
        case "off":
            return None
        case "extractive":
            return ExtractiveReflector(processes)
        case _:
            return ModelReflector(model_of(settings, "reflector", breakers=breakers))
