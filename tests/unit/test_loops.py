"""Looping texts are distinguished from texts that are only repetitive."""

import json
import random
import time
import uuid
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esker.server.core.text.loops import degenerate_rows, degeneration

WORDS = (
    "anchor basket candle dragon engine forest garden harbour island jacket kettle ladder magnet needle orange pepper"
    " quarry ribbon saddle temple urchin valley window yellow zephyr bridge copper desert falcon glacier hollow ivory"
).split()


def chance(seed: int | str) -> random.Random:
    """Return a random generator with a fixed seed."""
    return random.Random(seed)  # noqa: S311 - it decides what a test reads


def sentence(by: random.Random) -> str:
    """Return a sentence of random words."""
    return " ".join(by.choices(WORDS, k=by.randint(6, 14))).capitalize() + "."


def sentences(seed: int, count: int) -> str:
    """Return `count` different sentences."""
    by = chance(seed)
    return " ".join(dict.fromkeys(sentence(by) for _ in range(count)))


BLOCK = "\n".join(f"{number}. {sentence(chance(number))}" for number in range(21)) + "\n"
MOODS = ("The build is green again.", "Let me look at the test once more.", "That did not work, so I try again.")
LOOPS = {
    "a block of lines": BLOCK * 62,
    "a line": "I have finished the migration of the users table.\n" * 40,
    "a phrase within a line": "I will now " * 40,
    "one letter": "a" * 600,
    "longer than any rule": "=" * 600,
    "one ideograph": "的" * 500,
    "a short word": "ha " * 100,
    "a laugh": "ha ha ha ha ha ha. " * 20,
    "a sentence without spaces": "我现在开始检查代码。" * 60,
    "a counter": "".join(f"Step {number}: done. " for number in range(1, 201)),
    "a counter that goes down": "\n".join(f"Retrying, {number} attempts left." for number in range(99, 0, -1)),
    "a counter beside what stays": "\n".join(f"Attempt {number} of 80 failed with code 7." for number in range(80)),
    "a few sentences in any order": " ".join(chance(3).choices(MOODS, k=80)),
    "cut off in the middle": ("I will check the other file now. " * 50)[:-13],
    "a block that repeats itself inside": ("one two three four five " * 6 + "six ") * 30,
    "a counter behind other numbers": "It took 7 minutes and 3 tries. "
    + "".join(f"Step {n}: done. " for n in range(200)),
}
REFRAIN = "Way, hay, and up she rises,\nEarl-eye in the morning.\n"
CASES = ("empty", "short", "long", "nested", "escaped", "quoted", "unicode", "broken", "huge", "negative")
LEGITIMATE = {
    "nothing": "",
    "a short text": "ha ha ha ha ha",
    "runs of one command": "\n".join(
        f"Ran `npm test` in packages/{word}: {chance(word).randint(3, 90)} passed" for word in WORDS
    ),
    "a changelog": "\n\n".join(
        f"## [1.4.{patch}](https://example.org/compare/v1.4.{patch}) (2024-{patch % 12 + 1:02}-{patch % 27 + 1:02})\n\n"
        "**Note:** Version bump only for package @example/core"
        for patch in range(40, 0, -1)
    ),
    "a table of words": "| name | state | owner |\n|---|---|---|\n"
    + "\n".join(f"| {word} | open | {other} |" for word, other in zip(WORDS, WORDS[7:], strict=False)),
    "a table of numbers": "| n | loss |\n|---|---|\n"
    + "\n".join(f"| {n} | {chance(n).random():.4f} |" for n in range(1, 120)),
    "a numbered table with one state": "\n".join(f"| {n} | ok | {n % 7} |" for n in range(200)),
    "paths": "\n".join(f"packages/coding-agent/src/core/{word}/index.ts" for word in WORDS),
    "paths with a number": "\n".join(f"packages/coding-agent/src/core/part-{n}/index.ts" for n in range(90)),
    "a rule": "# Results\n\n" + "-" * 120 + "\n\nAll is well.\n\n" + "=" * 120 + "\n\nNothing is left to do.",
    "base64": b64encode(chance(1).randbytes(3_000)).decode(),
    "hexadecimal": chance(1).randbytes(3_000).hex(),
    "uuids": "\n".join(str(uuid.UUID(int=chance(n).getrandbits(128))) for n in range(60)),
    "a poem with a refrain": "\n".join(f"{sentence(chance(n))}\n{REFRAIN}" for n in range(20)),
    "code with similar lines": "\n".join(
        f'    parser.add_argument("--{word}", type=str, default=None, help="The {word} to use")' for word in WORDS
    ),
    "tests with similar bodies": "\n".join(
        f"def test_{case}() -> None:\n    result = parse(sample('{case}'))\n    assert result is not None\n"
        for case in CASES
    ),
    "a numbered list": "\n".join(f"{n}. {sentence(chance(n))}" for n in range(1, 50)),
    "a log with times": "\n".join(
        f"12:{n // 3:02}:{chance(n).randint(0, 59):02} Still waiting for the lock." for n in range(60)
    ),
    "Chinese with its particles": "我们的项目的目标是让用户的数据的安全得到保证。他们的价格的变化是公司的决定的结果。"
    "新的版本的发布的时间还没有确定，但是测试的结果的报告已经在昨天的会议的最后的部分里提到了。" * 2,
    "an answer given twice": (sentences(5, 8) + "\n\n") * 2,
    "a short text of one word": "ha " * 40,
    "a wide rule": "-" * 240 + "\nResults of the nightly run\n" + sentences(6, 3),
    "a wide gap": "name" + " " * 600 + "owner",
    "a count within a longer text": sentences(7, 60) + "".join(f" Step {n}: done." for n in range(40)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_repetitive_text_is_detected(name: str) -> None:
    assert degeneration(LOOPS[name])


@pytest.mark.parametrize("name", LEGITIMATE)
def test_a_text_with_similar_lines_is_accepted(name: str) -> None:
    assert degeneration(LEGITIMATE[name]) is None


def test_the_message_names_the_repetition_and_its_count() -> None:
    reason = degeneration("I will now " * 40)
    assert reason is not None
    assert '"I will now"' in reason
    assert "40 times" in reason
    block = degeneration(LOOPS["a block of lines"])
    assert block is not None
    assert "21 lines" in block
    assert "62 times" in block
    assert len(block) < 200


@given(st.text(min_size=20).filter(lambda block: any(map(str.isalpha, block))))
def test_any_block_thirty_times_is_a_loop(block: str) -> None:
    assert degeneration(block * 30)


@given(st.integers(), st.integers(1, 80))
def test_different_sentences_are_not_a_loop(seed: int, count: int) -> None:
    assert degeneration(sentences(seed, count)) is None


@given(st.integers(), st.integers(1, 40), st.text(min_size=20, max_size=100).filter(lambda text: text[0].isalpha()))
def test_a_loop_that_is_half_of_the_text_is_detected(seed: int, count: int, block: str) -> None:
    good = sentences(seed, count) + "\n\n"
    rounds = max(400, len(good)) // len(block) + 1
    assert degeneration(good + block * rounds)


@given(st.integers(), st.integers(20, 60))
def test_a_loop_that_is_a_tenth_of_the_text_is_accepted(seed: int, count: int) -> None:
    good = sentences(seed, count)
    assert degeneration(good + " " + "ha " * (len(good) // 30)) is None


@settings(max_examples=20)
@given(st.integers(1, 400), st.integers(0, 40), st.booleans())
def test_any_text_is_checked_in_time(period: int, other: int, cut: bool) -> None:
    near = ("a" * period + "b") * (100_000 // (period + 1)) + ("ab" * other + "1")[cut:]
    started = time.process_time()
    degeneration(near)
    assert time.process_time() - started < 1


@pytest.mark.slow
def test_no_loop_is_found_in_foreign_transcripts(transcripts: Path) -> None:
    texts = {text[:10_000] for path in sorted(transcripts.rglob("*.json*")) for text in texts_of(path)}
    assert len(texts) > 1_000
    assert {text[:80]: reason for text in texts if (reason := degeneration(text))} == {}


def texts_of(path: Path) -> Iterator[str]:
    """Yield every string in a file of JSON or of lines of JSON."""
    whole = path.read_text(encoding="utf-8")
    for line in whole.splitlines() if path.suffix == ".jsonl" else [whole]:
        try:
            yield from strings(json.loads(line))
        except ValueError:
            continue


def strings(value: object) -> Iterator[str]:
    """Yield the strings in a JSON value."""
    match value:
        case str():
            yield value
        case dict():
            for inner in value.values():
                yield from strings(inner)
        case list():
            for inner in value:
                yield from strings(inner)
        case _:
            pass


def test_a_wording_in_three_rows_is_an_error_in_any_case_and_spacing() -> None:
    rows = ["Deploys need Node 22.", "deploys  need Node 22.", "Anna owns billing.", "Deploys need\nnode 22."]
    reason = degenerate_rows(rows)
    assert reason is not None
    assert "3 rows" in reason
    assert "deploys need node 22." in reason


def test_two_rows_of_one_wording_and_rows_that_differ_are_accepted() -> None:
    assert degenerate_rows([]) is None
    assert degenerate_rows(["Deploys need Node 22.", "Deploys need Node 22.", "Deploys need Node 20."]) is None
    assert degenerate_rows([f"Ran the tests of {word}: all passed." for word in WORDS]) is None


def test_a_row_that_loops_is_an_error() -> None:
    reason = degenerate_rows(["Anna owns billing.", "The cache is full. " * 30])
    assert reason is not None
    assert "The cache is full." in reason
