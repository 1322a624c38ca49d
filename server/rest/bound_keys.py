"""The requests of bound keys: a route is closed to keys of a project until it is listed here."""

import re

from esker.server.core.errors import Forbidden
from esker.server.core.records import Principal

# Each route sees the database only through a view of the key's project, or does not read a pool.
_OF_A_PROJECT = re.compile(
    r"""
      (?:GET|POST)\ /v1/sessions
    | GET\ /v1/sessions/[^/]+(?:/(?:messages|pack|memory))?
    | POST\ /v1/sessions/[^/]+/(?:messages|observe|reflect|events|context|usage)
    | (?:GET|POST)\ /v1/memories
    | POST\ /v1/memories/batch
    | (?:GET|PATCH)\ /v1/memories/[^/]+
    | GET\ /v1/memories/[^/]+/sources
    | POST\ /v1/(?:recall|login-links)
    | GET\ /v1/reflections(?:/[^/]+(?:/diff)?)?
    | POST\ /v1/reflections/[^/]+/undo
    | GET\ /v1/(?:briefing|projects|savings|status|key)
    | GET\ /(?:openapi\.json|docs)
    | GET\ /(?:ui/(?:search|memories|bulk|sessions|reflections|operations|events))?
    | GET\ /ui/(?:memories|reflections)/[^/]+
    | GET\ /ui/sessions/[^/]+(?:/pack(?:/changes)?)?
    | POST\ /ui/memories/[^/]+/(?:edit|pin|priority)
    | POST\ /ui/bulk/change
    | POST\ /ui/reflections/[^/]+/undo
    | [A-Z]+\ /(?:mcp|gateway/.+)
    """,
    re.VERBOSE,
)
# An import writes sessions of any client.
_OF_ALL_CLIENTS = "/v1/import"


def check_binding(principal: Principal, method: str, path: str) -> None:
    """Raise Forbidden for a request that reaches beyond the project or the client of a key."""
    if principal.project is not None:
        asked = f"{'GET' if method == 'HEAD' else method} {path}"
        if not _OF_A_PROJECT.fullmatch(asked):
            raise Forbidden(
                f"This key is bound to the project {principal.project!r}, and this request may reach beyond it.",
                hint=f"Use a key of pool {principal.pool_name} that is not bound to a project.",
            )
    if principal.client is not None and path == _OF_ALL_CLIENTS:
        raise Forbidden(
            f"This key is bound to the client {principal.client!r}, and an import writes sessions of all clients.",
            hint=f"Use a key of pool {principal.pool_name} that is not bound to a client.",
        )
