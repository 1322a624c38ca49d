"""Readers of data sets: our format, written by hand, and published ones."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from esker.server.core.errors import InvalidInput
from evals.retrieval.dataset import Conversation, DataSet, DataSetQuery, Turn, checked, part_of, read_simple
from evals.retrieval.formats.beam import read_beam
from evals.retrieval.formats.locomo import read_locomo
from evals.retrieval.formats.madial import read_madial_en, read_madial_zh
from evals.retrieval.formats.qmsum import read_qmsum
from evals.retrieval.formats.realtalk import read_realtalk

TRIP = """\
{"conversation": "trip"}
{"turn": "t1", "speaker": "Ann", "text": "We fly on 3 May.", "said_at": "2026-03-01T10:00:00Z", "session": "monday"}

{"turn": "t2", "role": "assistant", "text": "Noted."}
{"query": "q1", "text": "When do we fly?", "evidence": ["t1"], "kind": "date", "asked_at": "2026-04-01T00:00:00Z"}
{"conversation": "work"}
{"turn": "t1", "text": "Deploy on Fridays."}
{"query": "q1", "text": "Who is the queen?", "answerable": false}
"""


def written(path: Path, *values: Any) -> Path:
    """Write values as JSON Lines, and create their folder; return the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def dumped(path: Path, value: Any) -> Path:
    """Write one value as JSON, and create its folder; return the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


# Ours ----------------------------------------------------------------------------------------------------------------


def test_a_file_written_by_hand_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(TRIP, encoding="utf-8")
    data = checked(read_simple(tmp_path / "mine.jsonl"))
    trip, work = data.conversations
    assert (data.name, trip.id, work.id, data.turns, data.queries) == ("mine", "trip", "work", 3, 2)
    assert trip.turns[0].words == "Ann: We fly on 3 May."
    assert (trip.turns[0].role, trip.turns[0].session) == ("user", "monday")
    assert trip.turns[0].said_at == datetime(2026, 3, 1, 10, tzinfo=UTC)
    assert (trip.turns[1].words, trip.turns[1].role) == ("Noted.", "assistant")
    assert trip.queries[0].evidence == ("t1",)
    assert trip.queries[0].asked_at == datetime(2026, 4, 1, tzinfo=UTC)
    assert (work.queries[0].answerable, work.queries[0].evidence) == (False, ())


def test_a_folder_has_several_files_and_a_file_without_a_heading_is_one_conversation(tmp_path: Path) -> None:
    for name in ("b", "a"):
        written(tmp_path / f"{name}.jsonl", {"turn": "1", "text": "x"}, {"query": "1", "text": "?", "evidence": ["1"]})
    assert [conversation.id for conversation in checked(read_simple(tmp_path)).conversations] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"turn": "1", "txt": "x"}', "mine.jsonl, line 1: text is missing"),
        ('{"turn": "1", "text": "x", "speeker": "Ann"}', "line 1: speeker is unknown"),
        ('{"turn": "1", "text": "x", "role": "boss"}', "line 1: role"),
        ('{"note": "1"}', "line 1 is not a conversation, a turn or a query"),
        ("[1]", "line 1 is not an object"),
        ("{", "line 1 is not JSON"),
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "mine.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InvalidInput, match=problem):
        read_simple(tmp_path / "mine.jsonl")


ONE = Turn(id="1", text="x")


@pytest.mark.parametrize(
    ("turns", "query", "problem"),
    [
        ([ONE, ONE], DataSetQuery(id="q", text="?", evidence=("1",)), "Two turns in conversation 'c' have the id '1'"),
        ([ONE], DataSetQuery(id="q", text="?", evidence=("2",)), "cites '2', which is not a turn in it"),
        ([ONE], DataSetQuery(id="q", text="?", evidence=("1",), answerable=False), "is marked as unanswerable"),
        ([ONE], None, "no queries"),
    ],
)
def test_inconsistent_data_is_refused(turns: list[Turn], query: DataSetQuery | None, problem: str) -> None:
    data = DataSet("mine", (Conversation("c", tuple(turns), (query,) if query else ()),))
    with pytest.raises(InvalidInput, match=problem):
        checked(data)


def test_the_hash_depends_on_the_content_not_on_its_formatting(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(TRIP, encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(TRIP.replace('", "', '",   "'), encoding="utf-8")
    (tmp_path / "c.jsonl").write_text(TRIP.replace("3 May", "4 May"), encoding="utf-8")
    a, b, c = (read_simple(tmp_path / f"{name}.jsonl").sha256() for name in "abc")
    assert a == b
    assert a != c


def test_a_seed_draws_the_same_sample_and_keeps_every_turn() -> None:
    queries = tuple(DataSetQuery(id=str(n), text="?", evidence=("1",)) for n in range(50))
    data = DataSet("mine", (Conversation("a", (ONE,), queries), Conversation("b", (ONE,), queries)))
    drawn = part_of(data, conversations=None, queries=10, seed=1)
    assert (drawn.queries, drawn.turns) == (10, 2)
    assert drawn == part_of(data, conversations=None, queries=10, seed=1)
    assert drawn != part_of(data, conversations=None, queries=10, seed=2)
    assert part_of(data, conversations=1, queries=None, seed=1).conversations == data.conversations[:1]


# BEAM ----------------------------------------------------------------------------------------------------------------


def _message(place: int, text: str, anchor: str | None = None) -> dict[str, Any]:
    return {"role": "user" if place % 2 == 0 else "assistant", "id": place, "time_anchor": anchor, "content": text}


def test_a_beam_chat_has_its_messages_dates_and_evidence_of_both_shapes(tmp_path: Path) -> None:
    batches = [
        {"turns": [[_message(0, "Hello", "March-15-2024"), _message(1, "Hi")]]},
        {"turns": [[_message(2, "Now Redis", "April-02-2024")], [_message(3, "Good")]]},
    ]
    questions = {
        "abstention": [{"question": "Who?"}],
        "knowledge_update": [{"question": "What now?", "source_chat_ids": {"original": [0], "updated": [2, 99]}}],
        "event_ordering": [{"question": "In which order?", "source_chat_ids": [2, 0, 2]}],
        "summarization": [{"question": "All?", "source_chat_ids": []}],
    }
    for name in ("10", "9"):
        dumped(tmp_path / name / "chat.json", batches)
        dumped(tmp_path / name / "probing_questions.json", questions)
    data = checked(read_beam(tmp_path))
    assert [conversation.id for conversation in data.conversations] == ["9", "10"]
    chat = data.conversations[0]
    assert [(turn.id, turn.role) for turn in chat.turns] == [
        ("0", "user"),
        ("1", "assistant"),
        ("2", "user"),
        ("3", "assistant"),
    ]
    assert [turn.said_at.date().isoformat() for turn in chat.turns if turn.said_at] == [
        "2024-03-15",
        "2024-03-15",
        "2024-04-02",
        "2024-04-02",
    ]
    assert [(query.kind, query.evidence, query.answerable) for query in chat.queries] == [
        ("abstention", (), False),
        ("knowledge_update", ("0", "2"), True),
        ("event_ordering", ("2", "0"), True),
        ("summarization", (), True),
    ]


# MADial --------------------------------------------------------------------------------------------------------------


def test_a_madial_query_is_the_dialogue_before_the_first_turn_to_test(tmp_path: Path) -> None:
    archive = [{"7": {"time": "2023-12-25", "event": "Bart danced."}}, {"9": {"time": "2024-01-02", "event": "Fell."}}]
    told = ["<BOD>\n", '<Bart>: "Hey, "magic"!"\n', '<Assistant>: "Great."\n', '<Bart>: "Nervous."\n', "<EOD>\n"]
    dialogue = {"dialogue": told, "test-turn": [3, 4], "relevant-id": [9, 7, 500]}
    chinese = {"dialogue": ["<BOD>\n", '<Bart>:"你好！"\n', '<Assistant>:"好"\n'], "test-turn": [2], "relevant-id": [7]}
    for folder, name, asked in (("en", "en", dialogue), ("ch", "zh", chinese)):
        written(tmp_path / f"data/{folder}/MADial-Bench-{name}-memory.json", *archive)
        written(tmp_path / f"data/{folder}/MADial-Bench-{name}-dialogue.json", asked)
    [corpus] = checked(read_madial_en(tmp_path)).conversations
    assert [(turn.id, turn.words, turn.session) for turn in corpus.turns] == [
        ("7", "Bart danced.", "7"),
        ("9", "Fell.", "9"),
    ]
    assert corpus.turns[0].said_at == datetime(2023, 12, 25, tzinfo=UTC)
    [query] = corpus.queries
    assert query.text == 'Hey, "magic"! Great.'
    assert query.evidence == ("9", "7")
    [corpus] = checked(read_madial_zh(tmp_path)).conversations
    assert corpus.queries[0].text == "你好！"


# QMSum ---------------------------------------------------------------------------------------------------------------


def test_a_qmsum_query_has_every_turn_of_its_spans(tmp_path: Path) -> None:
    meeting = {
        "meeting_transcripts": [{"speaker": f"S{n}", "content": f"text {n}"} for n in range(6)],
        "general_query_list": [{"query": "All?"}],
        "specific_query_list": [{"query": "Which?", "relevant_text_span": [["1", "2"], ["2", "3"], ["5", "9"]]}],
    }
    data = checked(read_qmsum(written(tmp_path / "test.jsonl", meeting, meeting)))
    assert [conversation.id for conversation in data.conversations] == ["test-1", "test-2"]
    assert data.conversations[0].turns[2].words == "S2: text 2"
    assert [query.evidence for query in data.conversations[0].queries] == [("1", "2", "3", "5")]


# LoCoMo --------------------------------------------------------------------------------------------------------------

LOCOMO = [
    {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Mia",
            "speaker_b": "Tom",
            "session_2": [{"speaker": "Mia", "dia_id": "D2:1", "text": "The kiln broke."}],
            "session_2_date_time": "9:05 am on 20 June, 2023",
            "session_10_date_time": "1:00 pm on 1 July, 2023",
            "session_1": [
                {"speaker": "Tom", "dia_id": "D1:1", "text": "I adopted a whippet."},
                {"speaker": "Mia", "dia_id": "D1:2", "text": "Look!", "blip_caption": "a blue vase"},
            ],
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
        "qa": [
            {"question": "Which dog?", "answer": "A whippet", "evidence": ["D1:1"], "category": 4},
            {"question": "What did Mia make?", "answer": "", "evidence": ["D1:2; D02:01", "D1:2"], "category": 1},
            {"question": "When?", "answer": "", "evidence": ["D9:9", "D:11:26", "D", "D2:1 D1:1"], "category": 2},
            {"question": "Which cat?", "adversarial_answer": "a tabby", "evidence": ["D1:1"], "category": 5},
            {"question": "Would Mia sing?", "answer": "", "evidence": [], "category": 3},
        ],
    }
]


def test_a_locomo_sample_has_its_sittings_and_pictures(tmp_path: Path) -> None:
    [sample] = checked(read_locomo(dumped(tmp_path / "talks.json", LOCOMO))).conversations
    assert sample.id == "conv-1"
    assert [(turn.id, turn.session, turn.words) for turn in sample.turns] == [
        ("D1:1", "1", "Tom: I adopted a whippet."),
        ("D1:2", "1", "Mia: Look! [shows a picture: a blue vase]"),
        ("D2:1", "2", "Mia: The kiln broke."),
    ]
    assert sample.turns[0].said_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert sample.turns[2].said_at == datetime(2023, 6, 20, 9, 5, tzinfo=UTC)


def test_locomo_evidence_is_read_in_every_spelling_and_unknown_turns_are_counted(tmp_path: Path) -> None:
    data = checked(read_locomo(dumped(tmp_path / "talks.json", LOCOMO)))
    [sample] = data.conversations
    assert [(query.kind, query.evidence, query.answerable) for query in sample.queries] == [
        ("single-hop", ("D1:1",), True),
        ("multi-hop", ("D1:2", "D2:1"), True),
        ("temporal", ("D2:1", "D1:1"), True),
        ("adversarial", (), False),
        ("open-domain", (), True),
    ]
    assert data.remarks == ("citations of unknown turns, left out: 3 (such as D9:9, D:11:26, D)",)


# REALTALK ------------------------------------------------------------------------------------------------------------

REALTALK = {
    "name": {"speaker_1": "Mia", "speaker_2": "Tom"},
    "session_2": [
        {"speaker": "Mia", "dia_id": f"D2:{n}", "clean_text": f"Tile {n}.", "date_time": f"02.01.2024, 09:0{n}:30"}
        for n in (1, 2, 4)
    ],
    "session_2_date_time": "02.01.2024, 09:00:00",
    "session_1": [
        {
            "speaker": "Tom",
            "dia_id": "D1:1",
            "clean_text": "Look!",
            "date_time": "29.12.2023, 22:42:04",
            "blip_caption": "a blue vase",
        }
    ],
    "events_session_1": {},
    "qa": [
        {"question": "Which tiles?", "answer": "", "evidence": ["D2:1-D2:3", "D1:1."], "category": 1},
        {"question": "Which vase?", "answer": "", "evidence": ["D1:1;D2:4"], "category": 3},
    ],
}


def test_a_realtalk_chat_has_the_time_of_each_message(tmp_path: Path) -> None:
    dumped(tmp_path / "Chat_2.json", REALTALK)
    dumped(tmp_path / "Chat_1.json", {**REALTALK, "qa": []})
    first, second = checked(read_realtalk(tmp_path)).conversations
    assert (first.id, second.id) == ("Chat_1", "Chat_2")
    assert [(turn.id, turn.session, turn.words) for turn in second.turns[:2]] == [
        ("D1:1", "1", "Tom: Look! [shows a picture: a blue vase]"),
        ("D2:1", "2", "Mia: Tile 1."),
    ]
    assert [turn.said_at for turn in second.turns[:2]] == [
        datetime(2023, 12, 29, 22, 42, 4, tzinfo=UTC),
        datetime(2024, 1, 2, 9, 1, 30, tzinfo=UTC),
    ]


def test_a_range_of_realtalk_cites_each_of_its_turns_that_is_there(tmp_path: Path) -> None:
    data = read_realtalk(dumped(tmp_path / "Chat_1.json", REALTALK))
    [chat] = data.conversations
    assert [query.evidence for query in chat.queries] == [("D2:1", "D2:2", "D1:1"), ("D1:1", "D2:4")]
    assert data.remarks == ("citations of unknown turns, left out: 1 (such as D2:3)",)
