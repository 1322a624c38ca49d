"""Every column that can hold people's words; texts to forget or to mask are searched for in all of them."""

from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from esker.server.core.conversation.records import KNOWN_CLIENTS
from esker.server.core.json_input import Json
from esker.server.core.records import Trust
from esker.server.core.text.phrases import Phrases
from esker.server.db.database import Connection, Database
from esker.server.db.statements import Statements, as_json, for_column

SQL = Statements(Path(__file__).parent / "sql/text_columns.sql")

Key = tuple[Json, ...]
"""The key of a row: the values of the columns that, with the pool, identify it."""
TextShape = Literal["text", "list", "json"]

# The most values that are read at once, and the stored bytes from which on no other value is added.
_AT_ONCE = 500
_BYTES_AT_ONCE = 500_000


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column with people's words; `key` are the columns that, with the pool, identify a row of its table."""

    table: str
    column: str
    key: tuple[str, ...]
    shape: TextShape = "text"

    @property
    def name(self) -> str:
        """The column as it is written in SQL: `messages.text`."""
        return f"{self.table}.{self.column}"

    @property
    def words(self) -> str:
        """The column as a person reads it: `messages (observer text)`."""
        of_table = _WORDS.get(self.table, self.table.replace("_", " "))
        return f"{of_table} ({_WORDS.get(self.name, self.column.replace('_', ' '))})"


MESSAGE_HASHES = "messages (hash)"
"""The name that a person reads for the hashes of messages."""
_WORDS: Mapping[str, str] = {
    "postings": "keyword index",
    "embedding_attempts": "queue of the embedding worker",
    "hidden_calls": "calls of recall_memory",
    "messages.text": "observer text",
    "messages.calls": "tool calls",
    "sessions.cwd": "directory",
    "observation_groups.cwd": "directory",
    "session_events.dedupe_key": "id",
}
"""The names that the documentation uses for tables and columns, where these differ."""

_KEYS: Mapping[str, tuple[str, ...]] = {
    "memories": ("id",),
    "postings": ("tier", "term", "number", "part"),
    "passages": ("id",),
    "messages": ("session_id", "seq"),
    "sessions": ("id",),
    "session_events": ("session_id", "kind", "dedupe_key"),
    "session_usage": ("session_id",),
    "observation_groups": ("id",),
    "packs": ("session_id", "version"),
    "reflections": ("id",),
    "jobs": ("kind", "subject"),
    "embedding_attempts": ("space", "number"),
    "spend": ("day", "model", "purpose"),
    "open_calls": ("id",),
    "audit": ("id",),
    "quarantines": ("id",),
    "former_projects": ("former_project",),
    "hidden_calls": ("place",),
}
_COLUMNS: Mapping[str, Mapping[TextShape, tuple[str, ...]]] = {
    "memories": {"text": ("content", "author", "project", "external_id"), "list": ("tags",)},
    "postings": {"text": ("term",)},
    "passages": {"text": ("text", "project")},
    "messages": {"text": ("external_id", "text"), "json": ("content", "calls")},
    "sessions": {
        "text": (
            "client", "external_id", "project", "cwd", "current_task", "suggested_continuation", "thread_title",
        )
    },
    "session_events": {"text": ("dedupe_key",)},
    "session_usage": {"text": ("last_model",)},
    "observation_groups": {
        "text": (
            "first_external_id", "last_external_id", "cwd", "observer", "current_task", "suggested_continuation",
            "thread_title",
        )
    },
    "packs": {"text": ("text",), "json": ("reasons", "left_out")},
    "reflections": {"text": ("project", "reflector", "reason")},
    "jobs": {"text": ("subject", "last_error"), "json": ("options",)},
    "embedding_attempts": {"text": ("last_error",)},
    "spend": {"text": ("model",)},
    "open_calls": {"text": ("model",)},
    "audit": {"text": ("target",), "json": ("detail",)},
    "quarantines": {"text": ("project", "client", "source")},
    "former_projects": {"text": ("former_project", "project")},
    "hidden_calls": {"json": ("items",)},
}  # fmt: skip

TEXT_COLUMNS: tuple[TextColumn, ...] = tuple(
    TextColumn(table, column, _KEYS[table], shape)
    for table, shapes in _COLUMNS.items()
    for shape, columns in shapes.items()
    for column in columns
)
"""All columns with people's words. A test compares them with the catalog."""

PLACES: tuple[TextColumn, ...] = tuple(
    column for column in TEXT_COLUMNS if column.column in ("project", "former_project", "cwd")
)
"""The columns with the name or the directory of a project, which many rows share."""

IDS: tuple[TextColumn, ...] = tuple(
    column
    for column in TEXT_COLUMNS
    if column.column in ("external_id", "first_external_id", "last_external_id", "dedupe_key")
    and column.table != "memories"
)
"""The columns with ids that clients gave to sessions, messages and events; a memory goes with its id."""
CLIENTS: tuple[TextColumn, ...] = tuple(
    column for column in TEXT_COLUMNS if column.name in ("sessions.client", "quarantines.client", "quarantines.source")
)
"""The columns with the name that a program gave to itself, as it is or as the limit of a quarantine."""
_UNIQUE_WITHIN: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("sessions", "external_id"): ("client",),
    ("sessions", "client"): ("external_id",),
    ("messages", "external_id"): ("session_id",),
    ("session_events", "dedupe_key"): ("session_id", "kind"),
}
"""The columns within whose values such an id or name is unique."""

_IDS = "an id that Esker made"
_CHOICE = "one of a few words, which a constraint or the code lists"
_HASH = "a hash, or its key"
_OPERATOR = "a name or a setting that the operator gave, which no message or memory reaches"

HOLDS_NO_TEXT: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "api_keys.id", "former_packs.session_id", "former_packs.memory_ids", "jobs.session_id", "memories.id",
            "memories.session_id",
            "memories.group_id", "memories.source_ids", "memories.superseded_by", "memories.reflection_id",
            "memory_links.source_id", "memory_links.memory_id", "memory_sources.memory_id",
            "memory_sources.session_id", "memory_sources.group_id", "messages.session_id", "observation_groups.id",
            "observation_groups.session_id", "packs.session_id", "packs.memory_ids", "packs.left_out_ids",
            "passages.id", "passages.session_id", "reflections.id", "reflections.session_id",
            "reflections.input_ids", "reflections.output_ids", "reflections.dropped_ids",
            "session_events.session_id", "session_usage.session_id", "sessions.id", "audit.actor",
            "tombstones.receipt_id", "quarantines.id", "quarantines.session_id", "quarantined_memories.quarantine_id",
            "quarantined_memories.memory_id", "quarantined_memories.superseded_by", "passages.quarantine_id",
            "sessions.quarantine_id", "hidden_calls.session_id", "hidden_calls.shown_ids",
            "session_histories.session_id",
        ),
        _IDS,
    ),
    **dict.fromkeys(
        (
            "audit.action", "embedding_attempts.tier", "embedding_spaces.state", "embeddings.tier",
            "former_packs.reason", "jobs.kind", "jobs.state", "jobs.error_kind", "memories.kind",
            "memories.priority", "memories.category", "memories.trust", "memories.facet", "messages.role",
            "messages.trust", "observation_groups.kind", "observation_groups.refused", "packs.reason",
            "passages.trust", "pools.when_spent", "pools.keep_memories_days", "postings.tier",
            "reflections.scope", "reflections.state",
            "session_events.kind", "spend.purpose", "tier_sizes.tier", "vector_probes.tier", "api_keys.scopes",
            "sessions.timezone", "sessions.kept_by", "open_calls.purpose",
        ),
        _CHOICE,
    ),
    **dict.fromkeys(
        (
            "api_keys.key_hash", "api_keys.prefix", "embeddings.content_hash", "forget_keys.key",
            "tombstones.digest", "former_packs.sha256",
            "memories.content_hash", "messages.content_hash", "packs.sha256", "passages.content_hash",
            "schema_migrations.checksum", "hidden_calls.place", "session_histories.latest",
            "session_histories.answered",
        ),
        _HASH,
    ),
    **dict.fromkeys(
        (
            "api_keys.name", "api_keys.client", "api_keys.project", "embedding_attempts.space",
            "embedding_spaces.name", "embedding_spaces.model",
            "embedding_spaces.revision", "embedding_spaces.prefix", "embedding_spaces.source",
            "embedding_spaces.calibration", "pools.name", "schema_migrations.name", "vector_probes.space",
        ),
        _OPERATOR,
    ),
    "embeddings.embedding": "a vector, which is deleted with its text",
}  # fmt: skip
"""The other columns that are no numbers, times or booleans, and why they hold no words; `embeddings` is any space."""


async def texts_of(database: Database, pool_id: str, column: TextColumn) -> AsyncGenerator[list[tuple[Key, Json]]]:
    """Yield the values of a column with the keys of their rows, some at a time, each time in a transaction of its own.

    So the reader may take its time with large texts, and change the rows that it was given.
    """
    after: Key | None = None
    while True:
        statement = for_column(SQL["next"], column.table, column.column, column.key, is_first=after is None)
        values = {f"after_{name}": value for name, value in zip(column.key, after or (), strict=False)}
        async with database.moment(pool_id) as connection:
            cursor = await connection.execute(statement, {"rows": _AT_ONCE, "bytes": _BYTES_AT_ONCE, **values})
            rows = [(tuple(key), value) for key, value in await cursor.fetchall()]
        if not rows:
            return
        yield rows
        after = rows[-1][0]


async def maybe_containing(connection: Connection, column: TextColumn, phrases: Phrases) -> AsyncGenerator[list[Json]]:
    """Yield the values of a column that may contain one of some phrases, some at a time."""
    async with connection.cursor(f"containing {column.name}") as cursor:
        statement = for_column(SQL["containing"], column.table, column.column)
        await cursor.execute(statement, {"patterns": list(phrases.patterns)})
        while rows := await cursor.fetchmany(_AT_ONCE):
            yield [value for (value,) in rows]


async def replace_texts(connection: Connection, column: TextColumn, values: Mapping[Key, tuple[Json, Json]]) -> None:
    """Replace values of a column (by the keys of their rows: the old and the new value) that nobody has changed."""
    old = as_json({**dict(zip(column.key, key, strict=True)), column.column: was} for key, (was, _) in values.items())
    new = as_json({column.column: becomes} for _, becomes in values.values())
    names = (column.table, column.column, column.key)
    await connection.execute(for_column(SQL["lock"], *names), {"old": old})
    await connection.execute(for_column(SQL["replace"], *names), {"old": old, "new": new})


async def places_saying(connection: Connection, phrases: Phrases) -> dict[TextColumn, list[str]]:
    """Return the places, clients and ids of clients that contain one of some phrases, and could get another name."""
    found: dict[TextColumn, list[str]] = {}
    kept = await kept_clients(connection)
    for column in (*PLACES, *IDS, *CLIENTS):
        statement = for_column(SQL["distinct"], column.table, column.column)
        rows = await (await connection.execute(statement, {"patterns": list(phrases.patterns)})).fetchall()
        said = [value for (value,) in rows if phrases.found_in(value) and (column not in CLIENTS or value not in kept)]
        if said:
            found[column] = said
    return found


async def rename_places(connection: Connection, phrases: Phrases, name: Callable[[str], str]) -> set[str]:
    """Give places, clients and their ids that contain one of some phrases another name; return their former names."""
    said = await places_saying(connection, phrases)
    for column, old in said.items():
        await _rename(connection, column, {each: name(each) for each in old})
    return {each for old in said.values() for each in old}


async def places(connection: Connection) -> set[str]:
    """Return all projects, directories, clients and ids of clients in the pool."""
    found: set[str] = set()
    for column in (*PLACES, *IDS, *CLIENTS):
        statement = for_column(SQL["distinct"], column.table, column.column)
        found.update(name for (name,) in await (await connection.execute(statement, {"patterns": ["%"]})).fetchall())
    return found


async def give_names(connection: Connection, names: Mapping[str, str]) -> None:
    """Give projects, directories, clients and their ids other names."""
    for column in (*PLACES, *IDS):
        await _rename(connection, column, names)
    kept = await kept_clients(connection)
    for column in CLIENTS:
        await _rename(connection, column, {name: new for name, new in names.items() if name not in kept})


async def give_turns_names(connection: Connection, names: Mapping[str, str]) -> None:
    """Give turns other ids."""
    for column in IDS if names else ():
        await _rename(connection, column, names)


async def kept_clients(connection: Connection) -> frozenset[str]:
    """Return the clients that keep their names: those that Esker knows, and those to which keys are bound.

    With them are the kinds of trust, which may stand in the place of a client as the source of a quarantine.
    """
    bound = await (await connection.execute(SQL["bound_clients"])).fetchall()
    return KNOWN_CLIENTS.union(get_args(Trust), (str(client) for (client,) in bound))


async def _rename(connection: Connection, column: TextColumn, names: Mapping[str, str]) -> None:
    values = {"old": list(names), "new": list(names.values())}
    if key := _UNIQUE_WITHIN.get((column.table, column.column)):
        # An id that was forgotten, allowed and given again gets the same name as before.
        await connection.execute(for_column(SQL["make_way"], column.table, column.column, key), values)
    await connection.execute(for_column(SQL["rename"], column.table, column.column), values)
