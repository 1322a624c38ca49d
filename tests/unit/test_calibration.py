"""Calibration: what a cosine is worth, from vectors whose figures are known."""

import math
from collections.abc import Sequence

import pytest

from esker.server.core.recall.calibration import calibrate, calibration_for, calibration_texts
from esker.server.core.records import UNKNOWN, Calibration
from esker.server.providers.embedders import LocalEmbedder

QUESTIONS, ANSWERS = calibration_texts()
KNOWN = {
    "english": Calibration(0.05, 0.08, 1.0),
    "european": Calibration(0.3, 0.1, 0.2),
    "cyrillic": Calibration(0.5, 0.08, 0.0),
    "cjk": Calibration(0.4, 0.12, 0.3),
}


def unit(*values: float) -> list[float]:
    """Return a vector of length 1."""
    length = math.hypot(*values)
    return [value / length for value in values]


def of_two(common: float, own: Sequence[float]) -> list[list[float]]:
    """Return vectors that have a share in common, and for the rest a dimension each."""
    count = len(own)
    return [
        [common, *(math.sqrt(1 - common**2) * s if n == i else 0.0 for n in range(count))] for i, s in enumerate(own)
    ]


def test_questions_and_answers_come_in_pairs_and_none_twice() -> None:
    assert len(QUESTIONS) == len(ANSWERS) >= 40
    assert len({*QUESTIONS, *ANSWERS}) == 2 * len(QUESTIONS)


def test_texts_that_have_nothing_in_common_make_a_search_that_may_say_all() -> None:
    vectors = of_two(0.0, [1.0] * len(QUESTIONS))
    found = calibrate(vectors, vectors)
    assert found.keys() == KNOWN.keys()
    for calibration in found.values():
        assert calibration.mean == pytest.approx(0.0)
        assert calibration.deviation == 0.01, "the least that is believed"
        assert calibration.weight == 1.0
        assert calibration.standing_out(0.05) == pytest.approx(5.0)


def test_what_all_texts_have_in_common_is_the_mean() -> None:
    vectors = of_two(0.5, [1.0] * len(QUESTIONS))
    for calibration in calibrate(vectors, vectors).values():
        assert calibration.mean == pytest.approx(0.25)
        assert calibration.standing_out(0.25) == pytest.approx(0.0)


def test_a_model_that_takes_all_texts_for_alike_may_say_nothing() -> None:
    same = [unit(1.0, 0.0)] * len(QUESTIONS)
    for calibration in calibrate(same, same).values():
        assert (calibration.mean, calibration.weight) == (pytest.approx(1.0), 0.0)


def test_a_model_that_takes_wrong_answers_for_the_right_ones_may_say_nothing() -> None:
    vectors = of_two(0.0, [1.0] * len(QUESTIONS))
    turned = [*vectors[1:], vectors[0]]
    assert {calibration.weight for calibration in calibrate(vectors, turned).values()} == {0.0}


def test_the_weight_grows_with_how_far_the_right_answer_stands_out() -> None:
    # Cosines between unrelated texts are 0.2 or -0.2, so they deviate by 0.2; right answers have 0.2 times so much.
    def found(times: float) -> float:
        questions = [[0.0] * 60 for _ in QUESTIONS]
        answers = [[0.0] * 60 for _ in QUESTIONS]
        for i, (question, answer) in enumerate(zip(questions, answers, strict=True)):
            question[i] = 1.0
            for j in range(len(QUESTIONS)):
                answer[j] = 0.2 if (i + j) % 2 else -0.2
            answer[i] = 0.2 * times
        return calibrate(questions, answers)["english"].weight

    weights = [found(times) for times in (0.5, 1.5, 2.5, 3.5, 5.0)]
    assert weights[0] == 0.0
    assert weights[-1] == 1.0
    assert weights == sorted(weights)
    assert weights[2] == pytest.approx((2.5 - 0.09 - 1) / 3, abs=0.01)


@pytest.mark.parametrize(
    ("query", "script"),
    [
        ("Which package manager do we use?", "english"),
        ("docker", "english"),
        ("Wann wird die neue Version ausgeliefert?", "european"),
        ("Où est la gare ?", "european"),
        ("Когда выйдет новая версия?", "cyrillic"),
        ("新版本什么时候发布？", "cjk"),
        ("東京タワーの近く", "cjk"),
        ("강아지는 어떤 품종인가요?", "cjk"),
        ("docker 部署容器失败", "cjk"),
        ("Where is the 部署 config for the second container?", "english"),
    ],
)
def test_a_query_is_measured_by_its_script(query: str, script: str) -> None:
    assert calibration_for(query, KNOWN) == KNOWN[script]


@pytest.mark.parametrize("query", ["هل تم نشر الإصدار الجديد؟", "מתי יוצאת הגרסה החדשה?", "नया संस्करण कब आएगा?"])
def test_a_script_that_was_not_measured_is_trusted_as_little_as_any_that_was(query: str) -> None:
    assert calibration_for(query, KNOWN) == KNOWN["cyrillic"]


def test_a_space_that_was_not_measured_is_taken_for_the_bundled_one() -> None:
    assert calibration_for("Wann?", {}) == UNKNOWN


async def test_the_bundled_model_is_worth_what_the_documentation_says(minilm: LocalEmbedder) -> None:
    await minilm.load()
    found = calibrate(await minilm.embed(QUESTIONS), await minilm.embed(ANSWERS))
    figures = {script: (c.mean, c.deviation, c.weight) for script, c in found.items()}
    assert figures["english"] == pytest.approx((0.038, 0.077, 1.0), abs=0.02)
    assert figures["european"] == pytest.approx((0.279, 0.109, 0.13), abs=0.03)
    assert figures["cyrillic"] == pytest.approx((0.531, 0.084, 0.0), abs=0.03)
    assert figures["cjk"] == pytest.approx((0.405, 0.127, 0.21), abs=0.03)
