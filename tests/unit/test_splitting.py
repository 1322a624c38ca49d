"""Splitting long texts: nothing is lost, every part fits, and parts end where the text has an end."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.text.splitting import split_text
from esker.server.core.text.tokens import estimate_tokens


def words(texts: Sequence[str]) -> list[int]:
    """Count words, and CJK characters one by one."""
    return [len(re.findall(r"[\u3040-\u9fff]|[^\s\u3040-\u9fff]+", text)) for text in texts]


def pieces(texts: Sequence[str]) -> list[int]:
    """Count as the worst tokenizer does: parts together may have more tokens than the sum of each alone."""
    return [len(text) // 3 + 2 * text.count("ab") + text.count("\n") for text in texts]


def estimated(texts: Sequence[str]) -> list[int]:
    """Count by our own estimate."""
    return [estimate_tokens(text) for text in texts]


TEXT = st.text(st.sampled_from("ab c.\n!? 部署，。ü🙂{};=_"), max_size=400)
PROSE = "The river runs through the valley. It carries sand! Does it ever stop? "
CODE = "def run(path: str) -> int:\n    return len(open(path).read())\n\n"
CHINESE = "重新部署服务器之后，日志里出现了错误。"


def rebuilt(text: str, parts: list[str]) -> str:
    """Join parts, each at the position where it continues the text so far."""
    made = ""
    for part in parts:
        place = min(text.find(part, max(0, len(made) - len(part))), len(made))
        assert place >= 0, "a part is a stretch of the text"
        assert not text[len(made) : place].strip()
        made = text[: place + len(part)] if place + len(part) > len(made) else made
    return made


@pytest.mark.parametrize("count", [words, pieces, estimated])
@given(text=TEXT, most=st.integers(2, 60))
def test_every_part_is_within_the_limit_and_the_same_each_time(count: object, text: str, most: int) -> None:
    parts = split_text(text, most, count)  # type: ignore[arg-type]
    assert parts == split_text(text, most, count)  # type: ignore[arg-type]
    for part in parts:
        assert len(part) == 1 or len(part.encode()) <= most or count([part])[0] <= most  # type: ignore[operator]


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=120), most=st.integers(3, 40), end=st.sampled_from(". \n")
)
def test_parts_cover_the_whole_text_in_order(lengths: list[int], most: int, end: str) -> None:
    # Every word occurs once, so the position of each part is unambiguous.
    text = "".join(f"w{place}{end}" + " " * (length % 3) for place, length in enumerate(lengths))
    parts = split_text(text, most, words)
    assert rebuilt(text, parts).strip() == text.strip()


@pytest.mark.parametrize(("text", "count"), [(PROSE, words), (CODE, estimated), (CHINESE, words)])
def test_parts_end_where_a_sentence_or_a_line_ends(text: str, count: object) -> None:
    parts = split_text(text * 30, 64, count)  # type: ignore[arg-type]
    assert len(parts) > 3
    assert all(re.search(r"[.!?。]\s*$|\n$", part) for part in parts)


def test_a_part_begins_with_the_end_of_the_one_before() -> None:
    text = "".join(f"Sentence number {n} is short. " for n in range(60))
    first, second, *_ = split_text(text, 50, words)
    assert first.endswith(second[: second.index(".") + 2])
    assert len(second) > len(first) / 2


def test_a_text_without_borders_is_cut_anyway() -> None:
    parts = split_text("部" * 1000, 100, words)
    assert [len(part) for part in parts if len(part) > 100] == []
    assert sum(map(len, parts)) >= 1000


def test_a_text_that_fits_is_its_only_part_and_is_not_counted_if_short() -> None:
    def never(_: Sequence[str]) -> list[int]:
        raise AssertionError

    assert split_text("Short.", 256, never) == ["Short."]
    assert split_text("", 256, never) == [""]
    assert split_text(PROSE * 3, 256, words) == [PROSE * 3]


def test_units_that_have_more_tokens_together_are_counted_together() -> None:
    parts = split_text("abc. " * 40, 4, lambda texts: [len(text) // 4 for text in texts])
    assert max(len(part) // 4 for part in parts) <= 4
    assert len(parts) < 40


def test_a_character_is_never_divided() -> None:
    assert split_text("🙂🙂", 2, lambda texts: [4 * len(text) for text in texts]) == ["🙂", "🙂"]
