"""Calibration of cosines, with vectors whose figures are known."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from esker.server.core.arrays import Vectors
from esker.server.core.recall.calibration import (
    _ANSWERED,  # pyright: ignore[reportPrivateUsage]
    calibrate,
    calibration_for,
    calibration_texts,
    z_score_of_right,
)
from esker.server.core.records import UNKNOWN, Calibration
from tests.support.vectors import matrix

QUESTIONS, ANSWERS = calibration_texts()
KNOWN = {
    "english": Calibration(0.05, 0.08, 1.0),
    "european": Calibration(0.3, 0.1, 0.2),
    "cyrillic": Calibration(0.5, 0.08, 0.0),
    "chinese": Calibration(0.4, 0.12, 0.3),
    "japanese": Calibration(0.41, 0.12, 0.4),
    "korean": Calibration(0.42, 0.12, 0.5),
}


def with_common_share(common: float, own: Sequence[float]) -> Vectors:
    """Return unit vectors with one common component; the rest of each is in a dimension of its own."""
    count = len(own)
    return matrix(
        [common, *(math.sqrt(1 - common**2) * s if n == i else 0.0 for n in range(count))] for i, s in enumerate(own)
    )


def test_questions_and_answers_are_pairs_without_repeats() -> None:
    assert len(QUESTIONS) == len(ANSWERS) >= 40
    assert len({*QUESTIONS, *ANSWERS}) == 2 * len(QUESTIONS)


def test_a_model_with_unrelated_wrong_answers_gets_full_weight() -> None:
    vectors = with_common_share(0.0, [1.0] * len(QUESTIONS))
    found = calibrate(vectors, vectors)
    assert found.keys() == KNOWN.keys()
    for calibration in found.values():
        assert calibration.mean == pytest.approx(0.0)
        assert calibration.deviation == 0.01, "the lower limit"
        assert calibration.weight == 1.0
        assert calibration.standing_out(0.05) == pytest.approx(5.0)


def test_the_mean_is_the_share_that_all_texts_have_in_common() -> None:
    vectors = with_common_share(0.5, [1.0] * len(QUESTIONS))
    for calibration in calibrate(vectors, vectors).values():
        assert calibration.mean == pytest.approx(0.25)
        assert calibration.standing_out(0.25) == pytest.approx(0.0)


def test_answers_in_other_languages_are_not_taken_for_wrong_ones() -> None:
    # A dimension for each text, and one for each language, which all its texts share.
    language = [number for number, answered in enumerate(_ANSWERED["european"]) for _ in answered]
    before = sum(map(len, _ANSWERED["english"]))
    vectors = np.eye(len(QUESTIONS), len(QUESTIONS) + 3, dtype=np.float32)
    for place, number in enumerate(language, start=before):
        vectors[place, len(QUESTIONS) + number] = 1.0
        vectors[place] /= np.sqrt(2, dtype=np.float32)
    assert calibrate(vectors, vectors)["european"].mean == pytest.approx(0.5)


def test_a_model_that_finds_all_texts_similar_gets_weight_zero() -> None:
    same = matrix([[1.0, 0.0]] * len(QUESTIONS))
    for calibration in calibrate(same, same).values():
        assert (calibration.mean, calibration.weight) == (pytest.approx(1.0), 0.0)


def test_a_model_that_prefers_wrong_answers_gets_weight_zero() -> None:
    vectors = with_common_share(0.0, [1.0] * len(QUESTIONS))
    turned = matrix([*vectors[1:], vectors[0]])
    assert {calibration.weight for calibration in calibrate(vectors, turned).values()} == {0.0}


def test_the_weight_grows_with_the_z_score_of_right_answers() -> None:
    # Cosines between unrelated texts are 0.2 or -0.2, so their deviation is 0.2; right answers have 0.2 * times.
    def found(times: float) -> float:
        questions = [[0.0] * len(QUESTIONS) for _ in QUESTIONS]
        answers = [[0.0] * len(QUESTIONS) for _ in QUESTIONS]
        for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            question[i] = 1.0
            for j in range(len(QUESTIONS)):
                answer[j] = 0.2 if (i + j) % 2 else -0.2
            answer[i] = 0.2 * times
        return calibrate(matrix(questions), matrix(answers))["english"].weight

    weights = [found(times) for times in (0.5, 1.5, 2.5, 3.5, 5.0)]
    assert weights[0] == 0.0
    assert weights[-1] == 1.0
    assert weights == sorted(weights)
    assert weights[2] == pytest.approx((2.5 - 0.09 - 1) / 3, abs=0.01)
    assert z_score_of_right(Calibration(0.0, 0.2, weights[2])) == pytest.approx(2.5 - 0.09, abs=0.03)


@pytest.mark.parametrize(
    ("query", "script"),
    [
        ("Which package manager do we use?", "english"),
        ("docker", "english"),
        ("Wann wird die neue Version ausgeliefert?", "european"),
        ("Où est la gare ?", "european"),
        ("Когда выйдет новая версия?", "cyrillic"),
        ("新版本什么时候发布？", "chinese"),
        ("東京タワーの近く", "japanese"),
        ("강아지는 어떤 품종인가요?", "korean"),
        ("docker 部署容器失败", "chinese"),
        ("Where is the 部署 config for the second container?", "english"),
    ],
)
def test_a_query_gets_the_calibration_of_its_script(query: str, script: str) -> None:
    assert calibration_for(query, KNOWN) == KNOWN[script]


@pytest.mark.parametrize("query", ["هل تم نشر الإصدار الجديد؟", "מתי יוצאת הגרסה החדשה?", "नया संस्करण कब आएगा?"])
def test_a_script_that_was_not_measured_gets_the_least_weight(query: str) -> None:
    assert calibration_for(query, KNOWN) == KNOWN["cyrillic"]


def test_a_space_that_was_not_measured_gets_the_figures_of_the_bundled_model() -> None:
    assert calibration_for("Wann?", {}) == UNKNOWN
