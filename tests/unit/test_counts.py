"""Counts with their nouns in singular or plural."""

import re
from dataclasses import replace

import pytest

from esker.server.core.counts import counted
from esker.server.core.recall.expansion import OmittedCounts
from esker.server.core.recall.expansion_text import left_out_line
from esker.server.core.reports import PoolStatus, status_text

ONE_OF_EACH = PoolStatus(
    pool="p",
    memories={"note": 1},
    superseded=1,
    passages=1,
    sessions=1,
    messages=1,
    unobserved_tokens=1,
    pending=1,
    jobs=1,
    failed_jobs=1,
    last_message_at=None,
    last_memory_at=None,
    model="m",
    embedder="e",
    observer="o",
    reflector="r",
)


@pytest.mark.parametrize(
    ("count", "words", "expected"),
    [
        (1, ("memory",), "1 memory"),
        (0, ("memory",), "0 memories"),
        (2_000, ("memory",), "2,000 memories"),
        (2, ("day",), "2 days"),
        (1, ("job waits", "jobs wait"), "1 job waits"),
        (2, ("job waits", "jobs wait"), "2 jobs wait"),
    ],
)
def test_the_noun_fits_the_number(count: int, words: tuple[str, ...], expected: str) -> None:
    assert counted(count, *words) == expected


def test_a_count_of_one_is_in_the_singular() -> None:
    text = status_text(ONE_OF_EACH)
    assert "1 memory (1 of kind note)" in text
    assert "1 message of 1 session." in text
    assert "1 token of messages is not observed yet." in text
    assert "1 job waits or runs" in text
    assert not re.search(r"\b1 (?:memories|messages|sessions|passages|tokens|texts|jobs)\b", text)
    assert "1 memory, 1 cited message, 1 message around them" in left_out_line(OmittedCounts(1, 1, 1))


@pytest.mark.parametrize(
    ("embedder", "why"),
    [("none", "there is no embedder."), ("all-MiniLM-L6-v2", "all-MiniLM-L6-v2 is not loaded yet.")],
)
def test_a_status_says_why_nothing_can_be_found_by_meaning(embedder: str, why: str) -> None:
    assert f"by meaning: {why}" in status_text(replace(ONE_OF_EACH, model=None, embedder=embedder))


@pytest.mark.parametrize(
    ("per_minute", "seconds", "said"),
    [
        (None, None, "it is not known how long that takes"),
        (120.0, 0.5 * 60, "at 120 a minute this takes some 30 seconds"),
        (1.0, 90 * 60.0, "at 1 a minute this takes some 90 minutes"),
    ],
)
def test_a_status_says_how_long_the_backlog_takes_or_that_it_is_not_known(
    per_minute: float | None, seconds: float | None, said: str
) -> None:
    status = replace(ONE_OF_EACH, vectors_per_minute=per_minute, seconds_left=seconds)
    assert f"cannot be found by meaning yet; {said}." in status_text(status)


def test_a_status_says_why_texts_get_no_vectors() -> None:
    assert "The embedding model cannot be used: no such folder" in status_text(
        replace(ONE_OF_EACH, worker="cannot start: no such folder")
    )
    assert "worker" not in status_text(replace(ONE_OF_EACH, worker="running"))
