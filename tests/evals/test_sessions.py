"""Labelled sessions: the form of labels, the verdicts on facts and rows, and a run on a real server."""

import json
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal

from esker.server.core.errors import InvalidInput
from esker.server.core.records import Priority
from esker.server.db.embedded import Cluster
from evals.case_files import Language
from evals.scoring.meaning import Meaning
from evals.sessions.alone import not_alone
from evals.sessions.command import sessions
from evals.sessions.judging import SessionRow, judge_facts, judge_rows
from evals.sessions.labels import LABELS, SessionLabels, read_label_file, read_labels
from evals.sessions.transcripts import labelled_sessions
from evals.showing import show_case
from tests.support.suites import serve_here

SAID = [
    ("user", "Always release Lighthouse on Tuesdays, never on Fridays."),
    ("assistant", "Understood. The release job of Lighthouse is limited to Tuesdays."),
    ("user", "Thanks a lot!"),
]
LABELLED = """\
# A made-up session about the releases of Lighthouse.
transcript = "harbour/lighthouse.jsonl"

[[facts]]
fact = "Lighthouse is released on Tuesdays, never on Fridays."
keys = ["lighthouse", "tuesday"]
messages = [1, 2]

[[facts]]
fact = "Lighthouse uses PostgreSQL 17."
keys = ["lighthouse", "postgres"]
messages = [1]

[junk]
chatter = [3]
"""


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    """A folder with one label file."""
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "lighthouse.toml").write_text(LABELLED, encoding="utf-8")
    return tmp_path / "labels"


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """The transcript of these labels, below a folder of transcripts."""
    lines = [
        {"type": role, "sessionId": "s1", "uuid": f"u{number}", "timestamp": f"2026-03-02T09:0{number}:00Z",
         "cwd": "/home/ann/lighthouse", "message": {"role": role, "content": text}}
        for number, (role, text) in enumerate(SAID, start=1)
    ]  # fmt: skip
    file = tmp_path / "transcripts" / "harbour" / "lighthouse.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return file


# Labels --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", sorted(LABELS.glob("*.toml")), ids=lambda file: file.stem)
def test_each_of_our_label_files_is_valid_and_its_sentences_match_their_keys(file: Path) -> None:
    labels = read_label_file(file)
    assert len(labels.facts) >= 10
    assert all(fact.is_stated_by(fact.fact) for fact in (*labels.facts, *labels.topics))


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('"tuesday"]', '"monday"]', r"facts 1 \('Lighthouse is .*does not match the key 'monday': change the key"),
        ('"tuesday"]', '"tues("]', r"facts 1 .*keys\.1: 'tues\(' is not a regular expression .* mend it"),
        ("messages = [1, 2]", 'messages = ["1"]', r"facts 1 .*messages\.0 must be a whole number"),
        ("messages = [1, 2]", "messages = [0]", r"facts 1 .*messages\.0 must be at least 1"),
        ("messages = [1, 2]", "", r"facts 1 .*messages is missing"),
        ("messages = [1]", "message = [1]", r"facts 2 .*messages is missing"),
        ("chatter = [3]", "chatter = [2]", r"the file: message 2 is in junk\.chatter and has a fact: remove one"),
        ("chatter = [3]", "small_talk = [3]", r"the file: junk\.small_talk is unknown"),
        ("Lighthouse uses PostgreSQL 17.", "Lighthouse uses a database.", "facts 2 .* match the key 'postgres'"),
        ("[junk]", '[[wrong]]\nwhy = "No."\nkeys = ["postgres"]\n[junk]', r"would count as wrong \('No\.'\): narrow"),
        ("# A made-up", "A made-up", "is not TOML"),
        ("# A made-up session about the releases of Lighthouse.\n", "", "must begin with a comment"),
    ],
)  # fmt: skip
def test_an_invalid_label_is_reported_with_its_file_and_entry(
    labels: Path, before: str, after: str, problem: str
) -> None:
    assert before in LABELLED
    (labels / "lighthouse.toml").write_text(LABELLED.replace(before, after), encoding="utf-8")
    with pytest.raises(InvalidInput, match=rf"lighthouse\.toml,? .*{problem}") as raised:
        read_labels(labels)
    assert raised.value.hint == "docs/evals.md describes the form of a label file."


def test_a_transcript_is_found_from_any_folder_above_it(labels: Path, transcript: Path) -> None:
    read = read_labels(labels)
    for path in (transcript, transcript.parent, transcript.parent.parent):
        [session] = labelled_sessions(path, read)
        assert (session.labels.case, len(session.transcript.entries)) == ("lighthouse", len(SAID))


def test_a_path_without_a_labelled_transcript_is_explained(labels: Path, transcript: Path) -> None:
    read = read_labels(labels)
    with pytest.raises(InvalidInput, match="absent does not exist") as raised:
        labelled_sessions(transcript.parent / "absent", read)
    assert "Transcripts are not part of this repository" in (raised.value.hint or "")
    with pytest.raises(InvalidInput, match="No labelled transcript is at or below") as raised:
        labelled_sessions(labels, read)
    assert "harbour/lighthouse.jsonl" in (raised.value.hint or "")


def test_labels_of_a_longer_transcript_are_refused(labels: Path, transcript: Path) -> None:
    transcript.write_text("\n".join(transcript.read_text().splitlines()[:2]), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"lighthouse\.toml names message 3, and lighthouse\.jsonl has 2"):
        labelled_sessions(transcript, read_labels(labels))


# Verdicts ------------------------------------------------------------------------------------------------------------


def labelled(**more: Any) -> SessionLabels:
    """Return labels of a session."""
    fact = {"fact": "The cache holds 500 entries.", "keys": ["cache", "500"], "messages": [4]}
    made = {"case": "c", "about": "A.", "transcript": "t", "facts": [fact], **more}
    return SessionLabels.model_validate(made)


def row(text: str, *messages: int, name: str = "r1", priority: Priority = "medium") -> SessionRow:
    """Return a row."""
    return SessionRow(name, text, priority, messages)


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("Outcome: the cache now holds 500 entries", "kept"),
        ("Changed a.py — asked: let the cache hold 500 entries", "only asked"),
        ("The cache — asked: hold 500 entries", "only asked"),
        ("The cache is fast.", "missed"),
    ],
)
def test_a_fact_that_only_a_request_names_is_not_kept(text: str, fate: str) -> None:
    [verdict] = judge_facts(labelled(), [row(text)])
    assert verdict.fate == fate


def test_a_fact_is_stated_by_one_row_not_by_two_together() -> None:
    [verdict] = judge_facts(labelled(), [row("The cache is new."), row("500 entries are held.", name="r2")])
    assert verdict.fate == "missed"


def test_a_row_without_a_fact_is_junk_only_if_all_its_messages_are() -> None:
    labels = labelled(
        junk={"orders": [2], "noise": [3]},
        topics=[{"fact": "Port 8080 is taken.", "keys": ["8080"], "messages": [5]}],
    )
    texts = {
        "junk": row("User asked: run the linter", 2, 3),
        "unlabelled": row("Lint found one warning in b.py", 2, 9),
        "unmatched": row("User said: hm, the size of it", 2, 4),
        "topic": row("Port 8080 was taken by nginx", 2),
        "fact": row("The cache holds 500 entries", 2),
    }
    verdicts = judge_rows(labels, list(texts.values()))
    assert [verdict.worth for verdict in verdicts] == list(texts)
    assert [verdict.worth for verdict in verdicts if verdict.junk] == ["junk"]
    assert [verdict.worth for verdict in verdicts if verdict.is_useful] == ["topic", "fact"]


def test_a_row_that_repeats_another_one_is_junk() -> None:
    same = "The cache holds 500 entries per worker process"
    rows = [
        row(same, 4),
        row(f"User said: {same}.", 4, name="r2"),
        row("cache entries per worker", 4, name="r3"),
        row("Changed cache.py and queue.py — asked: let it hold more", 5, name="r4"),
        row("Changed cache.py and queue.py — asked: log each eviction", 6, name="r5"),
    ]
    assert [verdict.junk for verdict in judge_rows(labelled(), rows)] == [None, "repeats r1", "repeats r1", None, None]


def test_a_wrong_statement_counts_only_in_a_rows_own_words_and_without_its_exceptions() -> None:
    labels = labelled(wrong=[{"why": "It was raised.", "keys": ["cache", "100"], "unless": ["was|raised"]}])
    rows = [
        row("The cache holds 100 entries", 4),
        row("The cache was raised from 100 to 500 entries", 4),
        row("User agreed: yes, more (in answer to: “The cache holds 100 entries, more?”)", 4),
        row("Changed c.py — asked: why does the cache hold 100 entries", 4),
    ]
    assert [verdict.wrong for verdict in judge_rows(labels, rows)] == ["It was raised.", None, None, None]


POINTING: list[tuple[Language, str]] = [
    ("en", "User preference: It should not spell those out."),
    ("en", "User decision: make it 45"),
    ("en", "User said: that is fine with me"),
    ("en", "User decision: both"),
    ("en", "User decision: the second one"),
    ("en", "User correction: no, that's wrong, change it"),
    ("en", "Outcome: Done — it's now in your Applications folder."),
    ("en", "User decision: take option B"),
    ("en", "User said: but i'm not sure if the move is possible"),
    ("en", "User decision: i actually want to move those files"),
    ("en", "User said: i feel like this is one big mess"),
    ("en", "User agreed: please do (in answer to: “Shall I?”)"),
    ("de", "User decision: Das ist so in Ordnung."),
    ("de", "User said: mach es bitte nochmal"),
    ("es", "User decision: eso está bien"),
    ("zh", "User decision: 它应该更快"),
    ("ja", "User decision: それにします"),
]
CLEAR: list[tuple[Language, str]] = [
    ("en", "User preference: The importer must not spell numbers out; it writes digits."),
    ("en", "User decision: set max_retries to 45"),
    ("en", "User decision: both the API and the worker use Postgres"),
    ("en", "User agreed: the second one (in answer to: “Redis or Valkey for the checkout cache?”)"),
    ("en", "This project is built with Bazel."),
    ("en", "The parser drops empty files, and those files are listed at the end."),
    ("en", "It looks like the proxy drops long headers."),
    ("de", "User decision: Die Rechnungen gehen an das Archiv, und es behält sie zehn Jahre."),
    ("es", "User decision: los informes se guardan en el servidor de Madrid"),
    ("zh", "User decision: 部署脚本必须先备份数据库"),
    ("ja", "User decision: デプロイの前にデータベースを保存する"),
]


@pytest.mark.parametrize(("language", "text"), POINTING)
def test_a_row_without_a_subject_or_pointing_back_is_not_understood_alone(language: Language, text: str) -> None:
    assert not_alone(text, language)


@pytest.mark.parametrize(("language", "text"), CLEAR)
def test_a_row_that_names_its_subject_is_understood_alone(language: Language, text: str) -> None:
    assert not_alone(text, language) is None


def test_only_rows_of_high_and_medium_priority_must_be_understood_alone() -> None:
    rows = [row("User said: it is fine", 4, priority=priority) for priority in ("high", "medium", "low")]
    assert [bool(verdict.not_alone) for verdict in judge_rows(labelled(), rows)] == [True, True, False]


# A run ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reflect", [False, True])
def test_a_labelled_session_is_sent_observed_and_scored(
    loop: BlockingPortal, cluster: Cluster, meaning: Meaning, monkeypatch: pytest.MonkeyPatch, labels: Path,
    transcript: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], reflect: bool,
) -> None:  # fmt: skip
    serve_here(loop, cluster, meaning, monkeypatch)
    sessions(transcript.parent, labels, reflect, json_file=tmp_path / "run.json")
    told = json.loads((tmp_path / "run.json").read_text())
    [case] = told["cases"]
    assert (case["id"], case["groups"], told["run"]["reflector"]) == (
        "lighthouse",
        ["claude-code"],
        "extractive" if reflect else None,
    )
    assert (case["counts"]["kept"], case["counts"]["in pack"]) == ([1, 2], [1, 2])
    assert case["counts"]["pack useful"][0] > 0
    [kept, missed, *_] = case["lines"]
    assert kept.startswith("kept in r")
    assert missed.startswith("missed: Lighthouse uses PostgreSQL 17.")
    # A row leads to the messages that it was made of, also after a reflection.
    assert all(set(each["sources"]) <= {"message 1", "message 2", "message 3"} for each in case["left"])
    assert any("message 1" in each["sources"] for each in case["left"])
    assert "facts kept" in capsys.readouterr().out
    show_case(tmp_path / "run.json", "lighthouse")
    shown = capsys.readouterr().out
    assert "the transcript harbour/lighthouse.jsonl" in shown
    assert "Lighthouse uses PostgreSQL 17. [messages 1]; keys lighthouse, postgres" in shown
