"""Files in the format of REALTALK: messages of two real people over three weeks, with questions like those of LoCoMo.

A folder of JSON files. A file is a corpus, each `session_<n>` a sitting, and each message has its own time.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals.input import json_of
from evals.retrieval.dataset import Conversation, DataSet, Turn
from evals.retrieval.formats.locomo import left_out, picture, questions_of, sittings_of


def read_realtalk(path: Path) -> DataSet:
    """Read a folder of chats in the order of their names, or one chat."""
    astray: list[str] = []
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    conversations = tuple(_conversation(file.stem, json_of(file), astray) for file in files)
    return DataSet(path.stem, conversations, left_out(astray))


def _conversation(name: str, sample: dict[str, Any], astray: list[str]) -> Conversation:
    turns = tuple(_turns(sample))
    return Conversation(name, turns, questions_of(sample, {turn.id for turn in turns}, astray))


def _turns(sample: dict[str, Any]) -> Iterator[Turn]:
    for sitting in sittings_of(sample):
        for turn in sample[f"session_{sitting}"]:
            yield Turn(
                id=turn["dia_id"],
                speaker=turn["speaker"],
                text=turn["clean_text"] + picture(turn),
                session=str(sitting),
                said_at=_moment(turn["date_time"]),
            )


def _moment(text: str) -> datetime:
    """Return a moment such as "29.12.2023, 00:51:12", read as UTC."""
    return datetime.strptime(text, "%d.%m.%Y, %H:%M:%S").replace(tzinfo=UTC)
