"""The extractive reflector: fewer rows, fewer words, and nothing else."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from esker.server.core.facts.records import Reflected, ReflectionTask
from esker.server.core.records import Memory
from esker.server.core.text.tokens import estimate_tokens
from esker.server.providers.extractive.reflector import reflect
from tests.support.records import observation

ROOMY = 100_000


def log(*rows: tuple[str, str, str, str]) -> list[Memory]:
    """Return observations from (content, priority, category, trust), one message each."""
    return [
        observation(content, seq, priority=priority, category=category, trust=trust)
        for seq, (content, priority, category, trust) in enumerate(rows, start=1)
    ]


def condensed(rows: Sequence[Memory], target: int = ROOMY, **changes: Any) -> Reflected:
    """Condense rows."""
    return reflect(ReflectionTask(tuple(rows), target, "UTC", "session", **changes))


RULE = ("User preference: Never use floats for money.", "high", "preference", "user")
ASKED = ("User asked: Fix the login.", "low", "fact", "user")
FAILED = ("`make test` failed: KeyError: 'id' — cause: the id was renamed.", "medium", "issue", "tool")
CHANGED = ("Changed src/login.py — asked: Fix the login.", "low", "state_change", "assistant")
FIXED = ("Outcome: Fixed the login.", "medium", "outcome", "assistant")


def test_a_persons_ruling_stays_verbatim_in_a_row_of_its_own() -> None:
    rows = log(ASKED, RULE, FAILED, CHANGED, FIXED)
    drafts = condensed(rows).drafts
    [rule] = [draft for draft in drafts if "floats" in draft.content]
    assert rule.content == RULE[0]
    assert rule.source_ids == (rows[1].id,)
    assert (rule.priority, rule.category) == ("high", "preference")


def test_a_task_and_its_outcomes_become_one_row_with_all_sources() -> None:
    rows = log(ASKED, FAILED, CHANGED, FIXED)
    [draft] = condensed(rows).drafts
    assert draft.source_ids == tuple(row.id for row in rows)
    assert draft.content.index("Fix the login") < draft.content.index("KeyError: 'id'") < draft.content.index("Fixed")
    assert draft.content.count("Fix the login") == 1
    assert draft.category == "outcome"


def test_the_next_statement_of_a_person_begins_another_row() -> None:
    rows = log(ASKED, FAILED, FIXED, ("User said: The footer is cut off.", "medium", "fact", "user"), CHANGED, FIXED)
    contents = [draft.content for draft in condensed(rows).drafts]
    assert not [content for content in contents if "KeyError" in content and "footer" in content]


def test_repeats_become_one_row_with_the_latest_wording_and_all_sources() -> None:
    rows = log(RULE, FAILED, FIXED, ("User preference: never use floats for money!", "high", "preference", "user"))
    [rule] = [draft for draft in condensed(rows).drafts if "floats" in draft.content]
    assert rule.content == "User preference: never use floats for money!"
    assert rule.source_ids == (rows[0].id, rows[3].id)


def test_a_question_without_an_outcome_is_left_out_and_named() -> None:
    rows = log(RULE, ASKED)
    reflected = condensed(rows)
    assert [draft.content for draft in reflected.drafts] == [RULE[0]]
    assert reflected.dropped_ids == (rows[1].id,)


def test_a_persons_statement_is_kept_whatever_its_outcome() -> None:
    wrote = ("User wrote: also german comments in code are fine but identifiers stay english", "low", "fact", "user")
    asked = (
        "User asked: yes do both but the aggregate should be 15 min not hourly, the harbour pilots need that",
        "low",
        "fact",
        "user",
    )
    changed = ("Changed src/a.ts", "low", "state_change", "assistant")
    said = [draft.content for draft in condensed(log(RULE, wrote, changed, asked, changed)).drafts]
    assert any("identifiers stay english" in text for text in said)
    assert any("15 min not hourly" in text for text in said)
    assert not any("src/a.ts" in text for text in said)


def test_rows_that_must_all_be_kept_are_unchanged() -> None:
    assert condensed(log(RULE)).drafts == ()
    assert condensed([]).drafts == ()


def test_the_least_important_rows_are_dropped_first_when_space_is_short() -> None:
    open_ends = [(f"Assistant left open: step {n} of the plan.", "low", "next_step", "assistant") for n in range(20)]
    reflected = condensed(log(RULE, *open_ends), 60)
    contents = [draft.content for draft in reflected.drafts]
    assert RULE[0] in contents
    assert "step 19" in contents[-1]
    assert not any("step 0 " in content for content in contents)
    assert sum(estimate_tokens(content) for content in contents) <= 60


any_row = st.builds(
    lambda words, priority, category, trust: (" ".join(words) + ".", priority, category, trust),
    st.lists(
        st.sampled_from("use pnpm never floats Redis fails login tests pass done 部署 ECONNRESET".split()),
        min_size=1,
        max_size=9,
    ),
    st.sampled_from(["high", "medium", "low"]),
    st.sampled_from(["decision", "preference", "fact", "issue", "next_step", "outcome", "state_change"]),
    st.sampled_from(["user", "assistant", "tool"]),
)


@given(st.lists(any_row, max_size=25), st.integers(min_value=10, max_value=400))
def test_a_reflection_is_smaller_and_accounts_for_every_row(rows: list[tuple[str, str, str, str]], target: int) -> None:
    before = log(*rows)
    reflected = condensed(before, target)
    if not reflected.drafts:
        return
    cited = [source for draft in reflected.drafts for source in draft.source_ids]
    assert len(cited) == len(set(cited))
    assert {*cited, *reflected.dropped_ids} == {row.id for row in before}
    assert sum(estimate_tokens(draft.content) for draft in reflected.drafts) < sum(row.tokens for row in before)
    high = {row.id for row in before if row.priority == "high"}
    assert high <= set(cited)


@given(st.lists(any_row, min_size=1, max_size=15))
def test_a_reflection_adds_nothing_to_its_sources(rows: list[tuple[str, str, str, str]]) -> None:
    before = {row.id: row for row in log(*rows)}
    for draft in condensed(list(before.values())).drafts:
        said = " ".join(before[source].content for source in draft.source_ids)
        for part in draft.content.split(" → "):
            assert part.rstrip(".") in said
