"""MADial-Bench: a child's archive of dated events, and dialogues that should recall some of them.

The folder `data` has one archive and one file of dialogues for each language. The archive is the corpus; its events are
unrelated, so each is a sitting. A query is the dialogue before the first turn in which the assistant should remember
(`test-turn`), without the names of the speakers; its evidence are the events in `relevant-id`.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from esker.server.core.errors import InvalidInput
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery, Turn, json_lines

_FILES = {"en": "en/MADial-Bench-en", "zh": "ch/MADial-Bench-zh"}
_SPEAKER = re.compile(r"^<[^>]+>\s*[:：]\s*")
_FIRST_LINE = 1  # line 0 is <BOD>


def read_madial_en(path: Path) -> DataSet:
    """Read the English half. Raises InvalidInput if it is missing."""
    return _read(path, "en")


def read_madial_zh(path: Path) -> DataSet:
    """Read the Chinese half. Raises InvalidInput if it is missing."""
    return _read(path, "zh")


def _read(path: Path, language: str) -> DataSet:
    folder = path / "data" if (path / "data").is_dir() else path
    archive = folder / f"{_FILES[language]}-memory.json"
    dialogues = folder / f"{_FILES[language]}-dialogue.json"
    if not (archive.is_file() and dialogues.is_file()):
        raise InvalidInput(f"{archive} or {dialogues.name} is missing.", hint="Name the folder of MADial-Bench.")
    turns = tuple(_turn(name, event) for _, line in json_lines(archive) for name, event in line.items())
    there = {turn.id for turn in turns}
    queries = tuple(_query(place, told, there) for place, (_, told) in enumerate(json_lines(dialogues), start=1))
    name = f"madial-{language}"
    return DataSet(name, (Conversation(name, turns, queries),))


def _turn(name: str, event: dict[str, Any]) -> Turn:
    day = datetime.strptime(event["time"], "%Y-%m-%d").replace(tzinfo=UTC)
    return Turn(id=name, text=event["event"], session=name, said_at=day)


def _query(place: int, told: dict[str, Any], there: set[str]) -> DataSetQuery:
    before = told["dialogue"][_FIRST_LINE : told["test-turn"][0]]
    evidence = tuple(str(event) for event in told["relevant-id"] if str(event) in there)
    return DataSetQuery(id=str(place), text=" ".join(map(_spoken, before)), evidence=evidence)


def _spoken(line: str) -> str:
    """Return the text of a line, without its speaker and its quotation marks."""
    return _SPEAKER.sub("", line.strip()).strip('"“”')
