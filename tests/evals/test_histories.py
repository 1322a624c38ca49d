"""Published histories: read by fixed rules, sent in order, and asked about before and after reflecting."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal

from esker.server.core.errors import InvalidInput
from esker.server.db.embedded import Cluster
from evals.histories.cases import messages
from evals.histories.command import chain, persona
from evals.histories.cri_persona import read_persona
from evals.histories.evidence import Evidence
from evals.histories.niceeval import read_chain
from evals.observation.cases import CaseMessage
from evals.scoring.meaning import Meaning
from tests.support.suites import serve_here

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)

SAID = [
    ("s1", "2026-01-05T09:00:00", "My name is Ines Marrow, I'm 52, and I always keep bees, two hives in Lund."),
    ("s1", "2026-01-05T09:01:00", "How do I descale a kettle?"),
    (
        "s2",
        "2026-02-01T09:00:00",
        "Decision: we leave Lund, the new flat in Bergen is signed. We moved to Bergen today.",
    ),
    ("s1", "2026-02-01T09:02:00", "Sounds fine."),
    ("s1", "2026-02-01T09:03:00", "Decision: the bees stay with my brother."),
]
"""The utterances by sitting; the first sitting is resumed."""

TRUTH: dict[str, Any] = {
    "final_profile": {
        "name": {"value": "Ines Marrow", "query_topic": "name"},
        "age": {"value": "52", "query_topic": "age"},
        "hobbies": {"value": ["keeps bees (two hives)", "runs 5-10 km"], "query_topic": "hobbies"},
        "city": {"value": "Bergen, Norway", "query_topic": "city"},
        "traits": {"value": "patient, fond of Lund, Sweden", "query_topic": "traits"},
    },
    "changes": [
        {"fact": "city", "old_value": "a house in Lund", "new_value": "Bergen, Norway", "query_topic": "city",
         "key_messages": [5]},
        {"fact": "mood", "old_value": "gloomy", "new_value": "cheerful", "query_topic": "mood", "key_messages": [5]},
    ],
    "temporal_facts": [{"value": "Bergen, Norway", "valid_from": "2026-02-01"}],
    "noise_examples": [{"text": "How do I descale a kettle?"}, {"text": "Sounds fine."}],
    "signal_examples": [{"text": "I always keep bees, two hives in Lund."}],
    "query_relevance_pairs": [{"query": "Lund or Bergen?", "expected_relevant_facts": ["Bergen", "once in Lund"]}],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A persona of a few utterances, each with an answer."""
    lines: list[dict[str, Any]] = []
    for place, (session, at, text) in enumerate(SAID):
        for role, content in (("user", text), ("assistant", "I see.")):
            number = len(lines) + 1
            when = at.replace(":00", f":{number:02}", 1) if role == "assistant" else at
            lines.append({"message_id": number, "role": role, "content": content, "timestamp": when, "day": place})
            lines[-1]["session_id"] = session
    (tmp_path / "conversations.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "ground_truth.json").write_text(json.dumps(TRUTH), encoding="utf-8")
    (tmp_path / "metadata.json").write_text('{"dataset_id": "ines", "description": "Bees."}', encoding="utf-8")
    return tmp_path


def test_ground_truth_becomes_gold_by_the_rules_of_the_page(folder: Path) -> None:
    case = read_persona(folder)
    assert [(sitting.id, len(sitting.messages)) for sitting in case.sittings] == [("s1", 4), ("s2", 2), ("s1", 4)]
    # A profile is split into its parts, but a place name is not; a range is not exact; a changed value occurs once.
    assert [(atom.fact, atom.exact) for atom in case.gold.keep] == [
        ("name: Ines Marrow", ("Ines Marrow",)),
        ("age: 52", ("52",)),
        ("hobbies: keeps bees (two hives)", ()),
        ("hobbies: runs 5-10 km", ()),
        ("traits: patient", ()),
        ("traits: fond of Lund, Sweden", ("Lund",)),
    ]
    # A change whose old value occurs in no message has nothing that could be found.
    [change] = case.gold.replaced
    assert [(old.fact, old.exact, old.rows) for old in change.old] == [("city: a house in Lund", ("Lund",), ("m5",))]
    assert (change.new.fact, change.new.exact, change.new.dated) == (
        "city: Bergen, Norway",
        ("Bergen",),
        date(2026, 2, 1),
    )
    assert [(atom.fact, atom.exact, atom.rows) for atom in case.gold.noise] == [
        ("How do I descale a kettle?", (), ("m3",)),
        ("Sounds fine.", ("Sounds fine.",), ("m7",)),
    ]
    assert [(atom.ask, atom.fact, atom.exact) for atom in case.asked] == [
        ("Lund or Bergen?", "Bergen", ("Bergen",)),
        ("Lund or Bergen?", "once in Lund", ("Lund",)),
    ]
    assert [*case.gold.faults({each.id: each.text for each in messages(case.sittings)}, "en")] == []


def test_only_names_and_numbers_of_messages_are_exact() -> None:
    said = [
        CaseMessage(
            id="m1", role="user", at=AT, content="D3 and B12, for $368,000. Rivera Design is in Stowe, 5 km away."
        )
    ]
    evidence = Evidence(said)
    assert evidence.exact("takes D3/B12/omega-3") == ("D3", "B12")
    assert evidence.exact("Rivera Design, New Stowe, bought for $368K") == ("Rivera Design",)
    assert evidence.exact("5-10 km or 5 km") == ("5",)
    assert evidence.exact("5-10 km") == ()
    assert evidence.exact("$368,000") == ("$368,000",)


def test_a_folder_that_is_not_a_persona_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_persona(tmp_path)
    for name in ("metadata", "ground_truth"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")
    (tmp_path / "conversations.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is not a CRI persona"):
        read_persona(tmp_path)


@pytest.fixture
def served(loop: BlockingPortal, cluster: Cluster, meaning: Meaning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers for the suites."""
    serve_here(loop, cluster, meaning, monkeypatch)


@pytest.mark.usefixtures("served")
def test_a_persona_is_lived_through_and_scored_before_and_after(folder: Path, tmp_path: Path) -> None:
    persona(folder, json_file=tmp_path / "run.json")
    [case] = json.loads((tmp_path / "run.json").read_text())["cases"]
    assert case["counts"]["found before"] == [2, 2]
    assert case["counts"]["signals before"] == [1, 1]
    assert {"retention before", "retention", "found after", "in pack after", "signals after", "noise gone"} <= {
        *case["counts"]
    }
    # All rows lead to messages, also those of a reflection.
    assert case["left"]
    assert any(row["sources"] == ["m9"] and "brother" in row["text"] for row in case["left"])
    assert case["counts"]["sources"][0] == case["counts"]["sources"][1]


@pytest.mark.usefixtures("served")
def test_a_persona_without_questions_has_no_figures_of_them(folder: Path, tmp_path: Path) -> None:
    nothing = {name: type(its)() for name, its in TRUTH.items()}
    (folder / "ground_truth.json").write_text(json.dumps(nothing), encoding="utf-8")
    persona(folder, json_file=tmp_path / "run.json")
    told = json.loads((tmp_path / "run.json").read_text())
    assert told["cases"][0]["left"]
    assert not {name for name in told["figures"] if name.startswith(("found", "in pack", "signals", "retention"))}
    assert told["figures"]["sources"]["of"]


# The chain -----------------------------------------------------------------------------------------------------------


def write_task(folder: Path, task: str, *prompts: str) -> None:
    """Write a transcript: prompts, a tool call for each, and an answer."""
    events: list[dict[str, Any]] = [{"type": "error", "message": "hooks"}]
    for number, prompt in enumerate(prompts):
        call = {"kind": "tool", "name": "shell", "input": {"command": f"make {number}"}}
        events += [
            {"type": "message", "role": "user", "text": prompt},
            {"type": "operation.started", "operationId": f"i{number}", "operation": call},
            {"type": "operation.finished", "operationId": f"i{number}", "output": {"output": "ok", "exit_code": 1},
             "status": "failed"},
            {"type": "message", "role": "assistant", "text": "Done."},
        ]  # fmt: skip
    (folder / "runs" / task).mkdir(parents=True)
    (folder / "runs" / task / "events.json").write_text(json.dumps(events), encoding="utf-8")
    told = {"startedAt": "2026-01-05T09:00:00Z", "durationMs": 60_000}
    (folder / "runs" / task / "result.json").write_text(json.dumps(told), encoding="utf-8")


@pytest.fixture
def tasks(tmp_path: Path) -> tuple[Path, Path]:
    """A chain of two tasks, and its rules."""
    write_task(tmp_path, "01-first", "Add a ledger command.", "Always round every amount up to the next 25 cents.")
    write_task(tmp_path, "02-second", "Add a yearly ledger that rounds amounts by our rule.", "Now with --json.")
    rounding = {"rule": "R1", "turn": 2, "fact": "Every amount is rounded up to the next 25 cents.", "exact": ["25"]}
    rules = {"chain": "ledger", "about": "Rounding.", "sets": {"01-first": [rounding]}, "needs": {"02-second": ["R1"]}}
    (tmp_path / "rules.json").write_text(json.dumps(rules), encoding="utf-8")
    return tmp_path, tmp_path / "rules.json"


def test_a_transcript_is_read_with_its_tools_and_times(tasks: tuple[Path, Path]) -> None:
    name, [first, second] = read_chain(*tasks)
    assert name == "ledger"
    assert first.sitting
    told = first.sitting.messages
    assert [each.role for each in told] == ["user", "assistant", "user", "assistant"] * 2
    assert told[1].content == [{"type": "tool_use", "id": "i0", "name": "shell", "input": {"command": "make 0"}}]
    assert told[2].content == [{"type": "tool_result", "tool_use_id": "i0", "content": "ok", "is_error": True}]
    assert sorted(each.at for each in told) == [each.at for each in told]
    assert told[0].at >= datetime(2026, 1, 5, 9, tzinfo=UTC)
    [rule] = first.sets
    assert rule.rows == (told[4].id,)
    assert (second.prompt, second.needs, second.sitting) == (
        "Add a yearly ledger that rounds amounts by our rule.",
        (rule,),
        None,
    )


@pytest.mark.usefixtures("served")
def test_a_rule_of_one_task_is_found_by_the_prompt_of_another(tasks: tuple[Path, Path], tmp_path: Path) -> None:
    chain(*tasks, json_file=tmp_path / "run.json")
    first, second = json.loads((tmp_path / "run.json").read_text())["cases"]
    assert first["counts"] == {"kept before": [1, 1], "kept after": [1, 1]}
    places = ("recall@5", "recall@10", "in pack")
    assert second["counts"] == {f"{place} {when}": [1, 1] for when in ("before", "after") for place in places}


@pytest.mark.usefixtures("served")
def test_a_rule_that_was_not_stated_is_not_found(tasks: tuple[Path, Path], tmp_path: Path) -> None:
    folder, rules = tasks
    rules.write_text(rules.read_text().replace("25", "40"), encoding="utf-8")
    events = folder / "runs" / "01-first" / "events.json"
    events.write_text(events.read_text().replace("round every amount up to the next 25 cents", "use 40 columns"))
    chain(folder, rules, reflecting=False, json_file=tmp_path / "run.json")
    _, second = json.loads((tmp_path / "run.json").read_text())["cases"]
    assert second["counts"] == {f"{place} before": [0, 1] for place in ("recall@5", "recall@10", "in pack")}


@pytest.mark.usefixtures("served")
def test_a_task_without_rules_has_no_figures(tasks: tuple[Path, Path], tmp_path: Path) -> None:
    folder, rules = tasks
    told = json.loads(rules.read_text())
    told["sets"]["01-first"].append(told["sets"]["01-first"][0] | {"rule": "R2"})
    told["needs"]["02-second"] = []
    rules.write_text(json.dumps(told), encoding="utf-8")
    chain(folder, rules, json_file=tmp_path / "run.json")
    first, second = json.loads((tmp_path / "run.json").read_text())["cases"]
    assert (first["counts"], second["counts"]) == ({"kept before": [2, 2], "kept after": [2, 2]}, {})


def test_a_chain_without_its_transcripts_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no 01-entry-stats/events\.json"):
        read_chain(tmp_path)


# Published data ------------------------------------------------------------------------------------------------------


@pytest.fixture
def histories(request: pytest.FixtureRequest) -> Path:
    """The folder of published histories; its tests are skipped if it is missing."""
    folder = Path(str(request.config.getoption("--data"))) / "reflection"
    if not folder.is_dir():
        pytest.skip(f"there are no histories in {folder}")
    return folder


def test_the_published_persona_is_read(histories: Path) -> None:
    case = read_persona(histories / "cri-persona")
    texts = {each.id: each.text for each in messages(case.sittings)}
    assert (len(case.sittings), len(texts)) == (667, 2_862)
    assert (len(case.gold.noise), len(case.signals), len({atom.ask for atom in case.asked})) == (20, 20, 20)
    # Seven changes of four facts.
    assert sum(len(change.old) for change in case.gold.replaced) == 7
    assert len(case.gold.replaced) == 4
    assert [*case.gold.faults(texts, "en")] == []


def test_the_transcripts_of_the_chain_contain_its_rules(histories: Path) -> None:
    _, tasks = read_chain(histories / "niceeval-toggl")
    assert [task.case[:2] for task in tasks] == ["01", "02", "05", "03", "04", "06"]
    for task in tasks:
        if task.sitting:
            texts = {each.id: each.text for each in task.sitting.messages}
            for atom in task.sets:
                told = "\n".join(texts[row] for row in atom.rows)
                assert all(words in told for words in atom.exact), atom.fact
        else:
            # The prompt that needs a rule does not contain it.
            assert task.prompt
            assert task.needs
            assert not any(words in task.prompt for atom in task.needs for words in atom.exact if words.isdigit())
