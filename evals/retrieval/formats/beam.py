"""BEAM: long chats of a user with an assistant, and probing questions of ten kinds.

A folder for each chat, with chat.json (batches of turns of messages) and probing_questions.json. A chat is a corpus and
a message a turn. Evidence are the message ids in `source_chat_ids`, a list or a dict of lists; `abstention` questions
have no answer. A message without a time anchor has the time of the last one before it.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from esker.server.core.errors import InvalidInput
from evals.input import json_of
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery, Turn

_ABSTENTION = "abstention"


def read_beam(path: Path) -> DataSet:
    """Read a folder of chats. Raises InvalidInput if there are none."""
    folders = sorted((chat.parent for chat in path.glob("*/chat.json")), key=_number)
    if not folders:
        raise InvalidInput(f"There are no chats in {path}.", hint="Name the folder that has the folders of the chats.")
    return DataSet(path.name, tuple(_conversation(folder) for folder in folders))


def _number(folder: Path) -> tuple[int, str]:
    return (int(folder.name) if folder.name.isdecimal() else 0, folder.name)


def _conversation(folder: Path) -> Conversation:
    batches: list[dict[str, Any]] = json_of(folder / "chat.json")
    turns = tuple(_turns(batches))
    probing: dict[str, list[dict[str, Any]]] = json_of(folder / "probing_questions.json")
    there = {turn.id for turn in turns}
    queries = [
        _query(kind, place, asked, there)
        for kind, questions in probing.items()
        for place, asked in enumerate(questions, start=1)
    ]
    return Conversation(folder.name, turns, tuple(queries))


def _turns(batches: list[dict[str, Any]]) -> Iterator[Turn]:
    said_at = None
    for batch in batches:
        for message in (message for turn in batch["turns"] for message in turn):
            anchor = message.get("time_anchor") or None
            said_at = datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC) if anchor else said_at
            yield Turn(id=str(message["id"]), text=message["content"], role=message["role"], said_at=said_at)


def _query(kind: str, place: int, asked: dict[str, Any], there: set[str]) -> DataSetQuery:
    answerable = kind != _ABSTENTION
    cited = _ids(asked.get("source_chat_ids")) if answerable else ()
    evidence = tuple(turn for turn in dict.fromkeys(cited) if turn in there)
    return DataSetQuery(
        id=f"{kind}-{place}", text=asked["question"], evidence=evidence, kind=kind, answerable=answerable
    )


def _ids(cited: Any) -> Iterator[str]:
    """Yield the message ids in a list, or in the lists of a dict."""
    if isinstance(cited, int):
        yield str(cited)
    elif isinstance(cited, list | dict):
        parts = cast("Iterable[Any]", cited.values() if isinstance(cited, dict) else cited)
        for part in parts:
            yield from _ids(part)
