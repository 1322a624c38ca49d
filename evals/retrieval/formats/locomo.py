"""Files in the format of LoCoMo: two people who talk in sittings over months, and questions with the ids of turns.

A JSON list of samples. A sample is a corpus and each `session_<n>` a sitting at `session_<n>_date_time`. Evidence has
ids such as D1:3, sometimes several in one string; ids of unknown turns are left out and counted. Questions of category
5 have no answer.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals.input import json_of
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery, Turn

KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_UNANSWERABLE = 5
_TURN_ID = re.compile(r"D0*(\d+):0*(\d+)")
_RANGE = re.compile(r"D(\d+):(\d+)-D\1:(\d+)")
_SITTING = re.compile(r"session_(\d+)")


def read_locomo(path: Path) -> DataSet:
    """Read a file of samples."""
    samples: list[dict[str, Any]] = json_of(path)
    astray: list[str] = []
    conversations = tuple(
        _conversation(str(sample.get("sample_id", number)), sample, astray)
        for number, sample in enumerate(samples, start=1)
    )
    return DataSet(path.stem, conversations, left_out(astray))


def _conversation(name: str, sample: dict[str, Any], astray: list[str]) -> Conversation:
    turns = tuple(_turns(sample["conversation"]))
    there = {turn.id for turn in turns}
    return Conversation(name, turns, questions_of(sample, there, astray))


def questions_of(sample: dict[str, Any], there: set[str], astray: list[str]) -> tuple[DataSetQuery, ...]:
    """Return the questions of a sample whose turns are `there`, and add citations of unknown turns to `astray`."""
    return tuple(_query(str(place), asked, there, astray) for place, asked in enumerate(sample["qa"], start=1))


def left_out(astray: list[str]) -> tuple[str, ...]:
    """Return the remark about citations of unknown turns, if there are any."""
    return (f"citations of unknown turns, left out: {len(astray)} (such as {', '.join(astray[:5])})",) if astray else ()


def sittings_of(talk: dict[str, Any]) -> list[int]:
    """Return the numbers of the sittings in order."""
    return sorted(int(found[1]) for key in talk if (found := _SITTING.fullmatch(key)))


def picture(turn: dict[str, Any]) -> str:
    """Return the caption of a turn's picture as it follows the text, or nothing."""
    return f" [shows a picture: {turn['blip_caption']}]" if turn.get("blip_caption") else ""


def _turns(talk: dict[str, Any]) -> Iterator[Turn]:
    for sitting in sittings_of(talk):
        said_at = _moment(talk.get(f"session_{sitting}_date_time"))
        for turn in talk[f"session_{sitting}"]:
            yield Turn(
                id=turn["dia_id"],
                speaker=turn["speaker"],
                text=turn["text"] + picture(turn),
                session=str(sitting),
                said_at=said_at,
            )


def _moment(text: str | None) -> datetime | None:
    """Return a moment such as "1:56 pm on 8 May, 2023", read as UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC) if text else None


def _query(name: str, asked: dict[str, Any], there: set[str], astray: list[str]) -> DataSetQuery:
    category = asked["category"]
    answerable = category != _UNANSWERABLE
    evidence = tuple(dict.fromkeys(_cited(asked.get("evidence") or [], there, astray))) if answerable else ()
    kind = KINDS.get(category, str(category))
    return DataSetQuery(id=name, text=asked["question"], evidence=evidence, kind=kind, answerable=answerable)


def _cited(evidence: list[str], there: set[str], astray: list[str]) -> Iterator[str]:
    for text in evidence:
        whole = _RANGE.sub(_turns_between, text)
        # Text that is neither an id nor a separator is a citation of an unknown turn.
        rest = _TURN_ID.sub(" ", whole)
        astray += re.findall(r"[^\s;,.]+", rest)
        for sitting, place in _TURN_ID.findall(whole):
            turn = f"D{int(sitting)}:{int(place)}"
            if turn in there:
                yield turn
            else:
                astray.append(turn)


def _turns_between(found: re.Match[str]) -> str:
    """Return the ids of a range such as D12:3-D12:5, which REALTALK cites."""
    return " ".join(f"D{found[1]}:{place}" for place in range(int(found[2]), int(found[3]) + 1))
