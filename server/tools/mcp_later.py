"""The tools over HTTP, loaded at their first call: the library of MCP takes a third of the time of a start."""

import asyncio
from contextlib import AbstractAsyncContextManager

from starlette.types import ASGIApp, Receive, Scope, Send

from esker.server.tools.backend import Backend


class McpLater:
    """The app of the tools. It answers while `run` runs."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._wanted = asyncio.Event()
        self._app: asyncio.Future[ASGIApp] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a call, the first one after the library is loaded."""
        self._wanted.set()
        app = await asyncio.shield(self._loaded())
        await app(scope, receive, send)

    async def run(self) -> None:
        """Load the library when a call comes, and keep its sessions until cancelled. If it fails, it can run again."""
        await self._wanted.wait()
        app, running = await asyncio.to_thread(_load, self._backend)
        # The library begins and ends its sessions in one task.
        async with running:
            self._loaded().set_result(app)
            try:
                await asyncio.Event().wait()
            finally:
                self._app = None

    def _loaded(self) -> "asyncio.Future[ASGIApp]":
        if self._app is None:
            self._app = asyncio.get_running_loop().create_future()
        return self._app


def _load(backend: Backend) -> tuple[ASGIApp, AbstractAsyncContextManager[None]]:
    """Return the app of the tools, and the block in which it answers."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - see above

    from esker.server.tools.mcp_server import make_mcp  # noqa: PLC0415

    mcp = make_mcp(backend)
    # Hosts, origins and keys are checked once, in front of everything.
    app = mcp.streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return app, mcp.session_manager.run()
