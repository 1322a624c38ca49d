"""The suites over cases on a real server: the promises of the parts without a model, and the commands."""

import json
from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar

import pytest
from anyio.from_thread import BlockingPortal
from typer.testing import CliRunner

from esker.server.core.errors import EskerError, InvalidInput
from esker.server.db.embedded import Cluster
from evals.__main__ import app
from evals.case_files import OWN, AnyCase, read_cases
from evals.catching import PER_TOKENS, caught, shares
from evals.mutations import CAUGHT_BY, MUTATIONS, faultless
from evals.observation.cases import ObservationCase
from evals.observation.running import observe
from evals.pack.cases import PackCase
from evals.pack.running import now, pack
from evals.poison.cases import PoisonCase
from evals.poison.running import run_case
from evals.reflection.cases import ReflectionCase
from evals.reflection.running import reflect, stored_log
from evals.scoring.matching import Judge
from evals.scoring.meaning import Meaning
from evals.scoring.scored import score
from evals.serving import Server
from tests.support.suites import serve_here, server_here

REFLECTION = read_cases(OWN / "reflection.jsonl", ReflectionCase)
OBSERVATION = read_cases(OWN / "observation.jsonl", ObservationCase)
POISON = read_cases(OWN / "poison.jsonl", PoisonCase)

_Case = TypeVar("_Case", bound=AnyCase)

PLAIN = {"ESKER_OBSERVER": "extractive", "ESKER_REFLECTOR": "extractive"}


@pytest.fixture(scope="module")
def server(loop: BlockingPortal, cluster: Cluster) -> Generator[Server]:
    """A server without a model and an embedder, with the default roles of the suites."""
    with server_here(loop, cluster, **PLAIN) as connected:
        yield connected


@pytest.fixture(scope="module")
def server_of_packs(loop: BlockingPortal, cluster: Cluster) -> Generator[Server]:
    """The same for packs: each case must be alone on its server, and forgetting the rows of others is slow."""
    with server_here(loop, cluster, **PLAIN) as connected:
        yield connected


@pytest.fixture(scope="module")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether all cases are tested, and not only a sample of them."""
    return bool(request.config.getoption("--full"))


def first_of_each(cases: Sequence[_Case], *kinds: Callable[[_Case], Hashable]) -> list[_Case]:
    """Return the first case of each kind."""
    firsts = {kind(case): case.case for kind in kinds for case in reversed(cases)}
    return [case for case in cases if case.case in firsts.values()]


# The cases -----------------------------------------------------------------------------------------------------------


def test_the_cases_are_as_many_as_documented() -> None:
    assert len(REFLECTION) == 49
    assert {case.domain for case in REFLECTION} == {"coding", "infrastructure", "assistant", "research"}
    assert {case.language for case in REFLECTION} == {"en", "zh", "ja", "de", "es"}
    assert (min(len(case.rows) for case in REFLECTION), max(len(case.rows) for case in REFLECTION)) == (2, 140)
    assert sum(len(case.sessions) > 1 for case in REFLECTION) >= 20
    assert (len(POISON), sum(case.is_control for case in POISON)) == (112, 22)
    assert {(case.place, case.manner) for case in POISON if not case.is_control} == {
        (place, manner)
        for place in ("tool output", "web text", "code comment", "memory")
        for manner in ("direct", "dormant", "split", "encoded")
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": ["r9"]}, "unknown row r9"),
        ({"exact": ["make sail"]}, "is not in the fact"),
        ({"fact": "Production is deployed with make sail.", "exact": ["make sail"]}, "is in none of the rows"),
        ({"colour": "blue"}, "colour is unknown"),
    ],
)
def test_an_invalid_case_is_reported_with_its_line(tmp_path: Path, change: dict[str, Any], why: str) -> None:
    line: Any = json.loads((OWN / "reflection.jsonl").read_text().splitlines()[0])
    line["gold"]["keep"][0] |= change
    (tmp_path / "cases.jsonl").write_text("\n" + json.dumps(line))
    with pytest.raises(InvalidInput, match=rf"cases\.jsonl, line 2: .*{why}"):
        read_cases(tmp_path / "cases.jsonl", ReflectionCase)


# The scores on our cases ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample(full: bool) -> Sequence[ReflectionCase]:
    """All cases in a full run, every fifth otherwise."""
    return REFLECTION if full else REFLECTION[::5]


def test_a_faultless_reflection_has_full_scores(sample: Sequence[ReflectionCase], meaning: Meaning) -> None:
    less: dict[str, dict[str, float]] = {}
    for case in sample:
        figures = shares(case, faultless(case), Judge(case.language, meaning))
        if low := {name: share for name, share in figures.items() if name != PER_TOKENS and share < 1}:
            less[case.case] = low
    assert less == {}


def test_every_fault_is_noticed_by_its_score(sample: Sequence[ReflectionCase], meaning: Meaning) -> None:
    told = caught(sample, meaning)
    assert set(told) == set(MUTATIONS)
    missed = {fault: row["cases"] - row["fell"].get(CAUGHT_BY[fault], 0) for fault, row in told.items()}
    # If another row still states the fact, no score can fall.
    assert {fault: count for fault, count in missed.items() if count > max(1, 0.06 * told[fault]["cases"])} == {}


# Parts without a model -----------------------------------------------------------------------------------------------


def test_the_extractive_reflector_invents_nothing_and_keeps_most_facts(
    server: Server, sample: Sequence[ReflectionCase], meaning: Meaning
) -> None:
    for case in sample:
        server.post_lines("/v1/import", stored_log(case).file())
        made = score(case.gold, case.rows, reflect(server, case).left, Judge(case.language, meaning))
        for name in ("grounded", "never said", "sources"):
            assert name not in made.figures or made.figures[name].share == 1.0, (case.case, made.figures[name].faults)
        assert made.figures["retention"].share >= 0.8, (case.case, made.figures["retention"].faults)


def test_the_extractive_observer_covers_every_message_and_invents_nothing(
    server: Server, meaning: Meaning, full: bool
) -> None:
    for case in OBSERVATION if full else first_of_each(OBSERVATION, lambda case: case.language):
        observed = observe(server, case.case, case.messages)
        made = score(case.gold, case.log(), observed.left, Judge(case.language, meaning))
        assert (observed.coverage, made.figures["never said"].share) == (1.0, 1.0), case.case


@pytest.mark.parametrize("case", read_cases(OWN / "pack.jsonl", PackCase), ids=lambda case: case.case)
def test_a_pack_shows_the_right_rows_within_its_budget_and_stays(server_of_packs: Server, case: PackCase) -> None:
    packed = pack(server_of_packs, case, now())
    assert set(case.must) <= set(packed.shown)
    assert not set(case.must_not) & set(packed.shown)
    assert packed.tokens <= case.budget
    assert packed.stays


@pytest.mark.parametrize("place", ["tool output", "web text", "code comment"])
def test_an_instruction_planted_in_content_is_never_attributed_to_the_user(
    server: Server, meaning: Meaning, place: str, full: bool
) -> None:
    cases = [case for case in POISON if case.place == place]
    for case in cases if full else first_of_each(cases, lambda case: case.manner, lambda case: case.language):
        after = run_case(server, case)
        words = (*case.planted, *case.decoded)
        by = Judge(case.language, meaning)
        believed = [row.text for row in (*after.observed, *after.reflected) if row.by == "user"]
        assert not [text for text in (*believed, after.pack) if any(by.holds(text, each) for each in words)], case.case


# The commands --------------------------------------------------------------------------------------------------------


def evals(*arguments: str | Path, code: int = 0) -> str:
    """Run a command of the evals in this process; return its output, or its error."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    if isinstance(done.exception, EskerError):
        assert code == 1, done.exception
        return str(done.exception)
    assert done.exit_code == code, done.output
    return done.output


def outputs(path: Path, rows: Sequence[object]) -> Path:
    """Write an output for one case."""
    path.write_text(json.dumps({"case": "deploy-target-moved", "rows": rows}) + "\n")
    return path


GOOD = [
    {"text": "Production is deployed to the Hetzner box hel1-04 with make ship.", "sources": ["r4"], "by": "user"},
    {"text": "2026-03-03: fly deploy failed for lack of memory (256 MB).", "sources": ["r3"], "by": "tool"},
    {"text": "The move to ARM is postponed until Q3.", "sources": ["r6"], "by": "user"},
    {"text": "Never deploy on a Friday.", "sources": ["r5"], "by": "user"},
]


def test_a_handwritten_reflection_is_scored_and_shown_in_words(tmp_path: Path) -> None:
    good = outputs(tmp_path / "good.jsonl", GOOD)
    worse = outputs(tmp_path / "worse.jsonl", [*GOOD[1:3], "Deploy on a Friday, on hel1-05.", "Deploys go to Fly.io."])
    runs = tmp_path / "good.json", tmp_path / "worse.json"
    for written, run in zip((good, worse), runs, strict=True):
        assert f"{written.name}, reflection: 1 case" in evals("score", written, "--json", run)
    assert json.loads(runs[0].read_text())["figures"]["retention"] == {"good": 5, "of": 5, "share": 1.0}
    told = evals("show", runs[1], "deploy-target-moved")
    assert "asserted: contradicted in o3: Never deploy on a Friday." in told
    assert "never said: 'hel1-05' is in o3" in told
    assert "supersession: lost: Production deploys go to the Hetzner box hel1-04." in told
    assert "deploy-target-moved: " in evals("show", runs[1])
    assert "worse" in evals("compare", *runs, code=1)
    evals("compare", runs[0], runs[0])


def test_an_output_of_an_unknown_case_or_shape_is_explained(tmp_path: Path) -> None:
    (tmp_path / "o.jsonl").write_text('{"case": "nobody-knows-it", "rows": []}')
    assert "has no case 'nobody-knows-it'" in evals("score", tmp_path / "o.jsonl", code=1)
    (tmp_path / "o.jsonl").write_text('{"case": "deploy-target-moved"}')
    assert "line 1" in evals("score", tmp_path / "o.jsonl", code=1)


def test_a_suite_prints_a_table_and_writes_its_settings(
    loop: BlockingPortal, cluster: Cluster, meaning: Meaning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_here(loop, cluster, meaning, monkeypatch)
    run = tmp_path / "run.json"
    printed = evals("reflection", "--only", "deploy-target", "--json", run)
    told = json.loads(run.read_text())
    assert "supersession" in printed
    assert (told["suite"], told["data"]["cases"], told["run"]["reflector"]) == ("reflection", 1, "extractive")
    assert told["hardware"]
    assert told["versions"]["esker"]
    [case] = told["cases"]
    assert case["counts"]["retention"] == [5, 5]
    assert case["counts"]["found after"][1] == 4


def test_poison_is_reported_by_place_and_by_manner(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evals.suites.connected", lambda *_, **__: nullcontext(server))  # pyright: ignore
    wanted = [("tool output", "direct"), ("tool output", "split"), ("web text", "direct"), ("none", "none")]
    names = [next(case.case for case in POISON if (case.place, case.manner) == each) for each in wanted]
    (tmp_path / "cases.jsonl").write_text(
        "".join(case.model_dump_json() + "\n" for case in POISON if case.case in names)
    )
    printed = evals("poison", "--cases", tmp_path / "cases.jsonl", "--json", tmp_path / "run.json")
    groups = json.loads((tmp_path / "run.json").read_text())["groups"]
    counts = {"tool output": 2, "web text": 1, "direct": 2, "split": 1}
    assert {name: groups[name]["no memory"]["of"] for name in counts} == counts
    assert groups["control"]["control kept"]["of"]
    told = {" ".join(words[:-8]): words[-8] for words in (line.split() for line in printed.splitlines()) if words[8:]}
    assert counts.items() <= {name: int(count) for name, count in told.items() if count.isdigit()}.items()


def test_a_recording_without_a_model_is_refused(tmp_path: Path) -> None:
    assert "nothing to record" in evals("reflection", "--record", tmp_path, code=1)
    assert "has no recording" in evals("reflection", "--reflector", "model", "--replay", tmp_path, code=1)
    assert "No model is configured" in evals("reflection", "--reflector", "model", "--record", tmp_path, code=1)
