"""Every command refuses an invalid file, with the place of the error."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from esker.server.core.errors import InvalidInput
from evals.__main__ import app
from evals.case_files import read_cases
from evals.reflection.cases import ReflectionCase

ROW = {"id": "r1", "at": "2026-03-02T09:00:00Z", "text": "Deploys go\u2028to hel1-04."}
CASE = {"case": "one", "language": "en", "about": "A row.", "domain": "coding", "rows": [ROW, ROW | {"id": "r2"}]}


@pytest.mark.parametrize(
    "command",
    [
        "score FILE",
        "score FILE --suite observation",
        "reflection --cases FILE",
        "observation --cases FILE",
        "pack --cases FILE",
        "poison --cases FILE",
        "mutations --cases FILE",
        "show FILE",
        "compare FILE FILE",
        "retrieval FILE",
        "retrieval FILE --format locomo",
        "retrieval FILE --format qmsum",
        "retrieval FILE --format realtalk",
        "retrieval FILE --format madial-en",
        "retrieval FOLDER --format beam",
        "persona FOLDER",
        "chain FOLDER",
        "chain FOLDER --rules FILE",
    ],
)
@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe\x00binary",
        b"no json\n",
        b"[]\n",
        b"{}\n",
        b'{"suite": 1, "cases": 2, "data": 3}',
        b'{"suite": "a", "cases": [{"id": "a", "figures": []}], "data": {}}',
        b"[" * 5_000,
    ],
    ids=["not UTF-8", "not JSON", "a list", "an object", "other types", "other parts", "nested"],
)
def test_an_invalid_file_is_refused_before_a_server_starts(
    command: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("file.jsonl", "1/chat.json", "1/probing_questions.json", "metadata.json", "ground_truth.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    monkeypatch.setattr("evals.suites.connected", None)
    monkeypatch.setattr("evals.retrieval.command.connected", None)
    words = [
        word.replace("FILE", f"{tmp_path}/file.jsonl").replace("FOLDER", str(tmp_path)) for word in command.split()
    ]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, InvalidInput), done.exception


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text(
        json.dumps(CASE | {"gold": {}}, ensure_ascii=False) + "\n\n", encoding="utf-8"
    )
    [case] = read_cases(tmp_path / "cases.jsonl", ReflectionCase)
    assert case.rows[0].text == ROW["text"]


def test_an_invalid_line_is_named(tmp_path: Path) -> None:
    good, bad = (json.dumps(CASE | {"gold": {}, "language": language}) for language in ("en", "la"))
    (tmp_path / "cases.jsonl").write_text(f"{good}\n{bad}\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"cases\.jsonl, line 2: language must be "):
        read_cases(tmp_path / "cases.jsonl", ReflectionCase)
