"""Connects a command to the server, and reads its answers."""

import os
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from esker.server.agents.api import SECONDS, Api
from esker.server.core.config.client_settings import ClientSettings
from esker.server.core.config.settings import Settings
from esker.server.core.errors import Unavailable

Answer = TypeVar("Answer")


def connect(timeout: float = SECONDS) -> Api:
    """Return a connection to the server that the environment names. Raises Misconfigured, also for unknown settings.

    `timeout` is how long an answer may take, in seconds.
    """
    Settings.from_environment(os.environ)
    return Api.to(ClientSettings.from_environment(os.environ), timeout)


def read_as(adapter: TypeAdapter[Answer], answer: object) -> Answer:
    """Return a server's answer, validated. Raises Unavailable for one of another shape."""
    try:
        return adapter.validate_python(answer)
    except ValidationError as error:
        raise Unavailable(
            "The server's answer does not have the expected form; it is another program, or another version of Esker.",
            hint="Check ESKER_URL, and that the server and this command have the same version (`esker --version`).",
        ) from error
