"""A data set: conversations, questions about them, and the turns that answer each; and our simple format.

The format is JSON Lines that a person can write by hand; docs/evals.md describes it.
"""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from esker.server.core.conversation.records import Role
from esker.server.core.errors import InvalidInput
from evals.input import first_problem, lines_of


class _DataSetLine(BaseModel):
    """A line of a file, which refuses unknown fields: a misspelt one would change the meaning."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Turn(_DataSetLine):
    """One message. `session` is its sitting within the conversation; turns of a sitting are neighbours.

    `speaker` is the name of a person, who counts as a user.
    """

    id: str
    text: str
    role: Role = "user"
    speaker: str | None = None
    session: str = ""
    said_at: datetime | None = None

    @property
    def words(self) -> str:
        """The stored and searched text, after the name of its speaker if known."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


class DataSetQuery(_DataSetLine):
    """A question; `evidence` are the ids of the turns that answer it.

    An answerable question without evidence has unknown evidence, and counts for abstention only. With `asked_at` recall
    answers as of that time.
    """

    id: str
    text: str
    evidence: tuple[str, ...] = ()
    kind: str | None = None
    asked_at: datetime | None = None
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Conversation:
    """A corpus: its questions search its own turns only."""

    id: str
    turns: tuple[Turn, ...]
    queries: tuple[DataSetQuery, ...]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Conversations; `remarks` say how much of the files was left out or cut."""

    name: str
    conversations: tuple[Conversation, ...]
    remarks: tuple[str, ...] = ()

    @property
    def turns(self) -> int:
        """How many turns there are."""
        return sum(len(conversation.turns) for conversation in self.conversations)

    @property
    def queries(self) -> int:
        """How many questions there are."""
        return sum(len(conversation.queries) for conversation in self.conversations)

    def sha256(self) -> str:
        """Return the hash of the content, which does not depend on its formatting."""
        digest = hashlib.sha256()
        for conversation in self.conversations:
            digest.update(json.dumps(conversation.id).encode())
            for record in (*conversation.turns, *conversation.queries):
                digest.update(record.model_dump_json().encode())
        return digest.hexdigest()


def checked(data: DataSet) -> DataSet:
    """Return the data set. Raises InvalidInput for duplicate ids and unknown evidence."""
    _once((conversation.id for conversation in data.conversations), "conversations")
    for conversation in data.conversations:
        place = f"conversation {conversation.id!r}"
        _once((turn.id for turn in conversation.turns), f"turns in {place}")
        _once((query.id for query in conversation.queries), f"queries in {place}")
        there = {turn.id for turn in conversation.turns}
        for query in conversation.queries:
            if missing := sorted(set(query.evidence) - there):
                raise InvalidInput(f"Query {query.id!r} in {place} cites {missing[0]!r}, which is not a turn in it.")
            if query.evidence and not query.answerable:
                raise InvalidInput(f"Query {query.id!r} in {place} has evidence and is marked as unanswerable.")
    if not data.queries:
        raise InvalidInput(f"There are no queries in {data.name}.")
    return data


def _once(ids: Iterable[str], what: str) -> None:
    if again := [found for found, count in Counter(ids).items() if count > 1]:
        raise InvalidInput(f"Two {what} have the id {again[0]!r}.")


def part_of(data: DataSet, *, conversations: int | None, queries: int | None, seed: int) -> DataSet:
    """Return the first `conversations` of a data set with a sample of `queries`, in order."""
    kept = data.conversations[:conversations]
    if queries is not None:
        places = [(conversation.id, query.id) for conversation in kept for query in conversation.queries]
        drawn = set(random.Random(seed).sample(places, min(queries, len(places))))  # noqa: S311 - not a secret
        kept = tuple(_only(conversation, drawn) for conversation in kept)
    return replace(data, conversations=kept)


def _only(conversation: Conversation, drawn: set[tuple[str, str]]) -> Conversation:
    chosen = tuple(query for query in conversation.queries if (conversation.id, query.id) in drawn)
    return replace(conversation, queries=chosen)


# The simple format ---------------------------------------------------------------------------------------------------


def read_simple(path: Path) -> DataSet:
    """Read a file or all .jsonl files of a folder. Raises InvalidInput with the file and the line."""
    conversations = [conversation for file in jsonl_files(path) for conversation in _read_file(file)]
    return DataSet(path.stem, tuple(conversations))


def jsonl_files(path: Path) -> list[Path]:
    """Return the file, or the .jsonl files of the folder by name. Raises InvalidInput if there are none."""
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].is_file():
        raise InvalidInput(f"There is no data in {path}.", hint="Name a .jsonl file, or a folder that has some.")
    return files


def json_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the place and the object of each line that is not blank. Raises InvalidInput."""
    found: list[tuple[str, dict[str, Any]]] = []
    for place, line in lines_of(path):
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{place} is not JSON: {error}.") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{place} is not an object.")
        found.append((place, cast("dict[str, Any]", value)))
    return found


def _read_file(path: Path) -> list[Conversation]:
    """Return the conversations of a file; lines before the first heading belong to one named after the file."""
    found: dict[str, tuple[list[Turn], list[DataSetQuery]]] = {}
    name = path.stem
    for place, line in json_lines(path):
        try:
            match line:
                case {"conversation": str(name), **rest} if not rest:
                    found.setdefault(name, ([], []))
                case {"turn": turn_id, **rest}:
                    found.setdefault(name, ([], []))[0].append(Turn.model_validate({"id": turn_id, **rest}))
                case {"query": query_id, **rest}:
                    found.setdefault(name, ([], []))[1].append(DataSetQuery.model_validate({"id": query_id, **rest}))
                case _:
                    raise InvalidInput(
                        f"{place} is not a conversation, a turn or a query.",
                        hint='A line is {"conversation": …}, {"turn": …, "text": …} or {"query": …, "text": …}.',
                    )
        except ValidationError as error:
            raise InvalidInput(f"{place}: {first_problem(error)}.") from error
    return [Conversation(key, tuple(turns), tuple(queries)) for key, (turns, queries) in found.items()]
