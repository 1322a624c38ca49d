"""Recordings of a model: a recorded answer is replayed, and a missing one is reported."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio.from_thread import BlockingPortal

from esker.server.core.errors import InvalidInput
from esker.server.db.embedded import Cluster
from evals import __main__ as program
from evals.observation.command import observation
from evals.recording import fingerprint, recorded
from evals.reflection.command import reflection
from evals.scoring.meaning import Meaning
from tests.support.model_server import ModelServer, ScriptedAnswer
from tests.support.suites import first_cases, serve_here
from tests.support.waiting import PATIENCE

ROW = re.compile(r"^(mem_\w+) \S+ \S+ (\w+) (\w+)(?: \(tentative\))? (.+)$", re.MULTILINE)
MESSAGE = re.compile(r"^\[(\d+)\] user, .+\n(.+)$", re.MULTILINE)
ID = "mem_01kb3x8a2c9d4e5f6g7h8j9k0m"
OTHER = "mem_01kb3x8a2c9d4e5f6g7h8j9k0n"


# The tape ------------------------------------------------------------------------------------------------------------


def ask(base_url: str, text: str) -> httpx2.Response:
    """Send a question to an endpoint."""
    body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": text}]}
    return httpx2.post(f"{base_url}/v1/messages", json=body, timeout=PATIENCE)


def said(answer: httpx2.Response) -> str:
    """Return the words of an answer."""
    return answer.json()["content"][0]["text"]


def test_a_repeated_request_gets_the_next_answer(model: ModelServer, tmp_path: Path) -> None:
    model.say("one", "two", "three")
    with recorded(tmp_path, None, {"ESKER_LLM_BASE_URL": f"{model.url}/v1"}) as (_, settings):
        first = [said(ask(settings["ESKER_LLM_BASE_URL"], text)) for text in ("a", "a", "b")]
    with recorded(None, tmp_path, {}) as (tape, settings):
        again = [said(ask(settings["ESKER_LLM_BASE_URL"], text)) for text in ("b", "a", "a")]
    assert (first, again) == (["one", "two", "three"], ["three", "one", "two"])
    assert tape
    assert (tape.given, len(model.asked)) == (3, 3)


def test_a_replayed_answer_cites_the_ids_of_the_new_request(model: ModelServer, tmp_path: Path) -> None:
    model.say(f"It is {ID}, as ses_01kb3x8a2c9d4e5f6g7h8j9k0p is not.")
    with recorded(tmp_path, None, {"ESKER_LLM_BASE_URL": model.url}) as (_, settings):
        ask(settings["ESKER_LLM_BASE_URL"], f"{OTHER} a\n{ID} b\n{OTHER} c")
    with recorded(None, tmp_path, {}) as (_, settings):
        one, two = (name.replace("01k", "02m") for name in (ID, OTHER))
        answer = said(ask(settings["ESKER_LLM_BASE_URL"], f"{one} a\n{two} b\n{one} c"))
    assert answer == f"It is {two}, as ses_01kb3x8a2c9d4e5f6g7h8j9k0p is not."


def test_ids_are_identified_by_their_order() -> None:
    def request(text: str) -> dict[str, Any]:
        return {"messages": [{"role": "user", "content": text}]}

    assert fingerprint(request(f"{ID} a, {OTHER} b")) == fingerprint(request(f"{OTHER} a, {ID} b"))
    assert fingerprint(request(f"{ID} a, {ID} b")) != fingerprint(request(f"{ID} a, {OTHER} b"))
    assert fingerprint(request(f"{ID} a")) != fingerprint(request(f"{ID} b"))


def test_an_error_and_its_retry_after_are_recorded(model: ModelServer, tmp_path: Path) -> None:
    model.say(ScriptedAnswer("overloaded", status=529, headers={"retry-after": "0.01"}), ScriptedAnswer("there"))
    with recorded(tmp_path, None, {"ESKER_LLM_BASE_URL": model.url}) as (_, settings):
        before = [ask(settings["ESKER_LLM_BASE_URL"], "a") for _ in range(2)]
    with recorded(None, tmp_path, {}) as (_, settings):
        after = [ask(settings["ESKER_LLM_BASE_URL"], "a") for _ in range(2)]
    told = [
        [(each.status_code, each.headers.get("retry-after"), each.json()) for each in its] for its in (before, after)
    ]
    assert told[0] == told[1]
    assert [(status, wait) for status, wait, _ in told[1]] == [(529, "0.01"), (200, None)]


def test_an_unreachable_endpoint_is_replayed_as_unreachable(tmp_path: Path) -> None:
    with recorded(tmp_path, None, {"ESKER_LLM_BASE_URL": "http://127.0.0.1:9"}) as (_, settings):
        assert ask(settings["ESKER_LLM_BASE_URL"], "a").status_code == 502
    with recorded(None, tmp_path, {}) as (tape, settings):
        assert ask(settings["ESKER_LLM_BASE_URL"], "a").status_code == 502
    assert tape
    assert not tape.missing


@pytest.mark.parametrize("content", [b"\xff", b"garbage", b"[]", b'{"status": 200}'])
def test_an_unreadable_recording_is_named(content: bytes, model: ModelServer, tmp_path: Path) -> None:
    model.say("one")
    with recorded(tmp_path, None, {"ESKER_LLM_BASE_URL": model.url}) as (_, settings):
        ask(settings["ESKER_LLM_BASE_URL"], "a")
    [file] = tmp_path.glob("*.json")
    file.write_bytes(content)
    with (
        pytest.raises(InvalidInput, match=rf"{file.name} is not a recorded answer"),
        recorded(None, tmp_path, {}) as (_, settings),
    ):
        assert ask(settings["ESKER_LLM_BASE_URL"], "a").status_code == 400


def test_a_missing_recording_is_refused_at_once_and_named_at_the_end(model: ModelServer, tmp_path: Path) -> None:
    model.say("one")
    with recorded(tmp_path, None, {"ESKER_LLM_BASE_URL": model.url}) as (_, settings):
        ask(settings["ESKER_LLM_BASE_URL"], "a")

    def ask_for_more() -> None:
        with recorded(None, tmp_path, {}) as (_, settings):
            assert ask(settings["ESKER_LLM_BASE_URL"], "changed").status_code == 400
            raise InvalidInput("The server could not do it.")

    with pytest.raises(InvalidInput, match="A request is not in the recording") as raised:
        ask_for_more()
    assert str(raised.value.__cause__) == "The server could not do it."


def test_nothing_to_record_or_to_replay_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No model is configured to record"), recorded(tmp_path, None, {}):
        pass
    with pytest.raises(InvalidInput, match="has no recording"), recorded(None, tmp_path, {}):
        pass
    with pytest.raises(InvalidInput, match="exclude each other"), recorded(tmp_path, tmp_path, {}):
        pass


# Suites --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def endpoint(
    loop: BlockingPortal, model: ModelServer, cluster: Cluster, meaning: Meaning, monkeypatch: pytest.MonkeyPatch
) -> ModelServer:
    """A scripted model that the suites use."""
    serve_here(loop, cluster, meaning, monkeypatch)
    monkeypatch.setenv("ESKER_LLM_BASE_URL", model.url)
    return model


def condensed(body: dict[str, Any]) -> ScriptedAnswer:
    """Condense rows as a model does: the first of every two replaces both. The first answer is not JSON."""
    if len(body["messages"]) == 1:
        return ScriptedAnswer("Let me think about that.")
    found = ROW.findall(body["messages"][0]["content"][0]["text"])
    rows: list[dict[str, Any]] = []
    for first, *others in (found[at : at + 2] for at in range(0, len(found), 2)):
        ids = [first[0], *(other[0] for other in others)]
        rows.append({"text": first[3], "priority": first[1], "category": first[2], "source_ids": ids})
    return ScriptedAnswer(json.dumps({"rows": rows, "insights": []}))


def observed(body: dict[str, Any]) -> ScriptedAnswer:
    """Observe as a model does: each user message is a fact."""
    text = "\n".join(block["text"] for block in body["messages"][0]["content"])
    facts = [
        {"text": words, "priority": "medium", "category": "fact", "sources": [int(seq)]}
        for seq, words in MESSAGE.findall(text)
    ]
    return ScriptedAnswer(json.dumps({"facts": facts}))


def measured(path: Path) -> list[Any]:
    """Return the results of a run without seconds and ids, which differ each time."""
    told = json.loads(path.read_text(encoding="utf-8"))
    cases = [
        (case["id"], case["figures"], case["counts"], [row["text"] for row in case["left"]]) for case in told["cases"]
    ]
    amounts = [{name: of for name, of in case["amounts"].items() if name != "seconds"} for case in told["cases"]]
    return [told["data"], cases, amounts]


def test_a_reflection_is_replayed_to_the_digit(
    endpoint: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, tape = first_cases(tmp_path, "reflection", 2), tmp_path / "tape"
    busy = ScriptedAnswer("busy", status=529, headers={"retry-after": "0.01"})
    endpoint.say(busy, condensed)
    reflection(cases, reflector="model", record=tape, questions=False, json_file=tmp_path / "a.json")
    asked = len(endpoint.asked)
    assert asked > 4
    monkeypatch.delenv("ESKER_LLM_BASE_URL")
    reflection(cases, reflector="model", replay=tape, questions=False, json_file=tmp_path / "b.json")
    assert measured(tmp_path / "a.json") == measured(tmp_path / "b.json")
    assert len(endpoint.asked) == asked
    [one, other] = json.loads((tmp_path / "b.json").read_text())["cases"]
    assert one["amounts"]["model tokens"]
    assert other["amounts"]["model tokens"]


def test_an_observation_is_replayed_to_the_digit(
    endpoint: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, tape = first_cases(tmp_path, "observation", 2), tmp_path / "tape"
    endpoint.say(observed)
    observation(cases, observer="model", record=tape, questions=False, json_file=tmp_path / "a.json")
    monkeypatch.delenv("ESKER_LLM_BASE_URL")
    observation(cases, observer="model", replay=tape, questions=False, json_file=tmp_path / "b.json")
    assert measured(tmp_path / "a.json") == measured(tmp_path / "b.json")
    told = json.loads((tmp_path / "b.json").read_text())
    assert all(case["left"] and case["amounts"]["calls"] for case in told["cases"])


@pytest.mark.parametrize("suite", ["reflection", "observation"])
def test_a_case_without_a_recording_ends_the_run_with_an_error(
    endpoint: ModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    suite: str,
) -> None:
    tape = tmp_path / "tape"
    tape.mkdir()
    (tape / f"{'0' * 32}-1.json").write_text("{}", encoding="utf-8")
    role = {"reflection": "--reflector", "observation": "--observer"}[suite]
    command = ["evals", suite, "--cases", str(first_cases(tmp_path, suite, 2)), role, "model", "--no-questions"]
    monkeypatch.setattr(sys, "argv", [*command, "--replay", str(tape)])
    with pytest.raises(SystemExit) as raised:
        program.run()
    assert raised.value.code == 1
    assert "not in the recording" in capsys.readouterr().err
    assert not endpoint.asked
