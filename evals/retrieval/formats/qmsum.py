"""QMSum: transcripts of meetings, and questions whose evidence are spans of turns.

JSON Lines, a meeting per line. A meeting is a corpus; the questions are those of `specific_query_list`, and the
evidence of one is every turn in its spans, both ends included. General questions have no spans and are left out.
"""

from pathlib import Path
from typing import Any

from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery, Turn, json_lines, jsonl_files


def read_qmsum(path: Path) -> DataSet:
    """Read a file or all files of a folder. Raises InvalidInput."""
    meetings = [
        _conversation(f"{file.stem}-{number}", meeting)
        for file in jsonl_files(path)
        for number, (_, meeting) in enumerate(json_lines(file), start=1)
    ]
    return DataSet(path.stem if path.is_file() else path.name, tuple(meetings))


def _conversation(name: str, meeting: dict[str, Any]) -> Conversation:
    turns = tuple(
        Turn(id=str(place), speaker=turn["speaker"], text=turn["content"])
        for place, turn in enumerate(meeting["meeting_transcripts"])
    )
    queries = tuple(
        DataSetQuery(id=str(place), text=asked["query"], evidence=_evidence(asked["relevant_text_span"], len(turns)))
        for place, asked in enumerate(meeting["specific_query_list"], start=1)
    )
    return Conversation(name, turns, queries)


def _evidence(spans: list[tuple[str, str]], turns: int) -> tuple[str, ...]:
    places = {place for first, last in spans for place in range(int(first), int(last) + 1)}
    return tuple(str(place) for place in sorted(places) if place < turns)
