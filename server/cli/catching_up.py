"""A server that starts takes what hooks could not send while it was away."""

import asyncio
import logging
import os
from urllib.parse import urlsplit

from esker.server.agents.api import Api
from esker.server.agents.sending import deliver
from esker.server.agents.spool import Spool
from esker.server.core.config.client_settings import ClientSettings
from esker.server.rest.access import is_loopback

log = logging.getLogger(__name__)


async def catch_up(started: asyncio.Event, url: str) -> None:
    """Take what hooks of this machine keep for the server at `url`, as soon as it has started.

    Where there are keys, that is what was kept under the ESKER_KEY of the server's own environment; the rest is sent by
    the next hook.
    """
    await started.wait()
    await asyncio.to_thread(_replay, url)


def _replay(url: str) -> None:
    settings = ClientSettings.from_environment(os.environ)
    # Hooks may know this server by another name than it does itself, such as localhost.
    for name in {url, settings.url.rstrip("/")} if _is_here(settings.url, url) else {url}:
        done = Spool(settings.state_dir / "spool", name, settings.key).replay(Api(name, settings.key), deliver)
        if done.sent or done.refused:
            log.warning("took %d parcels of hooks; %d refused, %d left", done.sent, done.refused, done.waiting)


def _is_here(named: str, url: str) -> bool:
    """Tell whether two addresses lead to one port of this machine."""
    try:
        there, here = urlsplit(named), urlsplit(url)
        return there.port == here.port and is_loopback(there.hostname or "") and is_loopback(here.hostname or "")
    except ValueError:
        return False
