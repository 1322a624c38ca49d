"""How a command finds the server."""

import os

from esker.server.agents.api import SECONDS, Api
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.settings import Settings


def connect(timeout: float = SECONDS) -> Api:
    """Return a connection to the server that the environment names. Raises Misconfigured, also for unknown settings.

    `timeout` is how long an answer may take, in seconds.
    """
    Settings.from_environment(os.environ)
    return Api.to(ClientSettings.from_environment(os.environ), timeout)
