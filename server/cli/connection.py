"""How a command finds the server."""

import os

from server.clients.api import SECONDS, Api
from server.core.client_settings import ClientSettings
from server.core.settings import Settings


def connect(timeout: float = SECONDS) -> Api:
    """Return a connection to the server that the environment names. Raises Misconfigured, also for unknown settings.

    `timeout` is how long an answer may take, in seconds.
    """
    Settings.from_environment(os.environ)
    return Api.to(ClientSettings.from_environment(os.environ), timeout)
