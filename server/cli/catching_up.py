"""Catching up: a starting server takes the parcels that hooks spooled while it was away."""

import asyncio
import logging
import os
from urllib.parse import urlsplit

from esker.server.agents.api import Api
from esker.server.agents.sending import deliver_allowed
from esker.server.agents.spool import Spool
from esker.server.core.config.client_settings import ClientSettings
from esker.server.rest.access import is_loopback

log = logging.getLogger(__name__)


async def catch_up(started: asyncio.Event, url: str, local_token: str | None) -> None:
    """Take the parcels that hooks of this machine keep for the server at `url`, as soon as it has started.

    If the server has keys, those are the parcels spooled with the ESKER_KEY of the server's own environment; the next
    hook sends the rest.
    """
    await started.wait()
    await asyncio.to_thread(_replay, url, local_token)


def _replay(url: str, local_token: str | None) -> None:
    settings = ClientSettings.from_environment(os.environ)
    key = settings.key or local_token
    allowed = deliver_allowed(settings.exclude)
    # Hooks may use another name for this server than it does itself, such as localhost.
    for name in {url, settings.url.rstrip("/")} if _is_same_server(settings.url, url) else {url}:
        done = Spool(settings.state_dir / "spool", name, settings.key).replay(Api(name, key), allowed)
        if done.sent or done.refused:
            log.warning(
                "replayed the spool: %d parcels sent, %d refused, %d waiting", done.sent, done.refused, done.waiting
            )


def _is_same_server(configured: str, url: str) -> bool:
    """Return whether two addresses mean the same port of this machine."""
    try:
        one, other = urlsplit(configured), urlsplit(url)
        return one.port == other.port and is_loopback(one.hostname or "") and is_loopback(other.hostname or "")
    except ValueError:
        return False
