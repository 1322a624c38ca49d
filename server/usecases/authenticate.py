"""Pools and their keys: which pool a request belongs to, and what it may do there."""

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta

from esker.server.core import api_key
from esker.server.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthorized, UnknownKey
from esker.server.core.ids import new_id
from esker.server.core.json_input import Json
from esker.server.core.records import ListedKey, ListedPool, Pool, Principal
from esker.server.core.redaction import redact_name
from esker.server.store import audit, keys, pools, projects
from esker.server.usecases.find_projects import renamed_projects
from esker.server.usecases.name_project import stored_name
from esker.server.usecases.parts import Parts

DEFAULT_POOL = "default"
SCOPES = ("read", "write", "forget", "admin")
USUAL_SCOPES = ("read", "write", "forget")
"""The scopes of a new key: all that concerns its own pool."""
PROJECT_SCOPES = ("read", "write")
"""The scopes that a key of a project can have, and has unless told otherwise."""
_POOL_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just created. `key` is the secret itself, which is shown only now."""

    id: str
    name: str
    pool: str
    scopes: list[str]
    client: str | None
    project: str | None
    key: str


async def authenticate(parts: Parts, key: str | None, *, is_owner: bool) -> Principal:
    """Return the caller of a request.

    The owner of the server needs no key as long as none was ever created, and gets the default pool. Raises
    UnknownKey for a key that is not valid, Unauthorized without one.
    """
    if key is not None and not is_owner:
        return await _of_key(parts, key)
    pool, required = await keys.keyless(parts.database, DEFAULT_POOL)
    if required:
        raise Unauthorized
    if not is_owner:
        raise Unauthorized(
            "Only the user who runs this server may use it without a key, and this request is not known to be theirs.",
            hint="Send 'Authorization: Bearer <token>' with the token in the file `token` of the server's data"
            " directory. For other users and machines, `esker key create NAME` makes a key.",
        )
    if pool is None:
        raise _missing(DEFAULT_POOL)
    return Principal(pool.id, pool.name, "local", frozenset(SCOPES))


async def _of_key(parts: Parts, key: str) -> Principal:
    if api_key.is_mistyped(key):
        raise UnknownKey("This key is mistyped or cut off: its checksum is wrong.")
    now = parts.clock()
    found = await keys.find(parts.database, _hash(key), now)
    if found is None:
        raise UnknownKey
    if found.last_used_on != now.date():
        async with parts.database.tenant(found.pool_id) as connection:
            await keys.note_use(connection, found.key_id, now)
    return Principal(found.pool_id, found.pool_name, found.key_id, frozenset(found.scopes), found.client, found.project)


def check_scope(principal: Principal, scope: str) -> None:
    """Raise Forbidden if a caller's key does not have a scope."""
    if scope not in principal.scopes:
        wanted = ",".join(each for each in SCOPES if each in principal.scopes | {scope})
        hint = f"`esker key create NAME --pool {principal.pool_name} --scopes {wanted}` creates one that does."
        raise Forbidden(f"This key does not have the scope '{scope}'.", hint=hint)


async def keys_required(parts: Parts) -> bool:
    """Whether a key was ever created on this server."""
    return await keys.any_required(parts.database)


async def require_pool(parts: Parts, name: str) -> Pool:
    """Return the pool called `name`. Raises NotFound."""
    pool = await pools.by_name(parts.database, name)
    if pool is None:
        raise _missing(name)
    return pool


def _missing(pool: str) -> NotFound:
    return NotFound(f"There is no pool {pool!r}.", hint="`esker pool create NAME` makes one.")


async def create_pool(parts: Parts, name: str) -> Pool:
    """Create a pool. Raises InvalidInput for a malformed name, Conflict for a name that is taken."""
    if not _POOL_NAME.fullmatch(name):
        raise InvalidInput("A pool name must be 1 to 63 of a-z, 0-9, '-' and '_', and begin with a letter or a digit.")
    pool = await pools.create(parts.database, name)
    if pool is None:
        raise Conflict(f"A pool {name!r} exists already.")
    return pool


async def list_pools(parts: Parts) -> list[ListedPool]:
    """Return all pools by name."""
    return await pools.listed(parts.database)


async def create_key(
    parts: Parts,
    *,
    name: str,
    pool: str,
    scopes: list[str] | None = None,
    client: str | None = None,
    project: str | None = None,
    days: int | None = None,
) -> NewKey:
    """Create a key for a pool; from the first one on, every request needs a key. Raises InvalidInput, NotFound.

    `scopes` defaults to the usual ones. A key of a `client` writes only sessions of that one; a key of a `project` sees
    and writes nothing of other projects. It expires in so many `days` of the database's time, or never.
    """
    client, project = _bound_client(client), _bound_project(project)
    wanted = _scopes(scopes, project)
    found = await require_pool(parts, pool)
    now = parts.clock()
    async with parts.database.tenant(found.id) as connection:
        if project:
            # The name may be a former one, whose rows have another; no project is renamed meanwhile.
            await projects.lock(connection)
            project = (await renamed_projects(connection, [project])).get(project, project)
        made = NewKey(new_id("key", now), name, pool, wanted, client, project, api_key.new_key())
        await keys.insert(
            connection,
            key_id=made.id,
            name=name,
            prefix=made.key[:8],
            key_hash=_hash(made.key),
            scopes=wanted,
            client=client,
            project=project,
            now=now,
            expires=now + timedelta(days=days) if days else None,
        )
        # The audit trail contains no words, so it says only that names are bound; the list of keys shows them.
        bound: list[Json] = [name for name, value in (("client", client), ("project", project)) if value]
        await audit.insert(connection, "operator", "key.create", made.id, {"bound": bound} if bound else {}, now)
    return made


def _bound_client(name: str | None) -> str | None:
    """Return the client of a new key as sessions store it. Raises InvalidInput."""
    if name is None:
        return None
    if not (client := redact_name(name.strip())):
        raise InvalidInput("A key is bound to a client by its name, such as codex.")
    return client


def _bound_project(name: str | None) -> str | None:
    """Return the project of a new key as rows store it. Raises InvalidInput."""
    if name is None:
        return None
    if not (project := stored_name(name)):
        raise InvalidInput("A key is bound to a project by its name, such as acme/shop.")
    return project


def _scopes(wanted: list[str] | None, project: str | None) -> list[str]:
    """Return the scopes of a new key. Raises InvalidInput."""
    if wanted is None:
        return list(PROJECT_SCOPES if project else USUAL_SCOPES)
    if not wanted or not set(wanted) <= set(SCOPES):
        raise InvalidInput(f"scopes must be some of {', '.join(SCOPES)}.")
    if project and not set(wanted) <= set(PROJECT_SCOPES):
        raise InvalidInput(
            f"A key of a project can have the scopes {' and '.join(PROJECT_SCOPES)}: forgetting and administration"
            " reach over the whole pool.",
            hint="Make another key for those, without --project.",
        )
    return wanted


async def list_keys(parts: Parts, pool: str) -> list[ListedKey]:
    """Return the keys of a pool, without their secrets. Raises NotFound."""
    found = await require_pool(parts, pool)
    async with parts.database.tenant(found.id) as connection:
        return await keys.listed(connection)


async def revoke_key(parts: Parts, *, key: str, pool: str) -> list[str]:
    """Revoke the keys of a pool with this id or name; return their ids. Raises NotFound without such a key."""
    found = await require_pool(parts, pool)
    now = parts.clock()
    async with parts.database.tenant(found.id) as connection:
        revoked = await keys.revoke(connection, key, now)
        for key_id in revoked:
            await audit.insert(connection, "operator", "key.revoke", key_id, {}, now)
    if not revoked:
        raise NotFound(f"Pool {pool!r} has no key {key!r}, or it is revoked already.")
    return revoked


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
